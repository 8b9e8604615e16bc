//! Facts: properties of a value that tests have established.
//!
//! A [`Fact`] describes a set of 32-bit values that contains the actual one: an interval, bits known to be clear or
//! set, and a few excluded single values. Each part is used to refine the others. The set may be larger than
//! necessary, but never too small.

use tamis_bpf::Test;

/// The most single values that a fact excludes; the oldest is dropped first.
const MAX_EXCLUDED: usize = 8;

/// A set of values that contains the actual value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    /// The least possible value.
    pub(crate) low: u32,
    /// The greatest possible value.
    pub(crate) high: u32,
    /// The bits known to be clear.
    pub(crate) clear: u32,
    /// The bits known to be set.
    pub(crate) set: u32,
    excluded: [u32; MAX_EXCLUDED],
    excluded_len: usize,
}

impl Fact {
    /// Any value.
    pub(crate) const ANY: Fact = Fact {
        low: 0,
        high: u32::MAX,
        clear: 0,
        set: 0,
        excluded: [0; MAX_EXCLUDED],
        excluded_len: 0,
    };

    /// Exactly this value.
    pub(crate) const fn exactly(k: u32) -> Fact {
        Fact {
            low: k,
            high: k,
            clear: !k,
            set: k,
            ..Fact::ANY
        }
    }

    /// An interval, with the bits that follow from it; `None` if it is empty.
    pub(crate) fn between(low: u32, high: u32) -> Option<Fact> {
        Fact {
            low,
            high,
            ..Fact::ANY
        }
        .sharpened()
    }

    /// These bits clear and those set; `None` if a bit is both.
    pub(crate) fn bits(clear: u32, set: u32) -> Option<Fact> {
        Fact {
            clear,
            set,
            ..Fact::ANY
        }
        .sharpened()
    }

    /// The only possible value, if there is exactly one.
    pub(crate) fn constant(self) -> Option<u32> {
        (self.low == self.high).then_some(self.low)
    }

    /// Whether the value is possible.
    pub(crate) fn admits(&self, k: u32) -> bool {
        self.low <= k
            && k <= self.high
            && k & self.clear == 0
            && !k & self.set == 0
            && !self.excluded().contains(&k)
    }

    /// The answer of a test against a constant, if it is the same for all possible values.
    pub(crate) fn answer(&self, test: Test, k: u32) -> Option<bool> {
        let (always, never) = match test {
            Test::Eq => (self.constant() == Some(k), !self.admits(k)),
            Test::Gt => (self.low > k, self.high <= k),
            Test::Ge => (self.low >= k, self.high < k),
            Test::Set => {
                let is_inside = !self.clear & !k == 0;
                (
                    self.set & k != 0 || is_inside && !self.admits(0),
                    !self.clear & k == 0,
                )
            }
        };
        match (always, never) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }

    /// The remaining values if a test against a constant has this outcome; `None` if there are none.
    pub(crate) fn after(&self, test: Test, k: u32, holds: bool) -> Option<Fact> {
        if (test, holds) == (Test::Eq, true) {
            return self.admits(k).then(|| Fact::exactly(k));
        }
        let mut left = *self;
        match (test, holds) {
            (Test::Eq, _) => left.exclude(k),
            (Test::Gt, true) => left.low = left.low.max(k.checked_add(1)?),
            (Test::Ge, false) => left.high = left.high.min(k.checked_sub(1)?),
            (Test::Gt, false) => left.high = left.high.min(k),
            (Test::Ge, true) => left.low = left.low.max(k),
            (Test::Set, false) => left.clear |= k,
            (Test::Set, true) => {
                let possible = k & !left.clear;
                if possible.is_power_of_two() {
                    left.set |= possible;
                }
                left.low = left.low.max(1 << possible.trailing_zeros().min(31));
                if possible == 0 {
                    return None;
                }
            }
        }
        left.sharpened()
    }

    /// The values that both admit; `None` if there are none.
    pub(crate) fn both(mut self, other: &Fact) -> Option<Fact> {
        if let Some(k) = other.constant() {
            return self.admits(k).then(|| Fact::exactly(k));
        }
        self.low = self.low.max(other.low);
        self.high = self.high.min(other.high);
        self.clear |= other.clear;
        self.set |= other.set;
        for k in other.excluded() {
            self.exclude(*k);
        }
        self.sharpened()
    }

    /// The values that either admits.
    pub(crate) fn either(self, other: &Fact) -> Fact {
        let mut joined = Fact {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            clear: self.clear & other.clear,
            set: self.set & other.set,
            ..Fact::ANY
        };
        let ruled_out_here = self.excluded().iter().filter(|k| !other.admits(**k));
        let ruled_out_there = other.excluded().iter().filter(|k| !self.admits(**k));
        for k in ruled_out_here.chain(ruled_out_there) {
            joined.exclude(*k);
        }
        joined
    }

