//! The system calls that can be timed, and their arguments.
//!
//! A timed call is made thousands of times: it must not block, end the process or have external effects. Some calls
//! meet this with any arguments. For most others there are *stand-ins*: some arguments are replaced so that the
//! kernel fails immediately; the others are kept, because filters test them. A few calls can't be made at all. The
//! tables classify the calls; calls in no table are not made.

use tamis_abi::{Arch, SeccompData, syscall};

use crate::sys::timing;

/// A descriptor that isn't open: far above any limit.
const NO_FD: u64 = 0x7fff_ffff;
/// An invalid identifier, option or operation.
const NOTHING: u64 = 0x7fff_ffff;
/// -1 as a 32-bit number.
const MINUS_ONE: u64 = 0xffff_ffff;
/// An address that isn't a multiple of four.
const UNALIGNED: u64 = 1;
/// Memory of each measuring process: all zeros, and so an empty path. For an unmapped address the kernel takes
/// several times as long as for most calls.
const ZEROS: u64 = timing::MEMORY_ADDRESS;
/// All ones: an invalid time.
const NO_TIME: u64 = timing::MEMORY_ADDRESS + timing::ONES_OFFSET;
/// Writable memory.
const RESULT: u64 = timing::MEMORY_ADDRESS + timing::RESULT_OFFSET;

/// A system call that may be made any number of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its name.
    pub name: &'static str,
    /// Its arguments; unused ones are 0.
    pub args: [u64; 6],
    /// The reason why some arguments were replaced, if any were.
    pub stand_in: Option<&'static str>,
}

/// The calls that are timed by default.
pub const DEFAULT: [&str; 4] = ["getpid", "getppid", "close", "ioctl"];

/// Calls with the same replacements.
struct Group {
    /// A description of the replacements.
    how: &'static str,
    /// The replaced arguments, with their values.
    replaced: &'static [(usize, u64)],
    /// The calls.
    names: &'static [&'static str],
}

/// Calls without lasting effects on a process that has no children and is going to end.
const AS_THEY_ARE: &[&str] = &[
    "getpid",
    "getppid",
    "gettid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getpgrp",
    "getpgid",
    "getsid",
    "getpriority",
    "umask",
    "personality",
    "sched_yield",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_getscheduler",
    "munlockall",
    "restart_syscall",
    "wait4",
];

