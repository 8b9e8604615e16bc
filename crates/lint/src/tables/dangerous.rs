//! Calls with power over the machine or over other programs.

use tamis_diag::Severity::{self, Note, Warning};

use super::{Form, any, with};

/// Calls that are dangerous for one reason.
pub(crate) struct Danger {
    /// Their effect, as a verb: completes "calls that …".
    pub(crate) power: &'static str,
    /// The risk that remains although the kernel checks permissions.
    pub(crate) reason: &'static str,
    /// The severity of allowing them without a condition.
    pub(crate) severity: Severity,
    /// The calls.
    pub(crate) calls: &'static [Form],
}

/// All rows, the most severe first.
pub(crate) const ALL: &[Danger] = &[
    Danger {
        power: "replace or extend the kernel",
        reason: "kernel code is outside every sandbox",
        severity: Warning,
        calls: &[
            any("init_module"),
            any("finit_module"),
            any("create_module"),
            any("delete_module"),
            any("kexec_load"),
            any("kexec_file_load"),
        ],
    },
    Danger {
        power: "run BPF programs in the kernel",
        reason: "they can observe other processes, and their verifier has been a source of privilege \
         escalations",
        severity: Warning,
        calls: &[any("bpf")],
    },
    Danger {
        power: "drive hardware directly",
        reason: "port and PCI access reaches all memory",
        severity: Warning,
        calls: &[
            any("iopl"),
            any("ioperm"),
            any("pciconfig_iobase"),
            any("pciconfig_read"),
            any("pciconfig_write"),
            any("s390_pci_mmio_read"),
            any("s390_pci_mmio_write"),
        ],
    },
    Danger {
        power: "open files by handle",
        reason: "a handle can refer to any file of the file system, also outside a container's root",
        severity: Warning,
        calls: &[any("open_by_handle_at")],
    },
    Danger {
        power: "change what is mounted",
        reason: "mounts change the file-system view of a sandbox",
        severity: Warning,
        calls: &[
            any("mount"),
            any("umount"),
            any("umount2"),
            any("move_mount"),
            any("open_tree"),
            any("open_tree_attr"),
            any("fsopen"),
            any("fsconfig"),
            any("fsmount"),
            any("fspick"),
            any("mount_setattr"),
            any("pivot_root"),
        ],
    },
    Danger {
        power: "stop or reconfigure the machine",
        reason: "swap, accounting and power are the administrator's",
        severity: Warning,
        calls: &[
            any("reboot"),
            any("swapon"),
            any("swapoff"),
            any("acct"),
            any("quotactl"),
            any("quotactl_fd"),
            any("nfsservctl"),
        ],
    },
    Danger {
        power: "read the whole machine's performance counters",
        reason: "counters leak the behaviour of other processes, and the code has been a source of privilege \
         escalations",
        severity: Warning,
        calls: &[any("perf_event_open"), any("lookup_dcookie")],
    },
    Danger {
        power: "handle page faults in user space",
        reason: "it lets an attacker pause the kernel at will, which makes races easy to win",
        severity: Warning,
        calls: &[any("userfaultfd")],
    },
    Danger {
        power: "set the clock",
        reason: "the clock is shared by the machine; certificates and logs depend on it",
        severity: Warning,
        calls: &[
            any("settimeofday"),
            any("clock_settime"),
            any("clock_settime64"),
            any("stime"),
        ],
    },
    Danger {
        power: "emulate old processors or load old libraries",
        reason: "this kernel code is rarely used and little tested",
        severity: Warning,
        calls: &[
            any("vm86"),
            any("vm86old"),
            any("uselib"),
            any("ustat"),
            any("sysfs"),
            any("_sysctl"),
        ],
    },
    Danger {
        power: "access other processes",
        reason: "memory, registers and descriptors of processes of the same user are accessible",
        severity: Note,
        calls: &[
            any("ptrace"),
            any("process_vm_readv"),
            any("process_vm_writev"),
            any("pidfd_getfd"),
            any("process_madvise"),
            any("kcmp"),
        ],
    },
    Danger {
        power: "run programs without a path",
        reason: "with AT_EMPTY_PATH a descriptor is enough, also one of a file in memory that no file system has",
        severity: Note,
        calls: &[with("execveat", "flags", "AT_EMPTY_PATH")],
    },
    Danger {
        power: "enter or create namespaces",
        reason: "in its own user namespace a program reaches kernel code written for root",
        severity: Note,
        calls: &[any("unshare"), any("setns")],
    },
    Danger {
        power: "use keyrings",
        reason: "keys belong to users, not to containers",
        severity: Note,
        calls: &[any("keyctl"), any("add_key"), any("request_key")],
    },
    Danger {
        power: "submit work to an io_uring",
        reason: "filters don't see the requests, and the code has been a source of privilege escalations",
        severity: Note,
        calls: &[any("io_uring_setup")],
    },
    Danger {
        power: "change how the kernel runs the program",
        reason: "some personalities disable address randomisation; local descriptor tables are rarely needed",
        severity: Note,
        calls: &[any("personality"), any("modify_ldt")],
    },
];
