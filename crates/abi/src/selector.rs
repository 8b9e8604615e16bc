//! The arguments that select the operation of a call.
//!
//! Some calls are many in one: with any command, option, protection or kind they open much of the kernel. One table
//! lists those arguments, on all architectures, for recorders, learners and advice. For other calls the selecting value
//! is in memory, or in the arguments of the calls behind a multiplexer, invisible to filters; [`hidden`] lists those,
//! with the calls whose conditions they make void.
//!
//! A test classifies every argument of every call with a separate number: it is here, or the test has the reason for
//! its absence. Not included are arguments whose meaning depends on another one, such as the second of `prctl`: most
//! are addresses.

use crate::arch::Arch;
use crate::data::ArgIndex;
use crate::signature;

/// How the values of a deciding argument belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// A value is one thing: a command, a kind, or flags that together are an operation.
    Value,
    /// A value is several flags, each of which permits something by itself, beside a number if its
    /// [family](crate::family) has one.
    Flags,
    /// Only these bits decide.
    Bits(u64),
}

use Selector::{Bits, Flags, Value};

/// `S_IFMT` of `mknod`: whether a file, a pipe, a socket or a device is made.
const FILE_TYPE: Selector = Bits(0o170_000);
/// The class above the 13 bits of a level, `IOPRIO_CLASS_SHIFT`.
const IO_CLASS: Selector = Bits(0xffff_e000);
/// `ipc_parse_version` of the kernel: a version stands above the operation.
const IPC_OPERATION: Selector = Bits(0xffff);

/// The deciding arguments, by call.
const TABLE: &[(&[&str], &str, Selector)] = &[
    // Memory that is executed, and segments that are mapped with `SHM_EXEC`.
    (
        &["mmap", "mmap2", "mprotect", "pkey_mprotect"],
        "prot",
        Flags,
    ),
    (&["shmat"], "shmflg", Value),
    (&["memfd_create"], "flags", Flags),
    (&["process_madvise"], "behavior", Value),
    (&["move_pages"], "flags", Value),
    (&["userfaultfd"], "flags", Value),
    // Processes, and their namespaces.
    (&["clone"], "clone_flags", Flags),
    (&["unshare"], "unshare_flags", Flags),
    (&["setns"], "flags", Flags),
    (&["prctl", "arch_prctl", "keyctl"], "option", Value),
    (&["personality"], "personality", Value),
    (&["ptrace"], "request", Value),
    (&["seccomp"], "op", Value),
    (&["seccomp"], "flags", Value),
    (&["kcmp"], "type", Value),
    (&["membarrier"], "cmd", Value),
    (&["lsm_set_self_attr"], "attr", Value),
    (&["sched_setscheduler"], "policy", Value),
    (&["setpriority", "ioprio_set"], "which", Value),
    (&["ioprio_set"], "ioprio", IO_CLASS),
    // Files, devices and mounts.
    (&["open", "openat", "open_by_handle_at"], "flags", Flags),
    (&["mq_open"], "oflag", Flags),
    (&["mknod", "mknodat"], "mode", FILE_TYPE),
    (&["pipe2"], "flags", Flags),
    (&["fcntl", "fcntl64", "ioctl"], "cmd", Value),
    (&["fanotify_init"], "flags", Value),
    (&["fanotify_init"], "event_f_flags", Value),
    (&["fanotify_mark"], "flags", Value),
    (&["mount", "umount2", "move_mount"], "flags", Value),
    (&["open_tree", "open_tree_attr"], "flags", Value),
    (&["fsconfig"], "cmd", Value),
    (&["fsmount"], "attr_flags", Value),
    (&["quotactl", "quotactl_fd"], "cmd", Value),
    // Sockets and messages.
    (&["socket", "socketpair"], "family", Value),
    (&["socket", "socketpair"], "type", Flags),
    (&["socket", "socketpair"], "protocol", Value),
    (&["getsockopt", "setsockopt"], "level", Value),
    (&["getsockopt", "setsockopt"], "optname", Value),
    (&["socketcall"], "call", Value),
    (&["ipc"], "call", IPC_OPERATION),
    (&["msgctl", "semctl", "shmctl"], "cmd", Value),
    // The machine.
    (&["bpf"], "cmd", Value),
    (&["io_uring_register"], "opcode", Value),
    (&["perf_event_open"], "flags", Value),
    (&["kexec_load", "kexec_file_load"], "flags", Value),
    (&["finit_module", "delete_module"], "flags", Value),
    (&["reboot"], "cmd", Value),
    (&["syslog"], "type", Value),
    (&["iopl"], "level", Value),
    (&["ioperm"], "turn_on", Value),
    (&["modify_ldt", "bdflush"], "func", Value),
    (&["vm86"], "cmd", Value),
    (&["spu_create"], "flags", Value),
    (
        &["s390_guarded_storage", "s390_runtime_instr"],
        "command",
        Value,
    ),
    (&["sysmips"], "cmd", Value),
    (&["syscall"], "number", Value),
];

