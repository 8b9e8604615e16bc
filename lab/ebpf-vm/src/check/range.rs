//! The checker's knowledge of a number: an interval that contains it.
//!
//! The result of each operation is an interval with all possible results. A constant stays a constant, by the
//! [semantics](crate::semantics) of the interpreter.

use crate::insn::{AluOp, Bits, Cond, Size, Width};
use crate::semantics::{arithmetic, holds, truncated};

/// All numbers from `min` to `max`, as unsigned ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: u64,
}

const MAX32: u64 = u32::MAX as u64;

impl Range {
    pub(super) const ANY: Range = Range {
        min: 0,
        max: u64::MAX,
    };

    pub(super) const fn exactly(value: u64) -> Range {
        Range {
            min: value,
            max: value,
        }
    }

    /// All numbers with this many bits.
    pub(super) const fn of_bits(bits: Bits) -> Range {
        Range {
            min: 0,
            max: u64::MAX >> (64 - bits.count()),
        }
    }

    pub(super) const fn of_size(size: Size) -> Range {
        Range::of_bits(size.bits())
    }

    /// The number, if there is only one.
    pub(super) const fn value(self) -> Option<u64> {
        if self.min == self.max {
            Some(self.min)
        } else {
            None
        }
    }

    pub(super) const fn contains(self, other: Range) -> bool {
        self.min <= other.min && other.max <= self.max
    }

    fn new(min: u64, max: u64) -> Option<Range> {
        (min <= max).then_some(Range { min, max })
    }

    /// The lower bits of a number.
    pub(super) fn truncated(self, bits: Bits) -> Range {
        let all = Range::of_bits(bits);
        if all.contains(self) {
            return self;
        }
        let above = |value: u64| value.checked_shr(bits.count());
        match above(self.min) == above(self.max) {
            true => Range {
                min: truncated(bits, self.min),
                max: truncated(bits, self.max),
            },
            false => all,
        }
    }

    /// The result of a function of one number; `or` if there are several.
    pub(super) fn map(self, function: impl Fn(u64) -> u64, or: Range) -> Range {
        self.value()
            .map_or(or, |value| Range::exactly(function(value)))
    }
}

/// The results of arithmetic.
pub(super) fn of_arithmetic(width: Width, op: AluOp, a: Range, b: Range) -> Range {
    if let (Some(a), Some(b)) = (a.value(), b.value()) {
        return Range::exactly(arithmetic(width, op, a, b));
    }
    let bits = width.size().bits();
    let (a, b) = (a.truncated(bits), b.truncated(bits));
    let all = Range::of_bits(bits);
    let result = unbounded(op, a, b, bits.count()).unwrap_or(all);
    // With 32 bits a larger result wraps.
    if all.contains(result) { result } else { all }
}

/// The results with as many bits as they need; `None` if they don't fit or nothing is known.
fn unbounded(op: AluOp, a: Range, b: Range, bits: u32) -> Option<Range> {
    let distance = b.value().map(|distance| distance as u32 & (bits - 1));
    let below = |value: u64| u64::MAX.checked_shr(value.leading_zeros()).unwrap_or(0);
    match op {
        AluOp::Add => Range::new(a.min.checked_add(b.min)?, a.max.checked_add(b.max)?),
        AluOp::Sub => Range::new(a.min.checked_sub(b.max)?, a.max.checked_sub(b.min)?),
        AluOp::Mul => Range::new(a.min.checked_mul(b.min)?, a.max.checked_mul(b.max)?),
        AluOp::Div => match b.value() {
            Some(divisor) if divisor > 0 => Range::new(a.min / divisor, a.max / divisor),
            _ => Range::new(0, a.max),
        },
        // By 0 the remainder is the dividend.
        AluOp::Mod if b.min > 0 => Range::new(0, a.max.min(b.max - 1)),
        AluOp::Mod => Range::new(0, a.max),
        AluOp::And => Range::new(0, a.max.min(b.max)),
        AluOp::Or => Range::new(a.min.max(b.min), below(a.max | b.max)),
        AluOp::Xor => Range::new(0, below(a.max | b.max)),
        AluOp::Rsh => match distance {
            Some(distance) => Range::new(a.min >> distance, a.max >> distance),
            None => Range::new(0, a.max),
        },
        AluOp::Lsh => {
            let distance = distance.filter(|distance| a.max.leading_zeros() >= *distance)?;
            Range::new(a.min << distance, a.max << distance)
        }
        AluOp::Mov => Some(b),
        AluOp::SDiv | AluOp::SMod | AluOp::Arsh => None,
    }
}

/// Both numbers if a comparison holds, or doesn't; `None` if that can't be.
pub(super) fn assuming(
    width: Width,
    cond: Cond,
    is_true: bool,
    a: Range,
    b: Range,
) -> Option<(Range, Range)> {
    if let (Some(a_value), Some(b_value)) = (a.value(), b.value()) {
        return (holds(width, cond, a_value, b_value) == is_true).then_some((a, b));
    }
    // A 32-bit comparison implies nothing for larger numbers, a signed one needs equal signs.
    let known = Range::of_bits(width.size().bits());
    let positive = Range {
        min: 0,
        max: known.max >> 1,
    };
    let is_known = |known: Range| known.contains(a) && known.contains(b);
    let cond = match cond {
        _ if !is_known(known) => return Some((a, b)),
        Cond::SGt | Cond::SGe | Cond::SLt | Cond::SLe if !is_known(positive) => {
            return Some((a, b));
        }
        Cond::SGt => Cond::Gt,
        Cond::SGe => Cond::Ge,
        Cond::SLt => Cond::Lt,
        Cond::SLe => Cond::Le,
        unsigned => unsigned,
    };
    let swapped = |pair: Option<(Range, Range)>| pair.map(|(a, b)| (b, a));
    match (cond, is_true) {
        (Cond::Eq, true) | (Cond::Ne, false) => {
            let both = Range::new(a.min.max(b.min), a.max.min(b.max))?;
            Some((both, both))
        }
        (Cond::Eq, false) | (Cond::Ne, true) => Some((without(a, b)?, without(b, a)?)),
        (Cond::Gt, true) | (Cond::Le, false) => greater(a, b),
        (Cond::Lt, true) | (Cond::Ge, false) => swapped(greater(b, a)),
        (Cond::Ge, true) | (Cond::Lt, false) => at_least(a, b),
        (Cond::Le, true) | (Cond::Gt, false) => swapped(at_least(b, a)),
        _ => Some((a, b)),
    }
}

