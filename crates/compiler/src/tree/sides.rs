//! The two sides of a bit test: what of a part of a line has one of some bits, and what has none.
//!
//! A comparison leaves whole runs on each side; a question for bits goes through them. What a run keeps
//! is described by the first and the last value that stay; those between may be gone. Runs of which
//! nothing stays vanish, and neighbours of one decision become one run.

use super::Span;
use super::bits::{bits_of, common_bits, first_without};

/// Values of one run that are equally frequent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grain {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) weight: u64,
}

/// Runs, and how frequent their values are.
pub(super) struct Sides<'a> {
    pub(super) spans: &'a [Span],
    /// By run; none where all values are equally frequent.
    grains: Vec<&'a [Grain]>,
}

impl<'a> Sides<'a> {
    /// Of runs that consist of grains; those without any have values that are equally frequent.
    pub(super) fn new(spans: &'a [Span], grains: &'a [Grain]) -> Sides<'a> {
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
            grains: spans.iter().map(of_span).collect(),
        }
    }

    /// The values of a run that have none of these bits.
    pub(super) fn clear(&self, at: usize, bits: u32) -> Option<Span> {
        clear(&self.spans[at], self.grains[at], bits)
    }

    /// The values of a run that have none of these bits, and those that have one.
    pub(super) fn split(&self, at: usize, bits: u32) -> [Option<Span>; 2] {
        let span = &self.spans[at];
        let clear = self.clear(at, bits);
        let set = match clear {
            None => Some(*span),
            Some(_) if span.is_single() || bits_of(span) & bits == 0 => None,
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
pub(super) fn clear(span: &Span, grains: &[Grain], bits: u32) -> Option<Span> {
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
        weight: weight_clear(span, grains, bits),
        ..*span
    })
}

/// The first and the last value that have one of these bits, of which there is at least one.
fn ends_with(span: &Span, bits: u32) -> Option<(u32, u32)> {
    let first = first_with(span.first, bits).filter(|first| *first <= span.last)?;
    Some((first, last_with(span.last, bits)?))
}

/// What a run of which some values have these bits and some do not keeps of its weight without them.
fn weight_clear(span: &Span, grains: &[Grain], bits: u32) -> u32 {
    let ratio = |first: u32, last: u32| {
        let (before, until) = (
            count_without(first.into(), bits),
            count_without(u64::from(last) + 1, bits),
        );
        (until - before) as f64 / (f64::from(last - first) + 1.0)
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
pub(super) fn push(side: &mut Vec<Span>, span: Span) {
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

/// How many values below this have none of these bits.
fn count_without(end: u64, bits: u32) -> u64 {
    if bits.is_power_of_two() {
        // It is clear in the lower half of each of its periods.
        let bit = u64::from(bits);
        let begun = end & (2 * bit - 1);
        return (end - begun) / 2 + begun.min(bit);
    }
    let (mut count, mut rest) = (0, end);
    while let Some(top) = rest.checked_ilog2() {
        // All that agree above this bit, and have it clear.
        let free = !u64::from(bits) & ((1 << top) - 1);
        count += 1_u64 << free.count_ones();
        if u64::from(bits) >> top & 1 == 1 {
            break;
        }
        rest ^= 1 << top;
    }
    count
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
            let sides = Sides::new(&spans, &[]);
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
            let sides = Sides::new(&spans, &[]).split(0, 1 << 31);
            sides.map(|side| side.map(|side| (side.first, side.last)))
        };
        let (below, above) = ((0, u32::MAX / 2), (1 << 31, u32::MAX));
        assert_eq!(ends(span(0, u32::MAX)), [Some(below), Some(above)]);
        assert_eq!(ends(span(0, below.1)), [Some(below), None]);
        assert_eq!(ends(span(above.0, u32::MAX)), [None, Some(above)]);
        assert_eq!(last_with(below.1, 1 << 31), None);
    }
}
