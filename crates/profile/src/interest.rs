//! The arguments whose values are worth recording: those that are constants and flags.
//!
//! File descriptors, addresses, lengths and numbers of tasks differ from run to run, and no policy should depend on
//! them. What a policy can depend on has names: commands, options, families, protections.

use tamis_abi::signature::{self, Arg, Width};
use tamis_abi::{Arch, ArgIndex, family};

/// An argument whose values are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interesting {
    /// Its place.
    pub index: ArgIndex,
    /// How many of its bits the kernel reads.
    pub width: Width,
}

/// The arguments of a call whose values are constants or flags.
///
/// ```
/// use tamis_abi::{Arch, signature::Width};
/// use tamis_profile::interest;
/// let places = |call| -> Vec<usize> {
///     interest::arguments(Arch::X86_64, call).iter().map(|arg| arg.index.index()).collect()
/// };
/// assert_eq!(places("socket"), [0, 1, 2]);
/// assert_eq!(places("ioctl"), [1]);
/// assert_eq!(places("mmap"), [2, 3]);
/// assert_eq!(places("read"), [] as [usize; 0]);
/// ```
pub fn arguments(arch: Arch, call: &str) -> Vec<Interesting> {
    let args = signature::args(call).unwrap_or_default();
    let chosen = args.iter().filter(|arg| is_symbolic(call, arg));
    let placed = chosen.filter_map(|arg| {
        let index = signature::index(arch, call, arg.name())?;
        let width = signature::width(arch, call, arg);
        Some(Interesting { index, width })
    });
    placed.collect()
}

/// Arguments with few values whose names depend on another argument, or that are several constants in one.
const ALSO: [(&str, &str); 6] = [
    ("ioctl", "cmd"),
    ("personality", "personality"),
    ("semctl", "cmd"),
    ("setsockopt", "optname"),
    ("socket", "protocol"),
    ("socketpair", "protocol"),
];

/// The arguments that decide what a call does: with any value, these calls open much of the kernel.
const SELECTORS: [(&str, &str); 15] = [
    ("clone", "clone_flags"),
    ("fcntl", "cmd"),
    ("ioctl", "cmd"),
    ("mmap", "prot"),
    ("mprotect", "prot"),
    ("personality", "personality"),
    ("pkey_mprotect", "prot"),
    ("prctl", "option"),
    ("ptrace", "request"),
    ("setns", "flags"),
    ("socket", "family"),
    ("socket", "protocol"),
    ("socket", "type"),
    ("socketpair", "family"),
    ("unshare", "unshare_flags"),
];

/// Whether an argument decides what the call does: with any value of it, the call opens much of the kernel.
pub fn selects(arch: Arch, call: &str, index: ArgIndex) -> bool {
    let mut arguments = SELECTORS.iter().filter(|(name, _)| *name == call);
    arguments.any(|(_, argument)| signature::index(arch, call, argument) == Some(index))
}

fn is_symbolic(call: &str, arg: &Arg) -> bool {
    let has_names = family::of(call, arg.name()).is_some() || ALSO.contains(&(call, arg.name()));
    // `AT_FDCWD` is a name among descriptors, and the signature of a restartable sequence is a number.
    has_names && !arg.name().ends_with("fd") && call != "rseq"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_exists() {
        for (call, name) in ALSO {
            let args = signature::args(call).unwrap_or_else(|| panic!("{call}"));
            assert!(args.iter().any(|arg| arg.name() == name), "{call} {name}");
        }
    }
}
