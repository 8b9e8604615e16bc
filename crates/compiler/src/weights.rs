//! Weights: how much each decision counts, from the profile, the objective and the target kernel.
//!
//! Layout asks here how often a range of numbers or a value of an argument occurs, and never looks at
//! the profile itself. A call that the kernel decides from its bitmap (5.11) runs no instruction, so it
//! counts little: not nothing, because foreign kernels and stacks may still run it.

use tamis_abi::{Arch, Nr, syscall};
use tamis_profile::{Call, Profile};

use crate::options::Options;

/// How much more a number counts whose decision is made at every call, and not once at installation.
const UNCACHED_FACTOR: u64 = 4;

/// How much each decision counts.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    profile: Option<&'a Profile>,
    has_bitmap: bool,
}

impl<'a> Weights<'a> {
    /// The weights that the options ask for.
    pub fn new(options: &'a Options) -> Weights<'a> {
        Weights {
            profile: options.profile.as_ref(),
            has_bitmap: options.has_bitmap(),
        }
    }

    /// How much the numbers `first..=last` count, all of which are decided alike: always allowed by
    /// number, or not.
    pub fn numbers(&self, arch: Arch, first: Nr, last: Nr, is_allowed: bool) -> u64 {
        let count = match self.profile {
            Some(profile) => profile.count(arch, first, last),
            None => known_calls(arch, first, last),
        };
        let is_cached = is_allowed && self.has_bitmap;
        count * if is_cached { 1 } else { UNCACHED_FACTOR }
    }

    /// What is known of the arguments of calls with a number in `first..=last`. Linear in the profile.
    pub fn calls(&self, arch: Arch, first: Nr, last: Nr) -> Vec<&'a Call> {
        let calls = self.profile.into_iter().flat_map(Profile::calls);
        calls
            .filter(|(of, nr, _)| *of == arch && (first..=last).contains(nr))
            .map(|(_, _, call)| call)
            .collect()
    }
}

/// How many calls an architecture has in a range of numbers. Linear in the size of its table.
fn known_calls(arch: Arch, first: Nr, last: Nr) -> u64 {
    let known = syscall::all(arch).map(|(nr, _)| nr);
    known.filter(|nr| (first..=last).contains(nr)).count() as u64
}
