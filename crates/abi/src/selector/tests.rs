//! Every argument is classified: it selects the operation of its call, or there is a reason against it.

use super::*;
use crate::signature::Arg;
use crate::{family, syscall};

/// Names of arguments that are addresses, descriptors, amounts, times and names of objects: the objects of a call.
const OBJECTS: &[&str] = &[
    // Descriptors.
    "dfd",
    "epfd",
    "fanotify_fd",
    "fd",
    "fd_in",
    "fd_out",
    "fdin",
    "fdout",
    "fildes",
    "from_dfd",
    "fs_fd",
    "group_fd",
    "in_fd",
    "initrd_fd",
    "kernel_fd",
    "max_fd",
    "mountdirfd",
    "mqdes",
    "neighbor_fd",
    "newdfd",
    "newfd",
    "olddfd",
    "oldfd",
    "out_fd",
    "pidfd",
    "ruleset_fd",
    "to_dfd",
    "ufd",
    "wd",
    // Addresses.
    "addr",
    "entry",
    "header",
    "dataptr",
    "mmio_addr",
    "new_addr",
    "newsp",
    "start",
    "tls",
    "brk",
    // Amounts, offsets and times.
    "addr_len",
    "addrlen",
    "argsz",
    "backlog",
    "bufsiz",
    "bufsize",
    "bytecount",
    "cmdline_len",
    "count",
    "entries",
    "gidsetsize",
    "increment",
    "init_val",
    "len",
    "len_in",
    "length",
    "liovcnt",
    "maxevents",
    "maxnode",
    "min_complete",
    "min_nr",
    "msg_len",
    "msg_prio",
    "msgsz",
    "n",
    "nbytes",
    "new_len",
    "nfds",
    "niceval",
    "nr",
    "nr_args",
    "nr_events",
    "nr_futexes",
    "nr_mnt_ids",
    "nr_pages",
    "nr_requeue",
    "nr_segments",
    "nr_segs",
    "nr_wake",
    "nsems",
    "nsops",
    "num",
    "off",
    "offset",
    "offset_high",
    "offset_low",
    "old_len",
    "optlen",
    "pgoff",
    "plen",
    "pos",
    "pos_h",
    "pos_l",
    "riovcnt",
    "rseq_len",
    "seconds",
    "sigsetsize",
    "size",
    "sizemask",
    "sz",
    "timeout",
    "timeout_msecs",
    "to_submit",
    "usize",
    "val",
    "val3",
    "vlen",
    // Tasks, users, processors, keys and other objects.
    "bus",
    "cookie",
    "cpu",
    "cpu_id",
    "ctx",
    "ctx_id",
    "destringid",
    "dev",
    "dfn",
    "egid",
    "euid",
    "from",
    "gid",
    "group",
    "home_node",
    "id",
    "idx1",
    "idx2",
    "key",
    "msgtyp",
    "msqid",
    "pgid",
    "pid",
    "pid1",
    "pid2",
    "pkey",
    "rgid",
    "ringid",
    "ruid",
    "semid",
    "semnum",
    "sgid",
    "shmid",
    "suid",
    "tgid",
    "timer_id",
    "uid",
    "upid",
    "user",
    "who",
    "error_code",
    // Its meaning depends on the selecting argument, and most are addresses.
    "arg",
    "arg1",
    "arg2",
    "arg3",
    "arg4",
    "arg5",
    "aux",
    "data",
    "fifth",
    "first",
    "second",
    "third",
];

