//! The two sides of a bit test: the values of a part that have one of some bits, and those that have none.
//!
//! A comparison keeps runs whole; a bit test splits them. A side of a run is described by its first and its last
//! value; not all values between need to be on the side. Runs without a value on a side vanish from it, and
//! neighbours of one decision become one run.

use super::two_decisions::{bits_of, common_bits, first_without};
use crate::tree::Span;

/// Values of one run that are equally frequent.
#[derive(Clone, Copy, Debug)]
pub(in crate::tree) struct Grain {
    pub(in crate::tree) first: u32,
    pub(in crate::tree) last: u32,
    pub(in crate::tree) weight: u64,
}

/// What earlier bit tests have shown of all values of a line: the bits in which they agree.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tree) struct Known {
    /// The bits that are known.
    pub(in crate::tree) bits: u32,
    /// Those of them that are set.
    set: u32,
}

impl Known {
    /// After another test, of bits that are not known.
    pub(in crate::tree) fn after(self, bits: u32, answer: bool) -> Known {
        match answer {
            false => Known {
                bits: self.bits | bits,
                ..self
            },
            true if bits.is_power_of_two() => Known {
                bits: self.bits | bits,
                set: self.set | bits,
            },
            // One of several bits is set, and nobody knows which.
            true => self,
        }
    }

    /// How many of the values from `first` to `last` have the known bits.
    fn count(self, first: u32, last: u32) -> u64 {
        self.count_below(u64::from(last) + 1) - self.count_below(first.into())
    }

    /// How many of the values below this have the known bits.
    fn count_below(self, end: u64) -> u64 {
        if self.bits.is_power_of_two() && self.set == 0 {
            // The bit is clear in the lower half of each of its periods.
            let bit = u64::from(self.bits);
            let begun = end & (2 * bit - 1);
            return (end - begun) / 2 + begun.min(bit);
        }
        let (known, set) = (u64::from(self.bits), u64::from(self.set));
        let (mut count, mut rest) = (0, end);
        // Of the bits above, `end` has the values that are known.
        let mut undecided = u64::MAX;
        while let Some(top) = rest.checked_ilog2() {
            let below = (1_u64 << top) - 1;
            if set & undecided & !(below << 1 | 1) != 0 {
                break;
            }
            // The values that agree with `end` above this bit, and have it clear.
            if set >> top & 1 == 0 {
                // The known bits below it fix a value each.
                count += 1_u64 << (!known & below).count_ones();
            }
            if known & !set & 1 << top != 0 {
                break;
            }
            undecided = below;
            rest ^= 1 << top;
        }
        count
    }
}

/// Runs, what is known of their values, and how frequent these are.
pub(in crate::tree) struct Sides<'a> {
    pub(in crate::tree) spans: &'a [Span],
    pub(in crate::tree) known: Known,
    /// By run; none where all values are equally frequent.
    grains: Vec<&'a [Grain]>,
}

impl<'a> Sides<'a> {
    /// Of runs that consist of grains; those without any have values that are equally frequent.
    pub(in crate::tree) fn new(spans: &'a [Span], grains: &'a [Grain], known: Known) -> Sides<'a> {
        let of_span = |span: &Span| {
            let start = grains.partition_point(|grain| grain.first < span.first);
            let end = grains.partition_point(|grain| grain.first <= span.last);
            let grains = &grains[start..end];
            if are_equally_frequent(grains) {
                &[]
            } else {
                grains
            }
        };
        Sides {
            spans,
            known,
            grains: spans.iter().map(of_span).collect(),
        }
    }

    /// The values of a run that have none of these bits.
    pub(in crate::tree) fn clear(&self, at: usize, bits: u32) -> Option<Span> {
        clear(&self.spans[at], self.grains[at], bits, self.known)
    }

    /// The values of a run that have none of these bits, and those that have one.
    pub(in crate::tree) fn split(&self, at: usize, bits: u32) -> [Option<Span>; 2] {
        let span = &self.spans[at];
        let clear = self.clear(at, bits);
        let set = match clear {
            None => Some(*span),
            Some(_) if span.is_single() || bits_of(span) & bits & !self.known.bits == 0 => None,
            Some(clear) => ends_with(span, bits).map(|(first, last)| Span {
                first,
                last,
                weight: span.weight - clear.weight,
                ..*span
            }),
        };
        [clear, set]
    }
}

/// The values that have none of these bits.
pub(in crate::tree) fn clear(
    span: &Span,
    grains: &[Grain],
    bits: u32,
    known: Known,
) -> Option<Span> {
    if bits & known.set != 0 {
        return None;
    }
    let bits = bits & !known.bits;
    if span.is_single() {
        return Some(*span).filter(|span| span.first & bits == 0);
    }
    if bits_of(span) & bits == 0 {
        return Some(*span);
    }
    if common_bits(span) & bits != 0 {
        return None;
    }
    let first = first_without(span.first, bits).filter(|first| *first <= span.last)?;
    Some(Span {
        first,
        last: last_without(span.last, bits),
        weight: weight_clear(span, grains, bits, known),
        ..*span
    })
}

/// The first and the last value that have one of these bits, of which there is at least one.
fn ends_with(span: &Span, bits: u32) -> Option<(u32, u32)> {
    let first = first_with(span.first, bits).filter(|first| *first <= span.last)?;
    Some((first, last_with(span.last, bits)?))
}

