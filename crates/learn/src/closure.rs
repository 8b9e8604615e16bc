//! What a program needs though it wasn't seen: it depends on signals, on the machine's clock and on chance.
//!
//! Their arguments depend on that too: a needed call that was seen is not allowed with less than one that wasn't.

use std::collections::BTreeSet;

use tamis_abi::selector;
use tamis_policy::tamis;

/// Calls that are needed, with the reason.
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

/// The sets of calls that are allowed as a whole if one of theirs is made: what they reach doesn't differ much. Of other
/// sets - processes, namespaces, users, keys, the machine - each call is allowed by itself.
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

/// Calls of these sets that are allowed only if they were made themselves, beside those [of which an argument
/// decides](selector::is_several) what they reach: these reach other processes.
const ALONE: [&str; 2] = ["process_vm_readv", "process_vm_writev"];

/// The groups of which a call was made that is in no other group, with their calls but those that are allowed alone.
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

/// Whether a call is needed though it may not be seen.
pub(crate) fn is_needed(call: &str) -> bool {
    NEEDED.iter().any(|(_, calls)| calls.contains(&call))
}

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