/// Why arguments that might decide don't.
const NOT_DECIDING: &[(&str, &[(&str, &str)])] = &[
    (
        "the kernel accepts one value only",
        &[
            ("cachestat", "flags"),
            ("copy_file_range", "flags"),
            ("listmount", "flags"),
            ("lsm_list_modules", "flags"),
            ("lsm_set_self_attr", "flags"),
            ("mseal", "flags"),
            ("pidfd_getfd", "flags"),
            ("pkey_alloc", "flags"),
            ("process_madvise", "flags"),
            ("process_mrelease", "flags"),
            ("process_vm_readv", "flags"),
            ("process_vm_writev", "flags"),
            ("reboot", "magic1"),
            ("reboot", "magic2"),
            ("remap_file_pages", "prot"),
            ("s390_sthyi", "flags"),
            ("sched_getattr", "flags"),
            ("set_mempolicy_home_node", "flags"),
            ("statmount", "flags"),
            ("futex_waitv", "flags"),
            ("futex_requeue", "flags"),
            ("landlock_add_rule", "flags"),
        ],
    ),
    (
        "it blocks or not, and is closed in a new program or not",
        &[
            ("accept4", "flags"),
            ("dup3", "flags"),
            ("epoll_create1", "flags"),
            ("eventfd2", "flags"),
            ("fsmount", "flags"),
            ("fsopen", "flags"),
            ("inotify_init1", "flags"),
            ("memfd_secret", "flags"),
            ("pidfd_open", "flags"),
            ("signalfd4", "flags"),
            ("timerfd_create", "flags"),
            ("close_range", "flags"),
        ],
    ),
    (
        "it only reads or compares what the caller may see",
        &[
            ("access", "mode"),
            ("clock_getres", "which_clock"),
            ("clock_gettime", "which_clock"),
            ("faccessat", "mode"),
            ("faccessat2", "mode"),
            ("faccessat2", "flags"),
            ("file_getattr", "at_flags"),
            ("get_mempolicy", "flags"),
            ("getitimer", "which"),
            ("getpriority", "which"),
            ("getrandom", "flags"),
            ("getrlimit", "resource"),
            ("ugetrlimit", "resource"),
            ("getxattrat", "at_flags"),
            ("ioprio_get", "which"),
            ("listxattrat", "at_flags"),
            ("lseek", "whence"),
            ("_llseek", "whence"),
            ("lsm_get_self_attr", "attr"),
            ("lsm_get_self_attr", "flags"),
            ("name_to_handle_at", "flag"),
            ("newfstatat", "flag"),
            ("fstatat64", "flag"),
            ("query_module", "which"),
            ("s390_sthyi", "function_code"),
            ("sched_get_priority_max", "policy"),
            ("sched_get_priority_min", "policy"),
            ("statx", "flags"),
            ("statx", "mask"),
            ("sysfs", "option"),
        ],
    ),
    (
        "it comes as tasks, signals and data happen to come, in any order",
        &[
            ("clock_nanosleep", "flags"),
            ("clock_nanosleep", "which_clock"),
            ("epoll_ctl", "op"),
            ("flock", "cmd"),
            ("futex", "op"),
            ("futex_time64", "op"),
            ("futex_wait", "flags"),
            ("futex_wait", "mask"),
            ("futex_wait", "clockid"),
            ("futex_waitv", "clockid"),
            ("futex_wake", "flags"),
            ("futex_wake", "mask"),
            ("io_uring_enter", "flags"),
            ("msgget", "msgflg"),
            ("msgrcv", "msgflg"),
            ("msgsnd", "msgflg"),
            ("semget", "semflg"),
            ("shmget", "shmflg"),
            ("recv", "flags"),
            ("recvfrom", "flags"),
            ("recvmmsg", "flags"),
            ("recvmsg", "flags"),
            ("rt_sigprocmask", "how"),
            ("sigprocmask", "how"),
            ("ssetmask", "newmask"),
            ("send", "flags"),
            ("sendmmsg", "flags"),
            ("sendmsg", "flags"),
            ("sendto", "flags"),
            ("shutdown", "how"),
            ("splice", "flags"),
            ("tee", "flags"),
            ("vmsplice", "flags"),
            ("wait4", "options"),
            ("waitid", "options"),
            ("waitid", "which"),
            ("waitpid", "options"),
            ("preadv2", "flags"),
            ("pwritev2", "flags"),
        ],
    ),
    (
        "it is about memory or time of the caller's own, without rights to it",
        &[
            ("madvise", "behavior"),
            ("mbind", "flags"),
            ("mbind", "mode"),
            ("mlock2", "flags"),
            ("mlockall", "flags"),
            ("mmap", "flags"),
            ("mmap2", "flags"),
            ("mremap", "flags"),
            ("msync", "flags"),
            ("remap_file_pages", "flags"),
            ("rseq", "flags"),
            ("set_mempolicy", "mode"),
            ("setitimer", "which"),
            ("timer_create", "which_clock"),
            ("timer_settime", "flags"),
            ("timerfd_create", "clockid"),
            ("timerfd_settime", "flags"),
            ("membarrier", "flags"),
            ("prlimit64", "resource"),
            ("setrlimit", "resource"),
        ],
    ),
    (
        "the call sets a clock, whichever it is",
        &[
            ("clock_adjtime", "which_clock"),
            ("clock_settime", "which_clock"),
        ],
    ),
    (
        "it changes how a file is found or written, not what may be done to it",
        &[
            ("execveat", "flags"),
            ("fadvise64", "advice"),
            ("fadvise64_64", "advice"),
            ("arm_fadvise64_64", "advice"),
            ("fallocate", "mode"),
            ("fchmodat2", "flags"),
            ("fchownat", "flag"),
            ("file_setattr", "at_flags"),
            ("fsetxattr", "flags"),
            ("fspick", "flags"),
            ("linkat", "flags"),
            ("lsetxattr", "flags"),
            ("mount_setattr", "flags"),
            ("removexattrat", "at_flags"),
            ("renameat2", "flags"),
            ("setxattr", "flags"),
            ("setxattrat", "at_flags"),
            ("swapon", "swap_flags"),
            ("sync_file_range", "flags"),
            ("sync_file_range2", "flags"),
            ("arm_sync_file_range", "flags"),
            ("unlinkat", "flag"),
            ("utimensat", "flags"),
        ],
    ),
    (
        "the mode of a file is data, and a register that isn't read unless a file is made",
        &[
            ("chmod", "mode"),
            ("creat", "mode"),
            ("fchmod", "mode"),
            ("fchmodat", "mode"),
            ("fchmodat2", "mode"),
            ("mkdir", "mode"),
            ("mkdirat", "mode"),
            ("mq_open", "mode"),
            ("open", "mode"),
            ("openat", "mode"),
            ("spu_create", "mode"),
            ("umask", "mask"),
        ],
    ),
    (
        "which events are reported is decided when the descriptor is made",
        &[("fanotify_mark", "mask"), ("inotify_add_watch", "mask")],
    ),
    (
        "who gets a signal doesn't depend on which one it is",
        &[
            ("kill", "sig"),
            ("pidfd_send_signal", "sig"),
            ("pidfd_send_signal", "flags"),
            ("rseq", "sig"),
            ("rt_sigaction", "sig"),
            ("rt_sigqueueinfo", "sig"),
            ("rt_tgsigqueueinfo", "sig"),
            ("s390_runtime_instr", "signum"),
            ("tgkill", "sig"),
            ("tkill", "sig"),
        ],
    ),
    (
        "it only takes rights away",
        &[
            ("landlock_create_ruleset", "flags"),
            ("landlock_restrict_self", "flags"),
            ("landlock_add_rule", "rule_type"),
        ],
    ),
    ("the policy lies in memory", &[("sched_setattr", "flags")]),
];