/// What a run of which some values have these bits and some do not keeps of its weight without them.
fn weight_clear(span: &Span, grains: &[Grain], bits: u32, known: Known) -> u32 {
    let clear = known.after(bits, false);
    let ratio = |first: u32, last: u32| {
        let whole = match known.bits {
            0 => u64::from(last - first) + 1,
            _ => known.count(first, last).max(1),
        };
        clear.count(first, last) as f64 / whole as f64
    };
    let share = match grains {
        [] => ratio(span.first, span.last),
        grains => {
            let (mut whole, mut left) = (0, 0.0);
            for grain in grains {
                whole += grain.weight;
                left += match (grain.first == grain.last, grain.first & bits) {
                    (true, 0) => grain.weight as f64,
                    (true, _) => 0.0,
                    (false, _) => grain.weight as f64 * ratio(grain.first, grain.last),
                };
            }
            left / whole.max(1) as f64
        }
    };
    (f64::from(span.weight) * share) as u32
}

/// Whether all values of some grains have the same weight.
fn are_equally_frequent(grains: &[Grain]) -> bool {
    let length = |grain: &Grain| u128::from(grain.last - grain.first) + 1;
    grains.windows(2).all(|pair| {
        let [one, other] = [&pair[0], &pair[1]];
        u128::from(one.weight) * length(other) == u128::from(other.weight) * length(one)
    })
}

/// Adds a run behind others; neighbours of one decision become one.
pub(in crate::tree) fn push(side: &mut Vec<Span>, span: Span) {
    match side.last_mut() {
        Some(before) if before.node == span.node => {
            before.last = span.last;
            before.weight += span.weight;
        }
        _ => side.push(span),
    }
}

/// The largest value up to `last` that has none of these bits.
fn last_without(last: u32, bits: u32) -> u32 {
    match (last & bits).checked_ilog2() {
        Some(top) => (((last >> top) - 1) << top | ((1 << top) - 1)) & !bits,
        None => last,
    }
}

/// The smallest value from `first` on that has one of these bits, of which there is at least one.
fn first_with(first: u32, bits: u32) -> Option<u32> {
    if first & bits != 0 {
        return Some(first);
    }
    let lowest = bits.trailing_zeros();
    Some((first.checked_shr(lowest)? | 1) << lowest)
}

/// The largest value up to `last` that has one of these bits.
fn last_with(last: u32, bits: u32) -> Option<u32> {
    if last & bits != 0 {
        return Some(last);
    }
    // All that is lower than a multiple of twice the lowest bit, and next to it, has that bit.
    let lowest = bits & bits.wrapping_neg();
    (last & !(lowest | (lowest - 1))).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::Dag;

    #[test]
    fn sides_have_the_first_and_last_values_with_and_without_bits_and_share_the_weight() {
        let node = Dag::new().ret(0);
        for (first, last) in
            (0..24_u32).flat_map(|first| (first..24).map(move |last| (first, last)))
        {
            let spans = [Span {
                first,
                last,
                weight: 100 * (last - first + 1),
                node,
            }];
            let sides = Sides::new(&spans, &[], Known::default());
            for bits in 1..40 {
                let values = |is_set: bool| {
                    let values = (first..=last).filter(move |value| (value & bits != 0) == is_set);
                    values.collect::<Vec<u32>>()
                };
                let values = [values(false), values(true)];
                for (side, values) in sides.split(0, bits).into_iter().zip(values) {
                    let ends = side.map(|side| (side.first, side.last));
                    let expected = values.first().copied().zip(values.last().copied());
                    assert_eq!(ends, expected, "{first}..={last} {bits:#x}");
                    let weight = side.map_or(0, |side| side.weight);
                    let fair = 100 * values.len() as u32;
                    assert!(weight.abs_diff(fair) <= 1, "{first}..={last} {bits:#x}");
                }
            }
        }
    }

    #[test]
    fn what_tests_have_shown_counts() {
        let values = 0..40_u32;
        for (bits, set) in (0..64).flat_map(|bits| (0..64).map(move |set| (bits, set & bits))) {
            let known = Known { bits, set };
            for (first, last) in values.clone().zip((0..64).rev().step_by(3)) {
                let fits = |value: &u32| value & bits == set;
                let count = (first..=last).filter(fits).count() as u64;
                if first <= last {
                    assert_eq!(
                        known.count(first, last),
                        count,
                        "{first}..={last} {known:?}"
                    );
                }
            }
        }
        let high = Known::default().after(1 << 31, true);
        assert_eq!(high.count(0, u32::MAX), 1 << 31);
        assert_eq!(high.count(5, (1 << 31) + 1), 2);
    }

    #[test]
    fn the_highest_bit_splits_the_whole_line() {
        let node = Dag::new().ret(0);
        let span = |first: u32, last: u32| Span {
            first,
            last,
            weight: 100,
            node,
        };
        let ends = |span: Span| {
            let spans = [span];
            let sides = Sides::new(&spans, &[], Known::default()).split(0, 1 << 31);
            sides.map(|side| side.map(|side| (side.first, side.last)))
        };
        let (below, above) = ((0, u32::MAX / 2), (1 << 31, u32::MAX));
        assert_eq!(ends(span(0, u32::MAX)), [Some(below), Some(above)]);
        assert_eq!(ends(span(0, below.1)), [Some(below), None]);
        assert_eq!(ends(span(above.0, u32::MAX)), [None, Some(above)]);
        assert_eq!(last_with(below.1, 1 << 31), None);
    }
}
