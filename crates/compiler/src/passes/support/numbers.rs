//! Sets of numbers of a section's rules, as pieces: the numbers between two borders of intervals.
//!
//! Every rule covers all or none of the numbers of a piece, so a set of the numbers of whole rules is a flag per
//! piece. The pieces of an interval are found by binary search, and 64 flags take one step; the missing part of an
//! interval takes one step more per gap.

use std::ops::Range;

use tamis_rules::{IntervalSet, Section};

/// The first numbers of pieces, ascending.
#[derive(Clone)]
pub(in crate::passes) struct Cuts(Vec<u32>);

impl Cuts {
    /// The borders of all rules of a section.
    pub(in crate::passes) fn from_section(section: &Section) -> Cuts {
        Cuts(section.borders())
    }

    /// The number of pieces.
    pub(in crate::passes) fn len(&self) -> usize {
        self.0.len()
    }

    /// The pieces of an interval between two borders.
    pub(in crate::passes) fn pieces(&self, (first, last): (u32, u32)) -> Range<usize> {
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

    /// The first number of a piece.
    fn first(&self, piece: usize) -> u32 {
        self.0[piece]
    }

    /// The last number of a piece.
    fn last(&self, piece: usize) -> u32 {
        self.0.get(piece + 1).map_or(u32::MAX, |next| next - 1)
    }
}

/// A growing set of numbers.
pub(in crate::passes) struct Numbers<'a> {
    cuts: &'a Cuts,
    /// By piece, whether it is in the set, beginning with the lowest bit of the first word.
    has: Vec<u64>,
}

impl Numbers<'_> {
    /// The empty set.
    pub(in crate::passes) fn new(cuts: &Cuts) -> Numbers<'_> {
        Numbers {
            cuts,
            has: vec![0; cuts.len().div_ceil(64)],
        }
    }

    /// The numbers of a set that are not in this one.
    pub(in crate::passes) fn missing_of(&self, set: &IntervalSet<u32>) -> IntervalSet<u32> {
        let mut missing = Vec::new();
        for interval in set.intervals() {
            let mut pieces = self.cuts.pieces(*interval);
            loop {
                pieces.start = self.next(pieces.clone(), false);
                if pieces.is_empty() {
                    break;
                }
                let end = self.next(pieces.clone(), true);
                missing.push(self.cuts.first(pieces.start)..=self.cuts.last(end - 1));
                pieces.start = end;
            }
        }
        missing.into_iter().collect()
    }

    /// Adds a set.
    pub(in crate::passes) fn add(&mut self, set: &IntervalSet<u32>) {
        for interval in set.intervals() {
            for (word, bits) in words(self.cuts.pieces(*interval)) {
                self.has[word] |= bits;
            }
        }
    }

    /// The first of the pieces that is in the set, or that is not; the end of the range if there is none.
    fn next(&self, pieces: Range<usize>, is_in: bool) -> usize {
        let end = pieces.end;
        let found = words(pieces).find_map(|(word, bits)| {
            let has = self.has[word];
            let found = bits & if is_in { has } else { !has };
            (found != 0).then(|| 64 * word + found.trailing_zeros() as usize)
        });
        found.unwrap_or(end)
    }
}

/// The words with the bits of a range, each with the mask of these bits.
fn words(range: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    let words = range.start / 64..range.end.div_ceil(64);
    words.map(move |word| {
        let above = range.start.saturating_sub(64 * word);
        let below = (64 * (word + 1)).saturating_sub(range.end);
        (word, u64::MAX << above & u64::MAX >> below)
    })
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
        let mut sets: Vec<IntervalSet<u32>> = Vec::new();
        sets.extend(ranges.map(|ranges| ranges.into_iter().collect()));
        // More pieces than bits in a word, and borders next to those of words.
        sets.push((0..300).step_by(2).collect());
        sets.push([63..=63, 65..=127, 192..=250].into_iter().collect());
        let rules = sets.iter().cloned().map(|syscalls| Rule {
            syscalls,
            when: Predicate::True,
            action: Action::ALLOW,
            origin: None,
        });
        let cuts = Cuts::from_section(&Section {
            arch: Arch::X86_64,
            rules: rules.collect(),
            default: Action::KILL_PROCESS,
        });
        for first in &sets {
            for second in &sets {
                let mut numbers = Numbers::new(&cuts);
                let mut expected = IntervalSet::empty();
                for added in [first, second] {
                    for asked in &sets {
                        assert_eq!(numbers.missing_of(asked), asked.difference(&expected));
                    }
                    numbers.add(added);
                    expected = expected.union(added);
                }
            }
        }
    }
}
