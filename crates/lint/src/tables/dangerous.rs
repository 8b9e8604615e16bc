//! Calls with power over the machine or over other programs.

use tamis_diag::Severity::{self, Note, Warning};

/// Calls that are dangerous for one reason.
pub(crate) struct Danger {
    /// Their effect, as a verb: completes "calls that …".
    pub(crate) power: &'static str,
    /// The risk that remains although the kernel checks permissions.
    pub(crate) reason: &'static str,
    /// The severity of allowing them without a condition.
    pub(crate) severity: Severity,
    /// The calls.
    pub(crate) calls: &'static [&'static str],
}

/// All rows, the most severe first.
pub(crate) const ALL: &[Danger] = &[
    Danger {
        power: "replace or extend the kernel",
        reason: "kernel code is outside every sandbox",
        severity: Warning,
        calls: &[
            "init_module",
            "finit_module",
            "create_module",
            "delete_module",
            "kexec_load",
            "kexec_file_load",
        ],
    },
    Danger {
        power: "run BPF programs in the kernel",
        reason: "they can observe other processes, and their verifier has been a source of privilege \
         escalations",
        severity: Warning,
        calls: &["bpf"],
    },
    Danger {
        power: "drive hardware directly",
        reason: "port and PCI access reaches all memory",
        severity: Warning,
        calls: &[
            "iopl",
            "ioperm",
            "pciconfig_iobase",
            "pciconfig_read",
            "pciconfig_write",
            "s390_pci_mmio_read",
            "s390_pci_mmio_write",
        ],
    },
    Danger {
        power: "open files by handle",
        reason: "a handle can refer to any file of the file system, also outside a container's root",
        severity: Warning,
        calls: &["open_by_handle_at"],
    },
    Danger {
        power: "change what is mounted",
        reason: "mounts change the file-system view of a sandbox",
        severity: Warning,
        calls: &[
            "mount",
            "umount",
            "umount2",
            "move_mount",
            "open_tree",
            "open_tree_attr",
            "fsopen",
            "fsconfig",
            "fsmount",
            "fspick",
            "mount_setattr",
            "pivot_root",
        ],
    },
    Danger {
        power: "stop or reconfigure the machine",
        reason: "swap, accounting and power are the administrator's",
        severity: Warning,
        calls: &[
            "reboot",
            "swapon",
            "swapoff",
            "acct",
            "quotactl",
            "quotactl_fd",
            "nfsservctl",
        ],
    },
    Danger {
        power: "read the whole machine's performance counters",
        reason: "counters leak the behaviour of other processes, and the code has been a source of privilege \
         escalations",
        severity: Warning,
        calls: &["perf_event_open", "lookup_dcookie"],
    },
    Danger {
        power: "handle page faults in user space",
        reason: "it lets an attacker pause the kernel at will, which makes races easy to win",
        severity: Warning,
        calls: &["userfaultfd"],
    },
    Danger {
        power: "set the clock",
        reason: "the clock is shared by the machine; certificates and logs depend on it",
        severity: Warning,
        calls: &["settimeofday", "clock_settime", "clock_settime64", "stime"],
    },
    Danger {
        power: "emulate old processors or load old libraries",
        reason: "this kernel code is rarely used and little tested",
        severity: Warning,
        calls: &["vm86", "vm86old", "uselib", "ustat", "sysfs", "_sysctl"],
    },
    Danger {
        power: "access other processes",
        reason: "memory, registers and descriptors of processes of the same user are accessible",
        severity: Note,
        calls: &[
            "ptrace",
            "process_vm_readv",
            "process_vm_writev",
            "pidfd_getfd",
            "process_madvise",
            "kcmp",
        ],
    },
    Danger {
        power: "enter or create namespaces",
        reason: "in its own user namespace a program reaches kernel code written for root",
        severity: Note,
        calls: &["unshare", "setns"],
    },
    Danger {
        power: "use keyrings",
        reason: "keys belong to users, not to containers",
        severity: Note,
        calls: &["keyctl", "add_key", "request_key"],
    },
    Danger {
        power: "submit work to an io_uring",
        reason: "filters don't see the requests, and the code has been a source of privilege escalations",
        severity: Note,
        calls: &["io_uring_setup"],
    },
    Danger {
        power: "change how the kernel runs the program",
        reason: "some personalities disable address randomisation; local descriptor tables are rarely needed",
        severity: Note,
        calls: &["personality", "modify_ldt"],
    },
];
