//! Calls that are needed although they were not recorded: they depend on signals, on the machine's clock or on chance.
//! The same holds for their arguments, so a needed call is allowed with any arguments even if it was recorded.

use std::collections::BTreeSet;

use tamis_abi::selector;
use tamis_policy::tamis;

/// The needed calls, by reason.
pub(crate) const NEEDED: [(&str, &[&str]); 5] = [
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
            "writev",
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
        "Waiting for what may be there at once, or not yet",
        &[
            "poll",
            "ppoll",
            "ppoll_time64",
            "select",
            "_newselect",
            "pselect6",
            "pselect6_time64",
            "nanosleep",
            "clock_nanosleep",
            "clock_nanosleep_time64",
            "pause",
        ],
    ),
    (
        "Memory and locks, which depend on sizes and on chance",
        &["brk", "mremap", "munmap", "futex", "madvise", "sched_yield"],
    ),
];

/// Sets that are allowed as a whole once one of their calls was recorded: the calls of a set have similar effects. The
/// calls of other sets (processes, namespaces, users, keys, the machine) are allowed one by one.
pub(crate) const GROUPS: [&str; 11] = [
    "@default",
    "@basic-io",
    "@file-system",
    "@sync",
    "@io-event",
    "@aio",
    "@network-io",
    "@ipc",
    "@signal",
    "@timer",
    "@memlock",
];

/// Calls that reach other processes. They are allowed only if they were recorded themselves, like [calls with a
/// selecting argument](selector::is_several).
const ALONE: [&str; 2] = ["process_vm_readv", "process_vm_writev"];

/// The groups with a recorded call that is in no other group. Their calls exclude those that are allowed one by one
/// only.
pub(crate) fn groups(made: &BTreeSet<&str>) -> Vec<(&'static str, Vec<&'static str>)> {
    let groups = GROUPS.map(|name| {
        let calls = tamis::built_in_set(name).into_iter().flatten();
        (name, calls.collect::<Vec<&'static str>>())
    });
    let count = |call: &str| {
        groups
            .iter()
            .filter(|(_, calls)| calls.contains(&call))
            .count()
    };
    let is_made = |calls: &[&'static str]| {
        let mut own = calls.iter().filter(|call| count(call) == 1);
        own.any(|call| made.contains(call))
    };
    let is_alone = |call: &str| ALONE.contains(&call) || selector::is_several(call);
    let chosen = groups.iter().filter(|(_, calls)| is_made(calls));
    let joined = chosen.map(|(name, calls)| {
        let calls = calls.iter().filter(|call| !is_alone(call)).copied();
        (*name, calls.collect())
    });
    joined.collect()
}

/// Whether a call is needed independently of the recorded calls.
pub(crate) fn is_needed(call: &str) -> bool {
    NEEDED.iter().any(|(_, calls)| calls.contains(&call))
}

/// Newer calls, with the older ones that the C library and language runtimes fall back to after `ENOSYS`. Other errors
/// are returned to the program.
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

/// The older calls that programs fall back to; `None` without a fallback.
pub(crate) fn older(call: &str) -> Option<&'static [&'static str]> {
    let mut fallbacks = FALLBACKS.iter();
    fallbacks.find_map(|(newer, older)| (*newer == call).then_some(*older))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_decides_is_needed_with_any_arguments() {
        for call in NEEDED.iter().flat_map(|(_, calls)| *calls) {
            assert!(!selector::is_several(call), "{call}");
        }
    }
}
