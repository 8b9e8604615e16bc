//! Folding of values as in kafel, before it determines the width of a comparison.
//!
//! The width follows from the folded values: `fd == (0x100000003 & 0xffffffff)` compares 32 bits with 3, and `fd & -1`
//! is `fd`. Kafel folds two operands at a time, from the left: two numbers, and a number that determines the result or
//! leaves it unchanged. `fd & 0x1ffffffff & 0xff` keeps both numbers, so it has 64 bits.

use super::compare::Value;

/// `left & right`.
pub(super) fn and(left: Value, right: Value) -> Value {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Value::Number(left & right),
        (Value::Number(0), _) | (_, Value::Number(0)) => Value::Number(0),
        (Value::Number(u64::MAX), other) | (other, Value::Number(u64::MAX)) => other,
        (Value::And(mut parts), right) => {
            parts.push(right);
            Value::And(parts)
        }
        (left, right) => Value::And(vec![left, right]),
    }
}

/// `left | right`.
pub(super) fn or(left: Value, right: Value) -> Value {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Value::Number(left | right),
        (Value::Number(u64::MAX), _) | (_, Value::Number(u64::MAX)) => Value::Number(u64::MAX),
        (Value::Number(0), other) | (other, Value::Number(0)) => other,
        (Value::Or(mut parts), right) => {
            parts.push(right);
            Value::Or(parts)
        }
        (left, right) => Value::Or(vec![left, right]),
    }
}

/// Calls `visit` for each number and argument of a value, from the left.
pub(super) fn for_each_leaf(value: &Value, visit: &mut impl FnMut(&Value)) {
    match value {
        Value::Number(_) | Value::Argument(_) => visit(value),
        Value::And(parts) | Value::Or(parts) => {
            for part in parts {
                for_each_leaf(part, visit);
            }
        }
    }
}
