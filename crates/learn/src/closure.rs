//! What a program needs though it wasn't seen: it depends on signals, on the machine's clock and on chance.

/// Calls that are needed, with the reason.
pub(crate) const NEEDED: [(&str, &[&str]); 4] = [
    (
        "Ending, and returning from signals",
        &[
            "exit",
            "exit_group",
            "rt_sigreturn",
            "sigreturn",
            "restart_syscall",
        ],
    ),
    (
        "Aborting: assertions and failed checks of the C library",
        &[
            "rt_sigaction",
            "rt_sigprocmask",
            "getpid",
            "gettid",
            "tgkill",
        ],
    ),
    (
        "The clock, where the kernel doesn't answer in user space",
        &[
            "clock_gettime",
            "clock_gettime64",
            "gettimeofday",
            "time",
            "clock_getres",
            "getcpu",
        ],
    ),
    (
        "Memory and locks, which depend on sizes and on chance",
        &["brk", "mremap", "munmap", "futex", "madvise", "sched_yield"],
    ),
];

/// Newer calls for which the C library and the runtimes of languages fall back to older ones, if the kernel says that it
/// has none of them, with the older calls. Any other error is passed on to the program.
pub(crate) const FALLBACKS: [(&str, &[&str]); 18] = [
    ("clone3", &["clone"]),
    ("close_range", &["close"]),
    ("copy_file_range", &["read", "write"]),
    ("epoll_pwait2", &["epoll_wait", "epoll_pwait"]),
    ("faccessat2", &["faccessat"]),
    ("fchmodat2", &["fchmodat"]),
    ("futex_waitv", &["futex"]),
    ("getrandom", &["openat", "read"]),
    ("landlock_create_ruleset", &[]),
    ("memfd_create", &["openat", "ftruncate"]),
    ("mseal", &[]),
    ("openat2", &["openat"]),
    ("pidfd_open", &[]),
    ("preadv2", &["preadv"]),
    ("pwritev2", &["pwritev"]),
    ("renameat2", &["renameat", "rename"]),
    ("rseq", &["getcpu"]),
    ("statx", &["newfstatat", "fstat", "stat", "lstat"]),
];

/// The older calls to which programs fall back from this one; `None` if they don't.
pub(crate) fn older(call: &str) -> Option<&'static [&'static str]> {
    let mut fallbacks = FALLBACKS.iter();
    fallbacks.find_map(|(newer, older)| (*newer == call).then_some(*older))
}