/// Calls of whose arguments nothing is known: the kernel has no code for them any more, or never had, or none decides.
const WITHOUT_SIGNATURE: &[&str] = &[
    // No code.
    "afs_syscall",
    "break",
    "epoll_ctl_old",
    "epoll_wait_old",
    "ftime",
    "get_kernel_syms",
    "getpmsg",
    "gtty",
    "idle",
    "lock",
    "mpx",
    "multiplexer",
    "nfsservctl",
    "prof",
    "profil",
    "putpmsg",
    "security",
    "stty",
    "timerfd",
    "tuxcall",
    "ulimit",
    "vserver",
    "swapcontext",
    "usr26",
    "usr32",
    // Addresses, times and signals.
    "atomic_barrier",
    "atomic_cmpxchg_32",
    "breakpoint",
    "get_tls",
    "getpagesize",
    "oldfstat",
    "oldlstat",
    "oldolduname",
    "oldstat",
    "olduname",
    "rseq_slice_yield",
    "set_tls",
    "sigaction",
    "signal",
    "sigsuspend",
    "stime",
    "switch_endian",
    "sys_debug_setcontext",
    "umount",
    "llseek",
    "pciconfig_iobase",
    "listns",
    // Caches and memory of the caller, and properties of the processor.
    "cachectl",
    "cacheflush",
    "map_shadow_stack",
    "riscv_flush_icache",
    "riscv_hwprobe",
    // The function lies in memory.
    "rtas",
];

/// All calls of all architectures with arguments that are known.
fn all() -> impl Iterator<Item = (&'static str, &'static [Arg])> {
    syscall::names().filter_map(|call| Some((call, signature::args(call)?)))
}

/// The call that another one is, with the same arguments and a wider time or offset.
fn plain(call: &str) -> &str {
    let wider = ["_time64", "64"];
    let mut plain = wider.iter().filter_map(|end| call.strip_suffix(end));
    plain.find(|call| syscall::is_known(call)).unwrap_or(call)
}

