//! The sizes of conditions that kafel rejects: too many nested operators, too many values at a time.
//!
//! Kafel builds a tree of operators with two operands, the first two of a chain lowest. Filters keep values in 16 words
//! of memory while they compute others.

use super::ast::{Bits, Condition};
use super::compare::Value;

/// The most nested operators of a condition.
pub(super) const MAX_LEVELS: usize = 200;
/// The most values to keep. The count is an upper bound of kafel's.
pub(super) const MAX_KEPT: usize = 16;

/// The nesting of the operators of a condition, the comparison included.
pub(super) fn of_condition(condition: &Condition) -> usize {
    match condition {
        Condition::Any(parts) | Condition::All(parts) => of_chain(parts.iter().map(of_condition)),
        Condition::Not(inner) => 1 + of_condition(inner),
        Condition::Compare(comparison) => {
            1 + of_bits(&comparison.left).max(of_bits(&comparison.right))
        }
    }
}

fn of_bits(bits: &Bits) -> usize {
    match bits {
        Bits::Number(_) | Bits::Argument(_) => 0,
        Bits::And(parts) | Bits::Or(parts) => of_chain(parts.iter().map(of_bits)),
    }
}

/// The nesting of a chain of operators, given that of its operands.
fn of_chain(parts: impl Iterator<Item = usize>) -> usize {
    parts
        .reduce(|before, part| 1 + before.max(part))
        .unwrap_or_default()
}

/// An upper bound of the values that must be kept for a comparison.
pub(super) fn kept(left: &Value, right: &Value) -> usize {
    with(left, kept_for(left), right)
}

fn kept_for(value: &Value) -> usize {
    match value {
        Value::Number(_) | Value::Argument(_) => 0,
        Value::And(parts) | Value::Or(parts) => {
            let mut parts = parts.iter();
            let Some(first) = parts.next() else { return 0 };
            let start = (first, kept_for(first));
            let joined = parts.fold(start, |(before, kept), part| {
                // Only a chain of one part can be a number.
                let kept = with(before, kept, part);
                (if is_number(before) { part } else { value }, kept)
            });
            joined.1
        }
    }
}

/// The number of values to keep for two operands, given that of the first; numbers are in the instructions.
fn with(left: &Value, kept: usize, right: &Value) -> usize {
    match (is_number(left), is_number(right)) {
        (_, true) => kept,
        (true, _) => kept_for(right),
        _ => 1 + kept.max(kept_for(right)),
    }
}

fn is_number(value: &Value) -> bool {
    matches!(value, Value::Number(_))
}
