//! Sets of integers as sorted, disjoint intervals.
//!
//! Used for system call numbers (`u32`) and for argument values (`u64`). Adjacent intervals are
//! merged, so equal sets have equal representations.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;

/// An unsigned integer that can be an element of an [`IntervalSet`].
pub trait Element: Copy + Ord + fmt::Debug {
    /// The smallest value.
    const MIN: Self;
    /// The largest value.
    const MAX: Self;
    /// The next larger value, if there is one.
    fn successor(self) -> Option<Self>;
    /// The next smaller value, if there is one.
    fn predecessor(self) -> Option<Self>;
}

macro_rules! element {
    ($($integer:ty),*) => {$(
        impl Element for $integer {
            const MIN: Self = <$integer>::MIN;
            const MAX: Self = <$integer>::MAX;
            fn successor(self) -> Option<Self> {
                self.checked_add(1)
            }
            fn predecessor(self) -> Option<Self> {
                self.checked_sub(1)
            }
        }
    )*};
}
element!(u32, u64);

/// A set of integers.
///
/// ```
/// use tamis_rules::IntervalSet;
/// let set: IntervalSet<u32> = [1..=2, 4..=4, 3..=3].into_iter().collect();
/// assert_eq!(set.intervals(), [(1, 4)]);
/// assert!(set.contains(2) && !set.contains(5));
/// ```
#[derive(Clone)]
pub struct IntervalSet<T>(Intervals<T>);

/// Sorted by first element; no two overlap or touch. Most sets are one interval, or all but one, which need no
/// allocation.
#[derive(Clone)]
enum Intervals<T> {
    None,
    One([(T, T); 1]),
    Two([(T, T); 2]),
    /// At least three.
    Many(Vec<(T, T)>),
}

impl<T: Element> Intervals<T> {
    /// Appends an interval that is greater than the others and doesn't touch them.
    fn push(&mut self, interval: (T, T)) {
        match self {
            Intervals::None => *self = Intervals::One([interval]),
            Intervals::One([first]) => *self = Intervals::Two([*first, interval]),
            Intervals::Two([first, second]) => {
                *self = Intervals::Many(vec![*first, *second, interval]);
            }
            Intervals::Many(intervals) => intervals.push(interval),
        }
    }
}

impl<T: Element> IntervalSet<T> {
    /// The empty set.
    pub const fn empty() -> IntervalSet<T> {
        IntervalSet(Intervals::None)
    }

    /// The set of all values of the type.
    pub const fn full() -> IntervalSet<T> {
        IntervalSet(Intervals::One([(T::MIN, T::MAX)]))
    }

    /// The set of one value.
    pub const fn single(value: T) -> IntervalSet<T> {
        IntervalSet(Intervals::One([(value, value)]))
    }

    /// First and last element of each maximal interval, ascending.
    pub fn intervals(&self) -> &[(T, T)] {
        match &self.0 {
            Intervals::None => &[],
            Intervals::One(interval) => interval,
            Intervals::Two(intervals) => intervals,
            Intervals::Many(intervals) => intervals,
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.intervals().is_empty()
    }

    /// Whether every value is an element.
    pub fn is_full(&self) -> bool {
        self.intervals() == [(T::MIN, T::MAX)]
    }

    /// Whether a value is an element. Logarithmic.
    pub fn contains(&self, value: T) -> bool {
        let intervals = self.intervals();
        let after = intervals.partition_point(|(first, _)| *first <= value);
        after > 0 && value <= intervals[after - 1].1
    }

    /// The values that are not in the set.
    #[must_use]
    pub fn complement(&self) -> IntervalSet<T> {
        let mut gaps = Intervals::None;
        let mut next = Some(T::MIN);
        for (first, last) in self.intervals() {
            if let (Some(start), Some(end)) = (next, first.predecessor())
                && start <= end
            {
                gaps.push((start, end));
            }
            next = last.successor();
        }
        if let Some(start) = next {
            gaps.push((start, T::MAX));
        }
        IntervalSet(gaps)
    }

    /// The values in either set. Linear.
    #[must_use]
    pub fn union(&self, other: &IntervalSet<T>) -> IntervalSet<T> {
        let (mut left, mut right) = (self.intervals(), other.intervals());
        let mut merged = Vec::with_capacity(left.len() + right.len());
        while let ([one, left_rest @ ..], [two, right_rest @ ..]) = (left, right) {
            if one <= two {
                merged.push(*one);
                left = left_rest;
            } else {
                merged.push(*two);
                right = right_rest;
            }
        }
        merged.extend(left.iter().chain(right));
        IntervalSet::from_sorted(merged)
    }

    /// The values in both sets.
    #[must_use]
    pub fn intersection(&self, other: &IntervalSet<T>) -> IntervalSet<T> {
        let (mut left, mut right) = (self.intervals(), other.intervals());
        let mut intervals = Intervals::None;
        while let ([one, left_rest @ ..], [two, right_rest @ ..]) = (left, right) {
            let (first, last) = (one.0.max(two.0), one.1.min(two.1));
            if first <= last {
                intervals.push((first, last));
            }
            // The interval that ends first intersects no others.
            if one.1 < two.1 {
                left = left_rest;
            } else {
                right = right_rest;
            }
        }
        IntervalSet(intervals)
    }

    /// The values of this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &IntervalSet<T>) -> IntervalSet<T> {
        self.intersection(&other.complement())
    }

