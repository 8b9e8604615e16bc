//! The reasons why tests of the kernel have other results under tamis than natively.

/// The reason of a difference; `None` if it is a fault.
pub(super) fn reason(way: &str, test: &str) -> Option<&'static str> {
    let found = REASONS.iter().find(|(ways, tests, _)| {
        (ways.is_empty() || ways.contains(&way)) && tests.iter().any(|part| test.contains(part))
    });
    found.map(|(_, _, reason)| *reason)
}

/// The ways to run a command (none means all), parts of the tests' names, and the reason.
type Reason = (
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
);

const FILTERED: &[&str] = &["exec", "notify", "ptrace-seccomp", "patched"];
const TRACED: &[&str] = &["notify", "ptrace-seccomp", "patched"];

const REASONS: [Reason; 6] = [
    (
        FILTERED,
        &["mode_strict"],
        "the kernel doesn't let a task under a filter into strict mode",
    ),
    (
        FILTERED,
        &["mode_filter_get_seccomp", "get_metadata"],
        "the test expects that its filter is the task's first",
    ),
    (
        TRACED,
        &[
            "TRACE_",
            "precedence.trace",
            "O_SUSPEND_SECCOMP",
            "syscall_restart",
        ],
        "a task has one tracer, and the command's is the platform",
    ),
    (
        &["notify"],
        &["user_notification", "user_ioctl_notification"],
        "a task has one listener, and the command's is the platform",
    ),
    (
        &["ptrace-seccomp", "patched"],
        &["user_notification", "user_ioctl_notification"],
        "the platform denies listeners, whose answers would come before its own",
    ),
    (
        TRACED,
        &["two_sibling_want_nnp"],
        "the platform sets no_new_privs",
    ),
];