#[test]
fn every_argument_decides_or_has_a_reason_not_to() {
    let reason = |call, argument| {
        let mut reasons = NOT_DECIDING.iter();
        let found = reasons.find(|(_, arguments)| arguments.contains(&(call, argument)));
        found.map(|(reason, _)| *reason)
    };
    let mut unclassified = Vec::new();
    for (call, args) in all() {
        for arg in args.iter().filter(|arg| !arg.c_type().contains('*')) {
            let name = arg.name();
            let is_object = OBJECTS.contains(&name);
            let classes = [
                for_argument(call, name).is_some(),
                reason(call, name)
                    .or_else(|| reason(plain(call), name))
                    .is_some(),
                is_object && for_argument(call, name).is_none(),
            ];
            if classes.iter().filter(|is| **is).count() != 1 {
                unclassified.push(format!("{call} {name}: {} {classes:?}", arg.c_type()));
            }
        }
    }
    assert!(unclassified.is_empty(), "{}", unclassified.join("\n"));
}

#[test]
fn calls_without_a_signature_have_a_reason() {
    let unknown = syscall::names().filter(|call| signature::args(call).is_none());
    for call in unknown {
        assert!(WITHOUT_SIGNATURE.contains(&call), "{call}");
    }
    for call in WITHOUT_SIGNATURE {
        assert!(syscall::is_known(call), "{call}");
        assert!(
            signature::args(call).is_none(),
            "{call} has a signature now"
        );
    }
}

#[test]
fn reasons_and_objects_are_about_arguments_that_exist() {
    let exists = |call: &str, argument: &str| {
        signature::args(call).is_some_and(|args| args.iter().any(|arg| arg.name() == argument))
    };
    for (reason, arguments) in NOT_DECIDING {
        for (call, argument) in *arguments {
            assert!(exists(call, argument), "{reason}: {call} {argument}");
        }
    }
    for object in OBJECTS {
        assert!(all().any(|(call, _)| exists(call, object)), "{object}");
    }
    for (calls, argument, _) in TABLE {
        for call in *calls {
            assert!(exists(call, argument), "{call} {argument}");
        }
    }
}

#[test]
fn a_filter_sees_every_deciding_argument_or_it_is_said_that_it_doesn_t() {
    for arch in Arch::all() {
        for (calls, argument, selector) in TABLE {
            for call in calls
                .iter()
                .filter(|call| syscall::number(arch, call).is_some())
            {
                match signature::index(arch, call, argument) {
                    Some(index) => {
                        assert_eq!(at(arch, call, index), Some(*selector), "{arch} {call}");
                    }
                    None => assert!(hidden(arch, call).is_some(), "{arch} {call} {argument}"),
                }
            }
        }
        for hidden in HIDDEN.iter().chain([&HIDDEN_PROTECTION]) {
            let names = hidden.calls.iter().chain(hidden.instead_of);
            assert!(names.copied().all(syscall::is_known), "{}", hidden.why);
        }
    }
}

#[test]
fn calls_with_wider_times_and_offsets_have_the_same_selectors() {
    for (call, args) in all().filter(|(call, _)| plain(call) != *call) {
        let names = signature::args(plain(call))
            .unwrap_or_default()
            .iter()
            .map(Arg::name);
        for name in names.filter(|name| args.iter().any(|arg| arg.name() == *name)) {
            assert_eq!(
                for_argument(call, name),
                for_argument(plain(call), name),
                "{call} {name}"
            );
        }
    }
}

#[test]
fn flags_that_are_joined_have_a_family_of_flags() {
    for (calls, argument, selector) in TABLE {
        for call in *calls {
            let family = family::for_argument(call, argument);
            let is_flags = family.is_some_and(|family| family.flags(Arch::X86_64, 0, 32).is_some());
            assert!(*selector != Flags || is_flags, "{call} {argument}");
        }
    }
}

#[test]
fn what_protects_memory_decides_on_every_architecture() {
    for arch in Arch::all() {
        for call in ["mmap", "mmap2", "mprotect", "pkey_mprotect"] {
            if syscall::number(arch, call).is_none() {
                continue;
            }
            match signature::index(arch, call, "prot") {
                Some(index) => assert_eq!(at(arch, call, index), Some(Flags), "{arch} {call}"),
                None => assert_eq!(
                    hidden(arch, call),
                    Some(&HIDDEN_PROTECTION),
                    "{arch} {call}"
                ),
            }
        }
    }
}