    /// Whether all values of this set are in the other. Log-linear.
    pub fn is_subset(&self, other: &IntervalSet<T>) -> bool {
        let around = other.intervals();
        self.intervals().iter().all(|(first, last)| {
            let at = around.partition_point(|(_, end)| end < first);
            let found = around.get(at);
            found.is_some_and(|(start, end)| start <= first && last <= end)
        })
    }

    /// Sorts, drops empty intervals and merges touching ones.
    fn from_unsorted(raw: impl Iterator<Item = (T, T)>) -> IntervalSet<T> {
        let mut raw = raw.filter(|(first, last)| first <= last);
        let Some(first) = raw.next() else {
            return IntervalSet::empty();
        };
        let Some(second) = raw.next() else {
            return IntervalSet(Intervals::One([first]));
        };
        let mut intervals = Vec::with_capacity(2 + raw.size_hint().1.unwrap_or(0));
        intervals.extend([first, second]);
        intervals.extend(raw);
        intervals.sort_unstable();
        IntervalSet::from_sorted(intervals)
    }

    /// Merges touching ones of intervals that are sorted and not empty.
    fn from_sorted(mut intervals: Vec<(T, T)>) -> IntervalSet<T> {
        intervals.dedup_by(|next, previous| {
            let meets = previous.1.successor().is_none_or(|after| next.0 <= after);
            if meets {
                previous.1 = previous.1.max(next.1);
            }
            meets
        });
        IntervalSet(match intervals[..] {
            [] => Intervals::None,
            [interval] => Intervals::One([interval]),
            [first, second] => Intervals::Two([first, second]),
            _ => Intervals::Many(intervals),
        })
    }
}

impl<T: Element> PartialEq for IntervalSet<T> {
    fn eq(&self, other: &IntervalSet<T>) -> bool {
        self.intervals() == other.intervals()
    }
}

impl<T: Element> Eq for IntervalSet<T> {}

impl<T: Element + Hash> Hash for IntervalSet<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.intervals().hash(state);
    }
}

impl<T: Element> fmt::Debug for IntervalSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut set = f.debug_struct("IntervalSet");
        set.field("intervals", &self.intervals()).finish()
    }
}

impl<T: Element> FromIterator<RangeInclusive<T>> for IntervalSet<T> {
    fn from_iter<I: IntoIterator<Item = RangeInclusive<T>>>(ranges: I) -> IntervalSet<T> {
        IntervalSet::from_unsorted(ranges.into_iter().map(RangeInclusive::into_inner))
    }
}

impl<T: Element> FromIterator<T> for IntervalSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> IntervalSet<T> {
        values.into_iter().map(|value| value..=value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All sets over a small universe at both ends of `u32`.
    fn samples() -> Vec<IntervalSet<u32>> {
        let universe = [0, 1, 2, 5, u32::MAX - 1, u32::MAX];
        (0..64u32)
            .map(|bits| {
                (0..6)
                    .filter(|bit| bits >> bit & 1 == 1)
                    .map(|bit| universe[bit])
                    .collect()
            })
            .collect()
    }

    #[test]
    fn set_operations_agree_with_membership() {
        let probes = [
            0,
            1,
            2,
            3,
            4,
            5,
            6,
            1000,
            u32::MAX - 2,
            u32::MAX - 1,
            u32::MAX,
        ];
        for a in samples() {
            for b in samples() {
                for x in probes {
                    let (in_a, in_b) = (a.contains(x), b.contains(x));
                    assert_eq!(a.union(&b).contains(x), in_a || in_b);
                    assert_eq!(a.intersection(&b).contains(x), in_a && in_b);
                    assert_eq!(a.difference(&b).contains(x), in_a && !in_b);
                    assert_eq!(a.complement().contains(x), !in_a);
                }
                assert_eq!(a.is_subset(&b), a.difference(&b).is_empty());
            }
        }
    }

    #[test]
    fn equal_sets_have_equal_representations() {
        for set in samples() {
            assert_eq!(set.complement().complement(), set);
            assert_eq!(set.union(&set), set);
            for other in samples() {
                let either_gap = set.complement().union(&other.complement());
                assert_eq!(set.intersection(&other), either_gap.complement());
            }
        }
        assert!(IntervalSet::<u64>::empty().complement().is_full());
    }
}