/// How an argument selects the operation of a call; `None` if it doesn't.
///
/// ```
/// use tamis_abi::selector::{self, Selector};
/// assert_eq!(selector::for_argument("bpf", "cmd"), Some(Selector::Value));
/// assert_eq!(selector::for_argument("mmap2", "prot"), Some(Selector::Flags));
/// assert_eq!(selector::for_argument("lseek", "whence"), None);
/// ```
pub fn for_argument(call: &str, argument: &str) -> Option<Selector> {
    let mut rows = TABLE.iter();
    rows.find_map(|(calls, arg, selector)| {
        (*arg == argument && calls.contains(&call)).then_some(*selector)
    })
}

/// How the argument at this index selects the operation of a call on an architecture; `None` if it doesn't.
pub fn at(arch: Arch, call: &str, index: ArgIndex) -> Option<Selector> {
    let mut rows = TABLE.iter().filter(|(calls, ..)| calls.contains(&call));
    rows.find_map(|(_, argument, selector)| {
        (signature::index(arch, call, argument) == Some(index)).then_some(*selector)
    })
}

/// Whether a call has selecting arguments, visible to filters or not.
pub fn is_several(call: &str) -> bool {
    TABLE.iter().any(|(calls, ..)| calls.contains(&call))
        || HIDDEN.iter().any(|hidden| hidden.calls.contains(&call))
}

/// The selecting data of a call that isn't in its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    calls: &'static [&'static str],
    /// Why, as a clause: `no filter sees its flags`.
    pub why: &'static str,
    /// Other calls that do the same, whose conditions don't hold for this one. Those behind `socketcall` and `ipc` depend on the
    /// operation: see [`multiplexed`](crate::syscall::multiplexed).
    pub instead_of: &'static [&'static str],
    /// Whether the call makes another one, which its first argument selects.
    pub is_other_call: bool,
}

const HIDDEN: &[Hidden] = &[
    Hidden {
        calls: &["clone3"],
        why: "no filter sees its flags and namespaces",
        instead_of: &["clone", "unshare"],
        is_other_call: false,
    },
    Hidden {
        calls: &["openat2"],
        why: "no filter sees its flags",
        instead_of: &["open", "openat"],
        is_other_call: false,
    },
    Hidden {
        calls: &["io_uring_setup", "io_uring_enter"],
        why: "no filter sees the operations of its rings",
        instead_of: &["open", "openat", "setsockopt", "socket"],
        is_other_call: false,
    },
    Hidden {
        calls: &["socketcall"],
        why: "no filter sees the arguments of the calls behind it",
        instead_of: &[],
        is_other_call: true,
    },
    // They are in registers of their own for each operation.
    Hidden {
        calls: &["ipc"],
        why: "the arguments of the calls behind it have other places",
        instead_of: &[],
        is_other_call: true,
    },
    Hidden {
        calls: &["syscall"],
        why: "no filter sees the arguments of the other call",
        instead_of: &[],
        is_other_call: true,
    },
    Hidden {
        calls: &["sched_setattr"],
        why: "no filter sees the policy",
        instead_of: &["sched_setscheduler"],
        is_other_call: false,
    },
    Hidden {
        calls: &["mount_setattr"],
        why: "no filter sees the attributes",
        instead_of: &["mount"],
        is_other_call: false,
    },
    Hidden {
        calls: &["_sysctl", "rtas"],
        why: "no filter sees which value or function is meant",
        instead_of: &[],
        is_other_call: false,
    },
];
/// The form of `mmap` that takes a pointer to its arguments.
const HIDDEN_PROTECTION: Hidden = Hidden {
    calls: &["mmap", "mmap2"],
    why: "no filter sees protection and flags",
    instead_of: &["mmap2", "mprotect"],
    is_other_call: false,
};

/// The selecting data of a call on an architecture that no filter sees; `None` without any.
///
/// ```
/// use tamis_abi::{Arch, selector};
/// assert!(selector::hidden(Arch::X86, "mmap").is_some());
/// assert_eq!(selector::hidden(Arch::X86, "mmap2"), None);
/// assert_eq!(selector::hidden(Arch::X86_64, "mmap"), None);
/// ```
pub fn hidden(arch: Arch, call: &str) -> Option<&'static Hidden> {
    if HIDDEN_PROTECTION.calls.contains(&call) && signature::takes_pointer_to_arguments(arch, call)
    {
        return Some(&HIDDEN_PROTECTION);
    }
    HIDDEN.iter().find(|hidden| hidden.calls.contains(&call))
}

#[cfg(test)]
mod tests;
