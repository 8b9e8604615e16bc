//! Sets of numbers of a section's rules, as pieces: the numbers between two borders of intervals.
//!
//! All rules about one number of a piece are about all of them, so a set that grows and shrinks by whole rules is a
//! flag for each piece. Finding the pieces of an interval is a binary search, and each of them takes a step.

use std::ops::Range;

use tamis_rules::{IntervalSet, Section};

/// Where pieces begin, ascending.
pub(super) struct Cuts(Vec<u32>);

impl Cuts {
    /// The borders of all rules of a section.
    pub(super) fn of(section: &Section) -> Cuts {
        let mut cuts = Vec::with_capacity(2 * section.rules.len());
        for rule in &section.rules {
            for (first, last) in rule.syscalls.intervals() {
                cuts.push(*first);
                cuts.extend(last.checked_add(1));
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        Cuts(cuts)
    }

    /// How many pieces there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The pieces of an interval whose borders are cuts.
    pub(super) fn pieces(&self, (first, last): (u32, u32)) -> Range<usize> {
        let from = self.0.partition_point(|cut| *cut < first);
        let count = self.0[from..].partition_point(|cut| *cut <= last);
        debug_assert_eq!(self.0.get(from), Some(&first), "no pass makes new borders");
        debug_assert_eq!(
            self.0.get(from + count).copied(),
            last.checked_add(1),
            "no pass makes new borders"
        );
        from..from + count
    }

    /// First and last number of a piece.
    fn interval(&self, piece: usize) -> (u32, u32) {
        let next = self.0.get(piece + 1);
        (self.0[piece], next.map_or(u32::MAX, |next| next - 1))
    }
}

/// A growing set of numbers.
pub(super) struct Numbers<'a> {
    cuts: &'a Cuts,
    /// For each piece whether it is in the set.
    has: Vec<bool>,
}

impl Numbers<'_> {
    /// The empty set.
    pub(super) fn new(cuts: &Cuts) -> Numbers<'_> {
        Numbers {
            cuts,
            has: vec![false; cuts.len()],
        }
    }

    /// Whether some number of a set is in this one.
    pub(super) fn meets(&self, set: &IntervalSet<u32>) -> bool {
        let mut intervals = set.intervals().iter();
        intervals.any(|interval| self.has[self.cuts.pieces(*interval)].contains(&true))
    }

    /// What of a set is not in this one.
    pub(super) fn missing_of(&self, set: &IntervalSet<u32>) -> IntervalSet<u32> {
        if !self.meets(set) {
            return set.clone();
        }
        let intervals = set.intervals().iter();
        let pieces = intervals.flat_map(|interval| self.cuts.pieces(*interval));
        let missing = pieces.filter(|piece| !self.has[*piece]);
        let missing = missing.map(|piece| self.cuts.interval(piece));
        missing.map(|(first, last)| first..=last).collect()
    }

    /// Adds a set.
    pub(super) fn add(&mut self, set: &IntervalSet<u32>) {
        for interval in set.intervals() {
            self.has[self.cuts.pieces(*interval)].fill(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Action, Arch};
    use tamis_rules::{Predicate, Rule};

    use super::*;

    #[test]
    fn pieces_agree_with_sets() {
        let ranges = [
            [2..=5, 9..=9],
            [0..=3, 5..=9],
            [4..=u32::MAX, 0..=0],
            [7..=7, 7..=7],
        ];
        let sets = ranges.map(|ranges| ranges.into_iter().collect::<IntervalSet<u32>>());
        let rules = sets.clone().map(|syscalls| Rule {
            syscalls,
            when: Predicate::True,
            action: Action::ALLOW,
            origin: None,
        });
        let cuts = Cuts::of(&Section {
            arch: Arch::X86_64,
            rules: rules.to_vec(),
            default: Action::KILL_PROCESS,
        });
        for first in &sets {
            for second in &sets {
                let mut numbers = Numbers::new(&cuts);
                let mut expected = IntervalSet::empty();
                for added in [first, second] {
                    for asked in &sets {
                        assert_eq!(numbers.missing_of(asked), asked.difference(&expected));
                        let meets = !asked.intersection(&expected).is_empty();
                        assert_eq!(numbers.meets(asked), meets);
                    }
                    numbers.add(added);
                    expected = expected.union(added);
                }
            }
        }
    }
}