    /// The same fact with its parts refined by each other.
    pub(crate) fn settled(self) -> Fact {
        let mut settled = self;
        while settled.constant().is_none()
            && let Some(sharper) = settled.sharpened()
            && sharper.bounds() != settled.bounds()
        {
            settled = sharper;
        }
        settled
    }

    /// The interval and the bits; the list of excluded values only shrinks if these change.
    const fn bounds(&self) -> [u32; 4] {
        [self.low, self.high, self.clear, self.set]
    }

    fn excluded(&self) -> &[u32] {
        &self.excluded[..self.excluded_len]
    }

    fn exclude(&mut self, k: u32) {
        if self.excluded().contains(&k) {
            return;
        }
        if self.excluded_len == MAX_EXCLUDED {
            self.excluded.rotate_left(1);
            self.excluded_len -= 1;
        }
        self.excluded[self.excluded_len] = k;
        self.excluded_len += 1;
    }

    /// Refines each part by the others; `None` if they contradict each other.
    fn sharpened(mut self) -> Option<Fact> {
        if self.clear & self.set != 0 {
            return None;
        }
        self.low = self.low.max(self.set);
        self.high = self.high.min(!self.clear);
        while self.low < self.high && self.excluded().contains(&self.low) {
            self.low += 1;
        }
        while self.low < self.high && self.excluded().contains(&self.high) {
            self.high -= 1;
        }
        if self.low > self.high || self.low == self.high && !self.admits(self.low) {
            return None;
        }
        // Above the highest bit in which the bounds differ, all values have the bits of the bounds.
        let equal = !u32::MAX
            .checked_shr((self.low ^ self.high).leading_zeros())
            .unwrap_or(0);
        self.set |= self.low & equal;
        self.clear |= !self.low & equal;
        if self.clear & self.set != 0 {
            return None;
        }
        if self.clear | self.set == u32::MAX {
            return self.admits(self.set).then(|| Fact::exactly(self.set));
        }
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSTANTS: [u32; 6] = [0, 1, 6, 7, 0x8000_0000, u32::MAX];
    const PROBES: [u32; 11] = [
        0,
        1,
        2,
        5,
        6,
        7,
        8,
        0x7fff_ffff,
        0x8000_0000,
        0x8000_0006,
        u32::MAX,
    ];

    /// The facts after two tests of an unknown value, with the probes that pass both.
    fn facts() -> Vec<(Option<Fact>, Vec<u32>)> {
        let tests = || {
            let tests = Test::ALL.into_iter();
            let constants = tests.flat_map(|test| CONSTANTS.map(|k| (test, k)));
            constants.flat_map(|(test, k)| [(test, k, true), (test, k, false)])
        };
        let pairs = tests().flat_map(|one| tests().map(move |two| [one, two]));
        let facts = pairs.map(|pair| {
            let mut fact = Some(Fact::ANY);
            for (test, k, holds) in pair {
                fact = fact.and_then(|fact| fact.after(test, k, holds));
            }
            let passes = |value: &u32| {
                pair.iter()
                    .all(|(test, k, holds)| test.holds(*value, *k) == *holds)
            };
            (fact, PROBES.into_iter().filter(passes).collect())
        });
        facts.collect()
    }

    fn check(fact: Option<Fact>, members: &[u32]) {
        let Some(fact) = fact else {
            assert_eq!(members, [0_u32; 0]);
            return;
        };
        for value in members {
            assert!(fact.admits(*value), "{fact:?} {value:#x}");
            for (test, k) in Test::ALL
                .into_iter()
                .flat_map(|test| CONSTANTS.map(|k| (test, k)))
            {
                let answer = fact.answer(test, k);
                assert!(answer.is_none_or(|answer| answer == test.holds(*value, k)));
            }
        }
    }

    #[test]
    fn a_fact_admits_all_that_passed_its_tests_and_answers_as_they_do() {
        let facts = facts();
        for (at, (fact, members)) in facts.iter().enumerate() {
            check(*fact, members);
            for distance in [1, 97, 1201] {
                let (other, others) = &facts[(at + distance) % facts.len()];
                let (Some(fact), Some(other)) = (fact, other) else {
                    continue;
                };
                check(Some(fact.either(other)), &[&members[..], others].concat());
                let common: Vec<u32> = members
                    .iter()
                    .copied()
                    .filter(|value| others.contains(value))
                    .collect();
                check(fact.both(other), &common);
            }
        }
    }
}