/// `a` without the only number of `b`, if that is at an end.
fn without(a: Range, b: Range) -> Option<Range> {
    match b.value() {
        Some(value) if value == a.min && value == a.max => None,
        Some(value) if value == a.min => Range::new(a.min + 1, a.max),
        Some(value) if value == a.max => Range::new(a.min, a.max - 1),
        _ => Some(a),
    }
}

fn greater(a: Range, b: Range) -> Option<(Range, Range)> {
    let above = a.min.max(b.min.checked_add(1)?);
    let below = b.max.min(a.max.checked_sub(1)?);
    Some((Range::new(above, a.max)?, Range::new(b.min, below)?))
}

fn at_least(a: Range, b: Range) -> Option<(Range, Range)> {
    Some((
        Range::new(a.min.max(b.min), a.max)?,
        Range::new(b.min, b.max.min(a.max))?,
    ))
}

/// The sign-extended lower bits.
pub(super) fn sign_extended(width: Width, bits: Bits, value: Range) -> Range {
    let extend = |value| crate::semantics::sign_extended(width, bits, value);
    let positive = Range::of_bits(bits).max >> 1;
    let or = match value.truncated(bits) {
        low if low.max <= positive => low.truncated(width.size().bits()),
        _ if width == Width::W32 => Range { min: 0, max: MAX32 },
        _ => Range::ANY,
    };
    value.map(extend, or)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers at the edges of everything.
    const EDGES: [u64; 16] = [
        0,
        1,
        2,
        7,
        8,
        31,
        63,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        1 << 32,
        (1 << 32) + 5,
        i64::MAX as u64,
        1 << 63,
        u64::MAX - 1,
        u64::MAX,
    ];

    /// All ranges between edges with some of the numbers in them.
    fn ranges() -> Vec<(Range, Vec<u64>)> {
        let mut ranges = Vec::new();
        for (low, min) in EDGES.into_iter().enumerate() {
            for max in EDGES.into_iter().skip(low) {
                let range = Range { min, max };
                let inside = EDGES
                    .into_iter()
                    .filter(|value| range.contains(Range::exactly(*value)));
                ranges.push((range, inside.collect()));
            }
        }
        ranges
    }

    #[test]
    fn results_lie_in_the_range() {
        for (a, in_a) in ranges() {
            for (b, in_b) in ranges().iter().step_by(3) {
                for (op, width) in AluOp::ALL
                    .into_iter()
                    .flat_map(|op| Width::ALL.map(|w| (op, w)))
                {
                    let range = of_arithmetic(width, op, a, *b);
                    for (x, y) in in_a.iter().flat_map(|x| in_b.iter().map(move |y| (*x, *y))) {
                        let result = arithmetic(width, op, x, y);
                        let is_in = range.contains(Range::exactly(result));
                        assert!(
                            is_in,
                            "{x:#x} {op:?} {y:#x} = {result:#x} not in {range:x?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_comparison_keeps_the_numbers_for_which_it_holds() {
        for (a, in_a) in ranges() {
            for (b, in_b) in ranges().iter().step_by(3) {
                for (cond, width) in Cond::ALL
                    .into_iter()
                    .flat_map(|cond| Width::ALL.map(|w| (cond, w)))
                {
                    for (x, y) in in_a.iter().flat_map(|x| in_b.iter().map(move |y| (*x, *y))) {
                        let is_true = holds(width, cond, x, y);
                        let kept = assuming(width, cond, is_true, a, *b);
                        let (kept_a, kept_b) = kept.expect("it is so for two of the numbers");
                        assert!(kept_a.contains(Range::exactly(x)), "{x:#x} {cond:?} {y:#x}");
                        assert!(kept_b.contains(Range::exactly(y)), "{x:#x} {cond:?} {y:#x}");
                    }
                }
            }
        }
    }

    #[test]
    fn partial_values_lie_in_the_range() {
        for (range, inside) in ranges() {
            for bits in [Bits::B8, Bits::B16, Bits::B32, Bits::B64] {
                for value in &inside {
                    let part = range.truncated(bits);
                    assert!(part.contains(Range::exactly(truncated(bits, *value))));
                    for width in Width::ALL {
                        let extended = crate::semantics::sign_extended(width, bits, *value);
                        let range = sign_extended(width, bits, range);
                        assert!(
                            range.contains(Range::exactly(extended)),
                            "{value:#x} {bits:?} {width:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn masks_and_comparisons_bound() {
        let masked = of_arithmetic(Width::W64, AluOp::And, Range::ANY, Range::exactly(15));
        assert_eq!(masked, Range { min: 0, max: 15 });
        let (kept, _) = assuming(Width::W64, Cond::Lt, true, masked, Range::exactly(8)).unwrap();
        assert_eq!(kept, Range { min: 0, max: 7 });
        assert_eq!(
            assuming(Width::W64, Cond::Gt, true, kept, Range::exactly(7)),
            None
        );
    }
}
