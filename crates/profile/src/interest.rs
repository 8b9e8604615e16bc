//! The arguments whose values are worth recording: constants and flags.
//!
//! File descriptors, addresses, lengths and numbers of tasks differ from run to run, and no policy should depend on
//! them. Useful values have names: commands, options, families, protections. All [selecting](selector) arguments are
//! included.

use tamis_abi::signature::{self, Arg, Width};
use tamis_abi::{Arch, ArgIndex, family, selector};

/// An argument whose values are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interesting {
    /// The index.
    pub index: ArgIndex,
    /// The number of bits that the kernel reads.
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

fn is_symbolic(call: &str, arg: &Arg) -> bool {
    // `AT_FDCWD` is a name among descriptors, and the signature of a restartable sequence is a number.
    let is_named = !arg.name().ends_with("fd") && call != "rseq";
    let has_names = is_named && family::for_argument(call, arg.name()).is_some();
    has_names || selector::for_argument(call, arg.name()).is_some()
}

#[cfg(test)]
mod tests {
    use tamis_abi::syscall;

    use super::*;

    #[test]
    fn all_that_decide_are_recorded_on_every_architecture() {
        for arch in Arch::all() {
            for (_, call) in syscall::all(arch) {
                let recorded: Vec<ArgIndex> =
                    arguments(arch, call).iter().map(|arg| arg.index).collect();
                for index in ArgIndex::ALL {
                    let decides = selector::at(arch, call, index).is_some();
                    assert!(
                        !decides || recorded.contains(&index),
                        "{arch} {call} {index:?}"
                    );
                }
            }
        }
    }
}
