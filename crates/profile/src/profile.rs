//! The data type: counts of calls, argument values, and whole argument lists.

use std::collections::BTreeMap;

use tamis_abi::{Arch, Nr};

/// The six arguments of a call.
pub type Args = [u64; 6];

/// The counts of one system call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The count of calls.
    pub count: u64,
    /// For each argument (0..=5) whose values were counted: the count of each value. If they add up to less than
    /// [`count`](Call::count), the other values are unknown.
    pub values: BTreeMap<u8, BTreeMap<u64, u64>>,
    /// Whole argument lists and their counts. They are more precise than `values` if arguments depend on each
    /// other.
    pub samples: BTreeMap<Args, u64>,
    /// How many calls failed, by error number. They are part of [`count`](Call::count).
    pub errors: BTreeMap<u16, u64>,
    /// How many calls were answered by a filter or tracer and not made. They count as calls, and as errors if they failed.
    pub denied: u64,
    /// How long the calls took, if that was measured.
    pub times: Option<Times>,
}

/// How long calls took, from entry to exit, sleep included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The sum.
    pub total_ns: u64,
    /// The least.
    pub min_ns: u64,
    /// The greatest.
    pub max_ns: u64,
    /// How many calls took a time of so many bits: the first took less than 1 ns, the next 1 ns, then 2 to 3, 4 to 7 and so on.
    /// The last also counts all that took longer.
    pub buckets: [u64; Times::BUCKETS],
}

impl Times {
    /// The count of buckets.
    pub const BUCKETS: usize = 40;

    /// Adds the times of other calls.
    pub fn merge(&mut self, other: &Times) {
        add(&mut self.total_ns, other.total_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        for (count, more) in self.buckets.iter_mut().zip(other.buckets) {
            add(count, more);
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
    /// Ascending: layout asks for the counts of ranges, several hundred times per compilation.
    calls: Vec<((Arch, Nr), Call)>,
}

impl Call {
    /// Adds the counts of the same call from another profile.
    pub fn merge(&mut self, other: &Call) {
        add(&mut self.count, other.count);
        for (index, values) in &other.values {
            let known = self.values.entry(*index).or_default();
            for (value, count) in values {
                add(known.entry(*value).or_default(), *count);
            }
        }
        for (args, count) in &other.samples {
            add(self.samples.entry(*args).or_default(), *count);
        }
        for (errno, count) in &other.errors {
            add(self.errors.entry(*errno).or_default(), *count);
        }
        add(&mut self.denied, other.denied);
        match (&mut self.times, &other.times) {
            (Some(times), Some(more)) => times.merge(more),
            (times @ None, more) => *times = *more,
            (Some(_), None) => {}
        }
    }
}

impl Profile {
    /// The counts of a call, if it occurred.
    pub fn call(&self, arch: Arch, nr: Nr) -> Option<&Call> {
        let place = self.place(arch, nr).ok()?;
        Some(&self.calls[place].1)
    }

    /// The entry of a call; a missing one is created, linear in the later calls.
    pub fn call_mut(&mut self, arch: Arch, nr: Nr) -> &mut Call {
        let place = self.place(arch, nr).unwrap_or_else(|place| {
            self.calls.insert(place, ((arch, nr), Call::default()));
            place
        });
        &mut self.calls[place].1
    }

    fn place(&self, arch: Arch, nr: Nr) -> Result<usize, usize> {
        self.calls
            .binary_search_by_key(&(arch, nr), |(key, _)| *key)
    }

    /// All calls of the profile, by architecture and number.
    pub fn calls(&self) -> impl Iterator<Item = (Arch, Nr, &Call)> {
        let calls = self.calls.iter();
        calls.map(|((arch, nr), call)| (*arch, *nr, call))
    }

    /// The count of calls with a number in `first..=last`. Linear in the calls of the range.
    pub fn count(&self, arch: Arch, first: Nr, last: Nr) -> u64 {
        let start = self.calls.partition_point(|(key, _)| *key < (arch, first));
        let calls = self.calls[start..].iter();
        let calls = calls.take_while(|(key, _)| *key <= (arch, last));
        calls.fold(0, |sum, (_, call)| sum.saturating_add(call.count))
    }

    /// Whether there are no calls.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds another profile. Associative and commutative: counts are added and saturate at the largest `u64`.
    pub fn merge(&mut self, other: &Profile) {
        for ((arch, nr), call) in &other.calls {
            self.call_mut(*arch, *nr).merge(call);
        }
    }
}

fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}