/// Calls that fail or do nothing with the replaced arguments.
const STAND_INS: &[Group] = &[
    Group {
        how: "its descriptor is one that isn't open",
        replaced: &[(0, NO_FD)],
        names: &[
            "read",
            "write",
            "readv",
            "writev",
            "pread64",
            "pwrite64",
            "preadv",
            "pwritev",
            "preadv2",
            "pwritev2",
            "close",
            "fstat",
            "lseek",
            "ioctl",
            "fcntl",
            "fsync",
            "fdatasync",
            "ftruncate",
            "fallocate",
            "fadvise64",
            "flock",
            "getdents",
            "getdents64",
            "dup",
            "dup2",
            "dup3",
            "recvfrom",
            "sendto",
            "recvmsg",
            "sendmsg",
            "recvmmsg",
            "sendmmsg",
            "accept",
            "accept4",
            "connect",
            "bind",
            "listen",
            "getsockname",
            "getpeername",
            "getsockopt",
            "setsockopt",
            "shutdown",
            "epoll_wait",
            "fchdir",
            "fchmod",
            "fchown",
            "fstatfs",
            "syncfs",
            "readahead",
            "sync_file_range",
            "timerfd_gettime",
            "inotify_add_watch",
            "inotify_rm_watch",
            "signalfd",
            "setns",
            "pidfd_send_signal",
            "pidfd_getfd",
            "io_uring_enter",
            "fgetxattr",
            "fsetxattr",
            "fremovexattr",
            "flistxattr",
            "splice",
            "tee",
            "vmsplice",
            "copy_file_range",
            "mq_timedsend",
            "mq_timedreceive",
            "mq_notify",
            "mq_getsetattr",
        ],
    },
    Group {
        how: "its descriptor is one that isn't open, and it has no mask of signals",
        replaced: &[(0, NO_FD), (4, 0)],
        names: &["epoll_pwait", "epoll_pwait2"],
    },
    Group {
        how: "its descriptor is one that isn't open, and its structure is all zeros",
        replaced: &[(0, NO_FD), (2, ZEROS)],
        names: &["timerfd_settime"],
    },
    Group {
        how: "its descriptor is one that isn't open, and its structure is all zeros",
        replaced: &[(0, NO_FD), (3, ZEROS)],
        names: &["epoll_ctl"],
    },
    Group {
        how: "its descriptors are some that aren't open",
        replaced: &[(0, NO_FD), (1, NO_FD)],
        names: &["sendfile"],
    },
    Group {
        how: "its path is empty",
        replaced: &[(0, ZEROS)],
        names: &[
            "open",
            "creat",
            "stat",
            "lstat",
            "access",
            "chdir",
            "chroot",
            "mkdir",
            "rmdir",
            "unlink",
            "rename",
            "link",
            "symlink",
            "readlink",
            "chmod",
            "chown",
            "lchown",
            "truncate",
            "utime",
            "utimes",
            "mknod",
            "statfs",
            "getxattr",
            "lgetxattr",
            "setxattr",
            "lsetxattr",
            "listxattr",
            "llistxattr",
            "removexattr",
            "lremovexattr",
            "execve",
        ],
    },
    Group {
        how: "its folder isn't open and its path is empty",
        replaced: &[(0, NO_FD), (1, ZEROS)],
        names: &[
            "openat",
            "openat2",
            "mkdirat",
            "mknodat",
            "fchownat",
            "futimesat",
            "utimensat",
            "newfstatat",
            "unlinkat",
            "renameat",
            "renameat2",
            "linkat",
            "readlinkat",
            "fchmodat",
            "fchmodat2",
            "faccessat",
            "faccessat2",
            "statx",
            "name_to_handle_at",
            "execveat",
        ],
    },
    Group {
        how: "its folder isn't open and its path is empty",
        replaced: &[(0, ZEROS), (1, NO_FD)],
        names: &["symlinkat"],
    },
    Group {
        how: "its result or structure is at address zero",
        replaced: &[(0, 0)],
        names: &[
            "times",
            "time",
            "pipe",
            "capget",
            "capset",
            "memfd_create",
            "add_key",
            "request_key",
            "perf_event_open",
            "set_tid_address",
        ],
    },
    Group {
        how: "its result or structure is at address zero",
        replaced: &[(1, 0)],
        names: &[
            "setrlimit",
            "clock_getres",
            "sched_getparam",
            "sched_setparam",
            "sched_getattr",
            "sched_setattr",
            "io_uring_setup",
            "io_setup",
        ],
    },
    Group {
        how: "its result or structure is at address zero",
        replaced: &[(2, 0)],
        names: &["waitid", "sched_setscheduler", "rt_sigqueueinfo"],
    },
    Group {
        how: "its result or structure is at address zero",
        replaced: &[(3, 0)],
        names: &["rt_tgsigqueueinfo"],
    },
    Group {
        how: "its results or structures are at address zero",
        replaced: &[(0, 0), (1, 0)],
        names: &["gettimeofday", "sigaltstack"],
    },
    Group {
        how: "its results or structures are at address zero",
        replaced: &[(1, 0), (2, 0)],
        names: &["get_robust_list"],
    },
    Group {
        how: "its results or structures are at address zero",
        replaced: &[(2, 0), (3, 0)],
        names: &["prlimit64"],
    },
    Group {
        how: "its results or structures are at address zero",
        replaced: &[(0, 0), (1, 0), (2, 0)],
        names: &["getcpu"],
    },
    Group {
        how: "its result goes to memory of its own",
        replaced: &[(0, RESULT)],
        names: &["uname", "sysinfo"],
    },
    Group {
        how: "its result goes to memory of its own",
        replaced: &[(1, RESULT)],
        names: &[
            "getrlimit",
            "getrusage",
            "getitimer",
            "clock_gettime",
            "sched_rr_get_interval",
        ],
    },
    Group {
        how: "its results go to memory of their own",
        replaced: &[(0, RESULT), (1, RESULT), (2, RESULT)],
        names: &["getresuid", "getresgid"],
    },
    Group {
        how: "its time is none that exists",
        replaced: &[(0, NO_TIME)],
        names: &["nanosleep"],
    },
    Group {
        how: "its time is none that exists",
        replaced: &[(2, NO_TIME)],
        names: &["clock_nanosleep"],
    },
    Group {
        how: "its set of CPUs is at address zero",
        replaced: &[(1, 8), (2, 0)],
        names: &["sched_setaffinity"],
    },
    Group {
        how: "its address is one that no futex can have, and it has no time limit",
        replaced: &[(0, UNALIGNED), (3, 0)],
        names: &["futex"],
    },
    Group {
        how: "its address is one where no page begins",
        replaced: &[(0, UNALIGNED)],
        names: &["mremap"],
    },
    Group {
        how: "its address asks where the end is",
        replaced: &[(0, 0)],
        names: &["brk"],
    },
    Group {
        how: "its length is 0",
        replaced: &[(1, 0)],
        names: &[
            "mmap",
            "mmap2",
            "munmap",
            "mprotect",
            "pkey_mprotect",
            "madvise",
            "msync",
            "mlock",
            "mlock2",
            "munlock",
            "mincore",
            "getcwd",
            "sched_getaffinity",
            "clone3",
            "set_robust_list",
            "rt_sigsuspend",
        ],
    },
    Group {
        how: "its length is 0",
        replaced: &[(2, 0)],
        names: &["signalfd4"],
    },
    Group {
        how: "the size of its signal sets is 0",
        replaced: &[(3, 0)],
        names: &["rt_sigaction", "rt_sigprocmask", "rt_sigtimedwait"],
    },
    Group {
        how: "its address and length are 0",
        replaced: &[(0, 0), (1, 0)],
        names: &["getrandom", "rt_sigpending", "rseq"],
    },
    Group {
        how: "its number of descriptors is too large",
        replaced: &[(1, MINUS_ONE)],
        names: &["poll"],
    },
    Group {
        how: "its number of descriptors is too large, and it has no time limit",
        replaced: &[(1, MINUS_ONE), (2, 0)],
        names: &["ppoll"],
    },
    Group {
        how: "its length is too large",
        replaced: &[(2, MINUS_ONE)],
        names: &["bpf"],
    },
    Group {
        how: "its number of descriptors is -1, and it has no time limit",
        replaced: &[(0, MINUS_ONE), (4, 0)],
        names: &["select", "pselect6"],
    },
    Group {
        how: "its number is 0",
        replaced: &[(0, 0)],
        names: &[
            "alarm",
            "getgroups",
            "epoll_create",
            "membarrier",
            "io_submit",
            "io_getevents",
            "io_pgetevents",
            "io_destroy",
            "io_cancel",
        ],
    },
    Group {
        how: "its type has flags that don't exist",
        replaced: &[(1, 0x7ff0)],
        names: &["socket", "socketpair"],
    },
    Group {
        how: "its flags don't exist",
        replaced: &[(0, 1)],
        names: &["epoll_create1", "inotify_init1", "unshare"],
    },
    Group {
        how: "its flags don't exist",
        replaced: &[(1, 2)],
        names: &["pipe2", "eventfd2"],
    },
    Group {
        // A shared table of signal handlers requires shared memory. On s390x the flags are the second argument.
        how: "its flags contradict each other",
        replaced: &[(0, 0x800), (1, 0x800)],
        names: &["clone"],
    },
    Group {
        how: "its first argument is a number that means nothing",
        replaced: &[(0, NOTHING)],
        names: &[
            "setitimer",
            "timerfd_create",
            "timer_create",
            "timer_settime",
            "timer_gettime",
            "timer_getoverrun",
            "timer_delete",
            "seccomp",
            "keyctl",
            "setpriority",
            "ioprio_get",
            "ioprio_set",
            "setgroups",
        ],
    },
    Group {
        how: "its identifier is -1",
        replaced: &[(0, MINUS_ONE)],
        names: &["setuid", "setgid", "setfsuid", "setfsgid"],
    },
    Group {
        how: "its identifiers are -1",
        replaced: &[(0, MINUS_ONE), (1, MINUS_ONE), (2, MINUS_ONE)],
        names: &["setreuid", "setregid", "setresuid", "setresgid"],
    },
    Group {
        how: "its process group is -1",
        replaced: &[(1, MINUS_ONE)],
        names: &["setpgid"],
    },
    Group {
        how: "its signal is 0, which only asks",
        replaced: &[(1, 0)],
        names: &["kill", "tkill"],
    },
    Group {
        how: "its signal is 0, which only asks",
        replaced: &[(2, 0)],
        names: &["tgkill"],
    },
    Group {
        how: "it reads from a process that doesn't exist",
        replaced: &[(0, 1), (1, NOTHING)],
        names: &["ptrace"],
    },
    Group {
        how: "it sets a name at address zero",
        replaced: &[(0, 15), (1, 0)],
        names: &["prctl"],
    },
    Group {
        how: "it asks for a register, to be put in memory of its own",
        replaced: &[(0, 0x1003), (1, RESULT)],
        names: &["arch_prctl"],
    },
];

