//! The data type: counts of calls, argument values, and whole argument lists.

use std::collections::BTreeMap;

use tamis_abi::{Arch, Nr};

use crate::runs::Runs;

/// The six arguments of a call.
pub type Args = [u64; 6];

/// The counts of one system call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The count of calls.
    pub count: u64,
    /// The count of each value, for each recorded argument (0..=5). If they add up to less than [`count`](Call::count),
    /// the other values are unknown.
    pub values: BTreeMap<u8, BTreeMap<u64, u64>>,
    /// The number of calls at least whose value was lost, for each such argument. The recorder's table was full, so the
    /// known values are incomplete regardless of their sum.
    pub lost_values: BTreeMap<u8, u64>,
    /// Whole argument lists and their counts. They are more precise than `values` if arguments depend on each
    /// other.
    pub samples: BTreeMap<Args, u64>,
    /// The numbers of failed calls by error number; included in [`count`](Call::count).
    pub errors: BTreeMap<u16, u64>,
    /// The number of calls answered by a filter or tracer instead of the kernel. Included in [`count`](Call::count),
    /// and in `errors` if they failed.
    pub denied: u64,
    /// The durations, if they were measured. Boxed: few profiles have times, and all have a thousand calls.
    pub times: Option<Box<Times>>,
    /// The number of runs with this call. Only profiles of several runs have it; see [`Profile::coverage`].
    pub coverage: Coverage,
}

/// The number of runs with a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The runs with the call.
    pub runs: u64,
    /// The runs with each value of each argument.
    pub values: BTreeMap<(u8, u64), u64>,
}

impl Coverage {
    /// The coverage of a single run with these counts.
    fn of_one_run(call: &Call) -> Coverage {
        let values = call.values.iter();
        let values = values.flat_map(|(arg, values)| values.iter().map(move |seen| (*arg, seen)));
        Coverage {
            runs: u64::from(call.made() > 0),
            values: values
                .filter(|(_, (_, count))| **count > 0)
                .map(|(arg, (value, _))| ((arg, *value), 1))
                .collect(),
        }
    }

    fn combine(&mut self, other: &Coverage, with: fn(&mut u64, u64)) {
        with(&mut self.runs, other.runs);
        for (place, runs) in &other.values {
            with(self.values.entry(*place).or_default(), *runs);
        }
    }
}

/// Durations of calls, from entry to exit, sleep included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The sum.
    pub total_ns: u64,
    /// The minimum.
    pub min_ns: u64,
    /// The maximum.
    pub max_ns: u64,
    /// The number of calls by the bit length of their duration: below 1 ns, 1 ns, 2 to 3, 4 to 7 and so on. The last
    /// bucket includes all longer ones.
    pub buckets: [u64; Times::BUCKETS],
}

impl Times {
    /// The count of buckets.
    pub const BUCKETS: usize = 40;

    /// Adds the times of other calls.
    pub fn merge(&mut self, other: &Times) {
        self.combine(other, add);
    }

    fn combine(&mut self, other: &Times, with: fn(&mut u64, u64)) {
        with(&mut self.total_ns, other.total_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        for (count, more) in self.buckets.iter_mut().zip(other.buckets) {
            with(count, more);
        }
    }
}

/// Counts of system calls. Ordered, so that the same profile always has the same bytes.
///
/// ```
/// use tamis_abi::{Arch, Nr};
/// use tamis_profile::Profile;
/// let mut monday = Profile::default();
/// monday.call_mut(Arch::X86_64, Nr(0)).count += 3;
/// let mut week = monday.clone();
/// week.merge(&monday);
/// assert_eq!(week.call(Arch::X86_64, Nr(0)).unwrap().count, 6);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Ordered, because layout queries the counts of ranges, several hundred times per compilation.
    calls: BTreeMap<(Arch, Nr), Call>,
    runs: Runs,
}

impl Call {
    /// The number of calls that were not answered by a filter or tracer.
    pub const fn made(&self) -> u64 {
        self.count.saturating_sub(self.denied)
    }

    /// Combines all counts with those of the same call from another profile.
    fn combine(&mut self, other: &Call, with: fn(&mut u64, u64)) {
        with(&mut self.count, other.count);
        for (index, values) in &other.values {
            let known = self.values.entry(*index).or_default();
            for (value, count) in values {
                with(known.entry(*value).or_default(), *count);
            }
        }
        for (index, count) in &other.lost_values {
            with(self.lost_values.entry(*index).or_default(), *count);
        }
        for (args, count) in &other.samples {
            with(self.samples.entry(*args).or_default(), *count);
        }
        for (errno, count) in &other.errors {
            with(self.errors.entry(*errno).or_default(), *count);
        }
        with(&mut self.denied, other.denied);
        match (&mut self.times, &other.times) {
            (Some(times), Some(more)) => times.combine(more, with),
            (times @ None, more) => times.clone_from(more),
            (Some(_), None) => {}
        }
    }

