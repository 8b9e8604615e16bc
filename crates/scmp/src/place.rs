//! The numbers under which libseccomp keeps the rules of a name on an architecture.

use tamis_abi::syscall::{self, Name};
use tamis_abi::{Arch, Nr};

use crate::number::has_multiplexers;

/// The place of a rule for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The call's own number.
    Direct(Nr),
    /// `socketcall` or `ipc`, with a selector as argument 0.
    Multiplexed {
        /// The number of the multiplexer.
        nr: Nr,
        /// The value of argument 0: [`Conditions::with_selector`](crate::Conditions::with_selector).
        selector: u32,
    },
    /// The architecture doesn't have the call. libseccomp keeps such rules under a negative number that no program
    /// tests, and rejects conflicts between them.
    Absent,
}

/// Finds the places of names on one architecture.
///
/// ```
/// use tamis_abi::{Arch, Nr, syscall::Name};
/// use tamis_scmp::{Place, Resolver};
/// let socket = Name::find("socket").unwrap();
/// let places: Vec<Place> = Resolver::new(Arch::X86).places(socket, "socket").collect();
/// let multiplexed = Place::Multiplexed { nr: Nr(102), selector: 1 };
/// assert_eq!(places, [multiplexed, Place::Direct(Nr(359))]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Resolver {
    arch: Arch,
    multiplexes: bool,
}

impl Resolver {
    /// A resolver for an architecture.
    pub fn new(arch: Arch) -> Resolver {
        Resolver {
            arch,
            multiplexes: has_multiplexers(arch),
        }
    }

    /// The architecture.
    pub const fn arch(self) -> Arch {
        self.arch
    }

    /// The places of a name with this text, in the order in which libseccomp adds the rule to them. Empty if
    /// libseccomp ignores the rule: for absent calls on architectures with multiplexers.
    pub fn places(self, name: Name, text: &str) -> impl Iterator<Item = Place> {
        let direct = name.number(self.arch).map(Place::Direct);
        let multiplexed = self
            .multiplexes
            .then(|| syscall::multiplexed(self.arch, text))
            .flatten()
            .map(|to| Place::Multiplexed {
                nr: to.nr,
                selector: to.call,
            });
        let is_absent = direct.is_none() && !self.multiplexes;
        let absent = is_absent.then_some(Place::Absent);
        multiplexed.into_iter().chain(direct).chain(absent)
    }
}
