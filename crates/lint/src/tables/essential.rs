//! Calls of the C library and the kernel for every program.

/// An essential call.
pub(crate) struct Essential {
    /// The call.
    pub(crate) call: &'static str,
    /// The calls after which programs need it; empty if every program does.
    pub(crate) needed_after: &'static [&'static str],
    /// The consequence of a denial.
    pub(crate) broken: &'static str,
    /// Whether ordinary programs are affected in every run.
    pub(crate) is_certain: bool,
}

const fn row(
    call: &'static str,
    needed_after: &'static [&'static str],
    broken: &'static str,
    is_certain: bool,
) -> Essential {
    Essential {
        call,
        needed_after,
        broken,
        is_certain,
    }
}

/// Further calls of ordinary programs in nearly every run.
pub(crate) const EVERYDAY: [&str; 20] = [
    "clock_gettime",
    "clone",
    "clone3",
    "epoll_wait",
    "fcntl",
    "fcntl64",
    "futex",
    "futex_time64",
    "getpid",
    "ioctl",
    "lseek",
    "madvise",
    "poll",
    "ppoll",
    "rt_sigaction",
    "rt_sigprocmask",
    "socket",
    "wait4",
    "write",
    "writev",
];

/// All rows.
pub(crate) const ALL: &[Essential] = &[
    row(
        "exit_group",
        &[],
        "no process can end by itself: after an error of exit_group glibc crashes with SIGSEGV",
        true,
    ),
    row(
        "exit",
        &["clone", "clone3"],
        "a thread that ends takes its process with it",
        true,
    ),
    row(
        "rt_sigreturn",
        &["rt_sigaction"],
        "no signal handler can return",
        true,
    ),
    row(
        "sigreturn",
        &["sigaction", "rt_sigaction"],
        "no signal handler can return",
        true,
    ),
    row(
        "restart_syscall",
        &["nanosleep", "clock_nanosleep", "poll", "futex"],
        "sleeps and waits that a stop interrupts fail instead of going on",
        false,
    ),
];