    /// Adds the counts of the same call from another profile, without [`coverage`](Self::coverage).
    pub fn merge(&mut self, other: &Call) {
        self.combine(other, add);
    }
}

impl Profile {
    /// The counts of a call, if it occurred.
    pub fn call(&self, arch: Arch, nr: Nr) -> Option<&Call> {
        self.calls.get(&(arch, nr))
    }

    /// The entry of a call; a missing one is created.
    pub fn call_mut(&mut self, arch: Arch, nr: Nr) -> &mut Call {
        self.calls.entry((arch, nr)).or_default()
    }

    /// All calls of the profile, by architecture and number.
    pub fn calls(&self) -> impl Iterator<Item = (Arch, Nr, &Call)> {
        let calls = self.calls.iter();
        calls.map(|((arch, nr), call)| (*arch, *nr, call))
    }

    #[cfg(feature = "formats")]
    pub(crate) fn calls_mut(&mut self) -> impl Iterator<Item = &mut Call> {
        self.calls.values_mut()
    }

    /// The count of calls with a number in `first..=last`. Linear in the calls of the range.
    pub fn count(&self, arch: Arch, first: Nr, last: Nr) -> u64 {
        if first > last {
            return 0;
        }
        let calls = self.calls.range((arch, first)..=(arch, last));
        calls.fold(0, |sum, (_, call)| sum.saturating_add(call.count))
    }

    /// Whether there are no calls.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The counted runs. A profile without an entry here counts as one run, if it has calls.
    pub const fn runs(&self) -> &Runs {
        &self.runs
    }

    /// The number of counted runs.
    ///
    /// ```
    /// use tamis_abi::{Arch, Nr};
    /// use tamis_profile::Profile;
    /// let mut monday = Profile::default();
    /// assert_eq!(monday.run_count(), 0);
    /// monday.call_mut(Arch::X86_64, Nr(0)).count = 3;
    /// assert_eq!(monday.run_count(), 1);
    /// let mut week = monday.clone();
    /// week.merge(&monday);
    /// assert_eq!(week.run_count(), 2);
    /// assert_eq!(week.coverage(week.call(Arch::X86_64, Nr(0)).unwrap()).runs, 2);
    /// ```
    pub fn run_count(&self) -> u64 {
        match self.runs.count() {
            0 => u64::from(!self.calls.is_empty()),
            count => count,
        }
    }

    /// Sets the counted runs.
    pub fn set_runs(&mut self, runs: Runs) {
        self.runs = runs;
    }

    /// The number of runs with a call of this profile.
    pub fn coverage(&self, call: &Call) -> Coverage {
        match self.run_count() > 1 {
            true => call.coverage.clone(),
            false => Coverage::of_one_run(call),
        }
    }

    /// Sets the number of runs of each call explicitly, and counts a run without an id.
    fn spread(&mut self) {
        if self.run_count() == 1 {
            for call in self.calls.values_mut() {
                call.coverage = Coverage::of_one_run(call);
            }
            if self.runs.count() == 0 {
                self.runs.unnamed = 1;
            }
        }
    }

    /// Adds another profile of disjoint runs; [`Fleet`](crate::Fleet) detects common ones. Associative and commutative:
    /// counts are added and saturate at the largest `u64`.
    pub fn merge(&mut self, other: &Profile) {
        if other.run_count() == 0 {
            return;
        }
        if self.run_count() == 0 {
            self.clone_from(other);
            return;
        }
        self.spread();
        for ((arch, nr), call) in &other.calls {
            let coverage = other.coverage(call);
            let sum = self.call_mut(*arch, *nr);
            sum.combine(call, add);
            sum.coverage.combine(&coverage, add);
        }
        let mut runs = other.runs.clone();
        if runs.count() == 0 {
            runs.unnamed = 1;
        }
        self.runs.merge(&runs);
    }

    /// Takes the maximum of all counts, which only grow during a run: for two profiles of the same runs, this is the
    /// later one. Associative, commutative and idempotent.
    #[cfg(feature = "formats")]
    pub(crate) fn join(&mut self, other: &Profile) {
        for ((arch, nr), call) in &other.calls {
            let joined = self.call_mut(*arch, *nr);
            joined.combine(call, raise);
            joined.coverage.combine(&call.coverage, raise);
        }
        self.runs.join(&other.runs);
    }

    /// The calls with a saturated count, which may be too small.
    pub fn saturated(&self) -> impl Iterator<Item = (Arch, Nr)> {
        let calls = self.calls();
        calls
            .filter(|(_, _, call)| call.count == u64::MAX)
            .map(|(arch, nr, _)| (arch, nr))
    }
}

fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}

#[cfg(feature = "formats")]
fn raise(count: &mut u64, other: u64) {
    *count = (*count).max(other);
}
