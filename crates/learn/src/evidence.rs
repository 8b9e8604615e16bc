//! The counts of a call, summed over all runs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tamis_abi::{Arch, Nr};
use tamis_profile::{Call, Coverage, Profile};

/// A run of the program, or several merged runs.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The name in the policy's comments.
    pub name: &'a str,
    /// The recorded calls.
    pub profile: &'a Profile,
}

/// The counts of a call, summed over all runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// The sums.
    pub(crate) call: Call,
    /// The number of runs with this call, and with each value of its arguments.
    pub(crate) coverage: Coverage,
    /// The number of all runs.
    pub(crate) runs: u64,
}

/// The recorded calls, by architecture and number.
pub(crate) type Calls = BTreeMap<(Arch, Nr), Evidence>;

/// The calls of all runs, and the number of runs. Calls that were always denied are omitted: the program ran without
/// them.
pub(crate) fn calls_of_runs(runs: &[Run<'_>]) -> (Calls, u64) {
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

/// Adds the values of the argument lists to those of the single arguments. Both may count the same calls, so the
/// greater count of a value is kept; the sums then don't exceed the number of calls.
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

/// The number of calls that were made in a single run. Divided by the number of runs, it estimates the number of new
/// calls in the next run (Good–Turing).
pub(crate) fn made_once(calls: &Calls) -> u64 {
    let mut once = 0;
    for evidence in calls.values() {
        once += u64::from(evidence.coverage.runs == 1);
    }
    once
}

/// Whether an argument has unusually many values.
pub(crate) fn has_many_values(calls: &Calls) -> bool {
    const USUAL: usize = 64;
    let mut values = calls
        .values()
        .flat_map(|evidence| evidence.call.values.values());
    values.any(|values| values.len() > USUAL)
}

impl Evidence {
    /// The number of calls that were not denied.
    pub(crate) const fn made(&self) -> u64 {
        self.call.made()
    }
}
