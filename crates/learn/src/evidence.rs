//! What all runs together say of a call.

use std::collections::BTreeMap;

use tamis_abi::{Arch, Nr};
use tamis_profile::{Call, Profile};

/// A run of the program, or several that were merged.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What it is called in the policy's comments.
    pub name: &'a str,
    /// What it called.
    pub profile: &'a Profile,
}

/// What all runs together say of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// The sums.
    pub(crate) call: Call,
    /// In how many runs it was made.
    pub(crate) runs: usize,
}

/// The calls that were made, by architecture and number.
pub(crate) type Calls = BTreeMap<(Arch, Nr), Evidence>;

/// The calls that were made in any of the runs. Those that were never made but always denied are omitted: the program
/// went on without them.
pub(crate) fn of(runs: &[Run<'_>]) -> Calls {
    let mut calls = Calls::new();
    for run in runs {
        for (arch, nr, call) in run.profile.calls() {
            if call.count > call.denied {
                let evidence = calls.entry((arch, nr)).or_default();
                evidence.call.merge(call);
                evidence.runs += 1;
            }
        }
    }
    calls
}

impl Evidence {
    /// How often it was made.
    pub(crate) const fn made(&self) -> u64 {
        self.call.count.saturating_sub(self.call.denied)
    }
}
