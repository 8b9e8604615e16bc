//! The rest of a line after a bit test: the values that have none of some bits.
//!
//! A comparison keeps runs whole; a bit test splits them. The rest of a run is given by its first and last value, but
//! need not contain all values between. Runs without remaining values disappear, and neighbours of one decision are
//! merged.

use super::two_decisions::{bits_of, common_bits, first_without};
use crate::tree::Span;

/// Values of one run that are equally frequent.
#[derive(Clone, Copy, Debug)]
pub(in crate::tree) struct Grain {
    pub(in crate::tree) first: u32,
    pub(in crate::tree) last: u32,
    pub(in crate::tree) weight: u64,
}

/// The number of values from `first` to `last` that have none of these bits.
fn count_clear(first: u32, last: u32, bits: u32) -> u64 {
    count_clear_below(u64::from(last) + 1, bits) - count_clear_below(first.into(), bits)
}

/// The number of values below a limit that have none of these bits.
fn count_clear_below(end: u64, bits: u32) -> u64 {
    let bits = u64::from(bits);
    let (mut count, mut rest) = (0, end);
    // For each set bit `top` of `end`, the values that agree with `end` above `top` and have `top` clear.
    while let Some(top) = rest.checked_ilog2() {
        let below = (1_u64 << top) - 1;
        count += 1_u64 << (!bits & below).count_ones();
        if bits & 1 << top != 0 {
            break;
        }
        rest ^= 1 << top;
    }
    count
}

/// Runs, the bits that earlier tests have shown to be clear in all values, and the frequencies of the values.
pub(in crate::tree) struct Rest<'a> {
    pub(in crate::tree) spans: &'a [Span],
    /// The bits that are known to be clear.
    pub(in crate::tree) known: u32,
    /// By run, its grains; none if all values are equally frequent.
    grains: Vec<&'a [Grain]>,
}

impl<'a> Rest<'a> {
    /// The rest of a line of runs that consist of grains; the values of runs without grains are equally frequent.
    pub(in crate::tree) fn new(spans: &'a [Span], grains: &'a [Grain], known: u32) -> Rest<'a> {
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
        Rest {
            spans,
            known,
            grains: spans.iter().map(of_span).collect(),
        }
    }

    /// The values of a run that have none of these bits.
    pub(in crate::tree) fn clear(&self, at: usize, bits: u32) -> Option<Span> {
        let span = &self.spans[at];
        let bits = bits & !self.known;
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
            weight: self.weight_clear(at, bits),
            ..*span
        })
    }

    /// The weight of those values of a run that have none of these bits; some of its values have one.
    fn weight_clear(&self, at: usize, bits: u32) -> u32 {
        let span = &self.spans[at];
        let ratio = |first: u32, last: u32| {
            let whole = count_clear(first, last, self.known).max(1);
            count_clear(first, last, self.known | bits) as f64 / whole as f64
        };
        let share = match self.grains[at] {
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
}

/// Whether all values of some grains have the same weight.
fn are_equally_frequent(grains: &[Grain]) -> bool {
    let length = |grain: &Grain| u128::from(grain.last - grain.first) + 1;
    grains.windows(2).all(|pair| {
        let [one, other] = [&pair[0], &pair[1]];
        u128::from(one.weight) * length(other) == u128::from(other.weight) * length(one)
    })
}

/// Appends a run, or merges it with the last one if both have one decision.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::Dag;

    #[test]
    fn the_rest_has_the_first_and_last_value_without_the_bits_and_its_share_of_the_weight() {
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
            let rest = Rest::new(&spans, &[], 0);
            for bits in 1..40 {
                let values: Vec<u32> = (first..=last).filter(|value| value & bits == 0).collect();
                let clear = rest.clear(0, bits);
                let ends = clear.map(|clear| (clear.first, clear.last));
                let expected = values.first().copied().zip(values.last().copied());
                assert_eq!(ends, expected, "{first}..={last} {bits:#x}");
                let weight = clear.map_or(0, |clear| clear.weight);
                let fair = 100 * values.len() as u32;
                assert!(weight.abs_diff(fair) <= 1, "{first}..={last} {bits:#x}");
            }
        }
    }

    #[test]
    fn values_without_bits_are_counted() {
        for bits in 0..64 {
            for (first, last) in (0..40_u32).zip((0..64).rev().step_by(3)) {
                let count = (first..=last).filter(|value| value & bits == 0).count() as u64;
                if first <= last {
                    let counted = count_clear(first, last, bits);
                    assert_eq!(counted, count, "{first}..={last} {bits:#x}");
                }
            }
        }
        assert_eq!(count_clear(0, u32::MAX, 1 << 31), 1 << 31);
        assert_eq!(count_clear(5, (1 << 31) + 1, 1 << 31), (1 << 31) - 5);
    }

    #[test]
    fn the_highest_bit_halves_the_whole_line() {
        let node = Dag::new().ret(0);
        let ends = |first: u32, last: u32| {
            let weight = 100;
            let spans = [Span {
                first,
                last,
                weight,
                node,
            }];
            let clear = Rest::new(&spans, &[], 0).clear(0, 1 << 31);
            clear.map(|clear| (clear.first, clear.last))
        };
        let (below, above) = ((0, u32::MAX / 2), (1 << 31, u32::MAX));
        assert_eq!(ends(0, u32::MAX), Some(below));
        assert_eq!(ends(0, below.1), Some(below));
        assert_eq!(ends(above.0, u32::MAX), None);
    }
}
