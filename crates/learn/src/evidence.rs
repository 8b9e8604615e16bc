//! What all runs together say of a call.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tamis_abi::{Arch, Nr};
use tamis_profile::{Call, Coverage, Profile};

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
    /// In how many runs it was made, and with which values.
    pub(crate) coverage: Coverage,
    /// How many runs there are.
    pub(crate) runs: u64,
}

/// The calls that were made, by architecture and number.
pub(crate) type Calls = BTreeMap<(Arch, Nr), Evidence>;

/// The calls that were made in any of the runs, and how many runs there are. Calls that were never made but always denied are
/// omitted: the program went on without them.
pub(crate) fn of(runs: &[Run<'_>]) -> (Calls, u64) {
    let mut sum = Cow::default();
    for run in runs {
        match runs.len() {
            1 => sum = Cow::Borrowed(run.profile),
            _ => Cow::to_mut(&mut sum).merge(run.profile),
        }
    }
    let made = sum.calls().filter(|(_, _, call)| call.made() > 0);
    let calls = made.map(|(arch, nr, call)| {
        let evidence = Evidence {
            call: with_samples(call),
            coverage: sum.coverage(call),
            runs: sum.run_count(),
        };
        ((arch, nr), evidence)
    });
    (calls.collect(), sum.run_count())
}

/// A call with the values of its argument lists among those of single arguments. Both may be about the same calls, so of each
/// value the greater count is kept: together they are no more than there were calls.
fn with_samples(call: &Call) -> Call {
    let mut call = call.clone();
    let mut sums: BTreeMap<(u8, u64), u64> = BTreeMap::new();
    for (args, count) in &call.samples {
        for (index, value) in (0..).zip(args) {
            let sum = sums.entry((index, *value)).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    for ((index, value), sum) in sums {
        let count = call.values.entry(index).or_default().entry(value);
        let count = count.or_default();
        *count = sum.max(*count);
    }
    call
}

/// How many calls were made in one run only: about so many new ones are to be expected in as many further runs (Good and
/// Turing), so their share of the runs is the number to expect in the next one.
pub(crate) fn made_once(calls: &Calls) -> u64 {
    let mut once = 0;
    for evidence in calls.values() {
        once += u64::from(evidence.coverage.runs == 1);
    }
    once
}

/// Whether an argument has more values than are usual.
pub(crate) fn has_many_values(calls: &Calls) -> bool {
    const USUAL: usize = 64;
    let mut values = calls
        .values()
        .flat_map(|evidence| evidence.call.values.values());
    values.any(|values| values.len() > USUAL)
}

impl Evidence {
    /// How often it was made.
    pub(crate) const fn made(&self) -> u64 {
        self.call.made()
    }
}
