//! Weights: how much each decision counts, by the profile, the objective and the target kernel.
//!
//! Layout gets the frequencies of number ranges and argument values here and does not read the profile itself. A call
//! that the kernel decides from its bitmap (5.11) runs no instruction, so it counts little, but more than nothing,
//! because other kernels and stacks may still run the filter for it.

use tamis_abi::{Arch, Nr};
use tamis_profile::{Call, Profile};

use crate::cost::Prices;
use crate::options::{CompileOptions, Effort};

/// The number of recorded calls answered from the bitmap that weigh as much as one that runs the filter.
const CACHED_PER_UNCACHED: u64 = 1024;

/// The most numbers of one architecture that may get a question of their own.
const MAX_HOT: usize = 16;

/// The kind of decision for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionKind {
    /// Allowed by number: the kernel may answer from its bitmap.
    Allowed,
    /// Another action by number.
    Answered,
    /// By the arguments.
    ByArguments,
}

/// The weights of decisions.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    profile: Option<&'a Profile>,
    has_bitmap: bool,
    prices: Prices,
    effort: Effort,
}

impl<'a> Weights<'a> {
    /// The weights for these options.
    pub fn new(options: &'a CompileOptions) -> Weights<'a> {
        Weights {
            profile: options.profile.as_ref(),
            has_bitmap: options.has_bitmap(),
            prices: Prices::on(options.target, options.objective),
            effort: options.effort,
        }
    }

    /// The prices of questions.
    pub fn prices(&self) -> Prices {
        self.prices
    }

    /// The effort of the search for trees.
    pub fn effort(&self) -> Effort {
        self.effort
    }

    /// The weight of the numbers `first..=last`, which are all decided alike: their frequency in the profile or in
    /// ordinary programs, times the weight of one such call. Linear in the known calls of the range.
    pub fn numbers(&self, arch: Arch, first: Nr, last: Nr, kind: DecisionKind) -> u64 {
        let profile = self.profile.unwrap_or_else(|| Profile::builtin(arch));
        let count = profile.count(arch, first, last);
        count.saturating_mul(self.per_call(arch, kind))
    }

    /// The weight of one call that is decided in this way.
    pub fn per_call(&self, arch: Arch, kind: DecisionKind) -> u64 {
        let is_cached = self.has_bitmap && kind == DecisionKind::Allowed && arch != Arch::X32;
        match self.profile {
            Some(_) if is_cached => 1,
            Some(_) => CACHED_PER_UNCACHED,
            None => self.unrecorded(arch, kind),
        }
    }

    /// The weight of one call of ordinary programs. Programs seldom make calls that are denied, and hardly any of
    /// 32-bit architectures and x32. Calls that run the filter on every kernel count for more than those answered
    /// from a bitmap, but the latter still count, because filters run on old kernels too.
    fn unrecorded(&self, arch: Arch, kind: DecisionKind) -> u64 {
        let by_kind = match kind {
            DecisionKind::ByArguments if self.has_bitmap => 128,
            DecisionKind::Allowed | DecisionKind::ByArguments => 8,
            DecisionKind::Answered => 4,
        };
        let is_usual = is_usual(arch);
        // The profile already counts calls of unusual architectures as a tenth.
        by_kind * if is_usual { 8 } else { 5 }
    }

    /// The numbers of an architecture that were recorded most often, ascending.
    pub fn hot(&self, arch: Arch) -> Vec<u32> {
        let calls = self.profile.into_iter().flat_map(Profile::calls);
        let of_arch = calls.filter(|(of, _, call)| *of == arch && call.count > 0);
        let mut counts: Vec<(u64, u32)> = of_arch.map(|(_, nr, call)| (call.count, nr.0)).collect();
        counts.sort_unstable_by_key(|(count, nr)| (std::cmp::Reverse(*count), *nr));
        let mut hot: Vec<u32> = counts.into_iter().take(MAX_HOT).map(|(_, nr)| nr).collect();
        hot.sort_unstable();
        hot
    }

    /// The recorded calls, with their arguments, that have a number in `first..=last`. Linear in the profile.
    pub fn calls(&self, arch: Arch, first: Nr, last: Nr) -> Vec<&'a Call> {
        let calls = self.profile.into_iter().flat_map(Profile::calls);
        calls
            .filter(|(of, nr, _)| *of == arch && (first..=last).contains(nr))
            .map(|(_, _, call)| call)
            .collect()
    }
}

/// Whether current programs make calls of this architecture.
fn is_usual(arch: Arch) -> bool {
    arch.is_64_bit() && arch != Arch::X32
}