/// Calls that are never made, with the reason.
const NEVER: &[(&str, &[&str])] = &[
    (
        "it would end the measuring process",
        &["exit", "exit_group", "rt_sigreturn", "sigreturn"],
    ),
    ("it would start a process each time", &["fork", "vfork"]),
    ("it would block", &["pause"]),
    (
        "it would use up the descriptors",
        &["eventfd", "inotify_init"],
    ),
    (
        "it would change the process or the machine",
        &[
            "reboot",
            "mount",
            "umount2",
            "pivot_root",
            "swapon",
            "swapoff",
            "sethostname",
            "setdomainname",
            "settimeofday",
            "clock_settime",
            "adjtimex",
            "clock_adjtime",
            "init_module",
            "finit_module",
            "delete_module",
            "kexec_load",
            "acct",
            "quotactl",
            "vhangup",
            "sync",
            "setsid",
            "mlockall",
            "close_range",
            "iopl",
            "ioperm",
        ],
    ),
];

/// The reason for calls in no list.
const NOT_KNOWN: &str = "no arguments are known with which it does nothing";

impl Call {
    /// The call with this name, with arguments for repeated calls.
    ///
    /// # Errors
    /// The reason why it is not made.
    pub fn find(name: &str) -> Result<Call, &'static str> {
        Call::with_args(name, [0; 6])
    }

    /// The call with this name and these arguments, except that arguments with effects are replaced. Addresses
    /// among the others are not followed.
    ///
    /// # Errors
    /// The reason why it is never made.
    pub fn with_args(name: &str, args: [u64; 6]) -> Result<Call, &'static str> {
        if let Some(name) = AS_THEY_ARE.iter().find(|known| **known == name) {
            return Ok(Call {
                name,
                args,
                stand_in: None,
            });
        }
        for group in STAND_INS {
            let Some(name) = group.names.iter().find(|known| **known == name) else {
                continue;
            };
            let mut replaced = args;
            for (index, value) in group.replaced {
                replaced[*index] = *value;
            }
            return Ok(Call {
                name,
                args: replaced,
                stand_in: (replaced != args).then_some(group.how),
            });
        }
        let never = NEVER.iter().find(|(_, names)| names.contains(&name));
        Err(never.map_or(NOT_KNOWN, |(reason, _)| reason))
    }

    /// The names of all calls that can be made.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let stand_ins = STAND_INS.iter().flat_map(|group| group.names);
        AS_THEY_ARE.iter().chain(stand_ins).copied()
    }

    /// The input of a filter; `None` if the architecture lacks the call.
    pub fn data(&self, arch: Arch) -> Option<SeccompData> {
        Some(SeccompData {
            nr: syscall::number(arch, self.name)?.0,
            arch: arch.audit(),
            ip: 0,
            args: self.args,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_exists_and_is_in_one_list() {
        let never = NEVER.iter().flat_map(|(_, names)| names.iter().copied());
        let mut names: Vec<&str> = Call::names().chain(never).collect();
        for name in &names {
            assert!(syscall::is_known(name), "{name}");
        }
        names.sort_unstable();
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
    }

    #[test]
    fn what_ends_or_blocks_is_refused_with_its_reason() {
        for name in ["exit_group", "fork", "pause", "reboot"] {
            assert_ne!(Call::find(name), Err(NOT_KNOWN), "{name}");
            assert!(Call::find(name).is_err(), "{name}");
        }
        assert_eq!(Call::find("kexec_file_load"), Err(NOT_KNOWN));
    }

    #[test]
    fn a_stand_in_keeps_the_arguments_that_have_no_effect() {
        let args = [3, 0x5401, 7, 0, 0, 0];
        let call = Call::with_args("ioctl", args).unwrap();
        assert_eq!(call.args, [NO_FD, 0x5401, 7, 0, 0, 0]);
        assert!(call.stand_in.is_some());
        let same = Call::with_args("ioctl", call.args).unwrap();
        assert_eq!((same.args, same.stand_in), (call.args, None));
        assert_eq!(Call::with_args("getpid", args).unwrap().args, args);
    }
}
