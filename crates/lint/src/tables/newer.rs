//! New calls with the older calls that programs fall back to after `ENOSYS`.

/// A newer call.
pub(crate) struct NewerCall {
    /// The call.
    pub(crate) call: &'static str,
    /// The fallbacks after `ENOSYS`, the best first.
    pub(crate) fallbacks: &'static [&'static str],
    /// The consequence of another error.
    pub(crate) broken: &'static str,
}

const fn row(
    call: &'static str,
    fallbacks: &'static [&'static str],
    broken: &'static str,
) -> NewerCall {
    NewerCall {
        call,
        fallbacks,
        broken,
    }
}

/// All rows. The `_time64` calls of 32-bit architectures need no row.
pub(crate) const ALL: &[NewerCall] = &[
    row("clone3", &["clone"], "glibc 2.34 creates no threads"),
    row("openat2", &["openat"], "container tools open no files"),
    row(
        "faccessat2",
        &["faccessat", "access"],
        "glibc 2.33 reports files as inaccessible",
    ),
    row(
        "statx",
        &["newfstatat", "fstatat64", "stat64", "stat"],
        "programs report files as missing",
    ),
    row(
        "fchmodat2",
        &["fchmodat"],
        "glibc 2.39 fails to change modes",
    ),
    row(
        "close_range",
        &["close"],
        "programs leak descriptors into children",
    ),
    row("futex_waitv", &["futex"], "Wine stops working"),
    row("epoll_pwait2", &["epoll_pwait"], "event loops stop"),
];
