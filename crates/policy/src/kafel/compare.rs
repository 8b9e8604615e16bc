//! Comparisons of values built from arguments and numbers by `&` and `|`.
//!
//! Rules compare one argument, optionally masked, with a number, or two arguments with each other. A comparison of this
//! form becomes such a test; any other is split into tests of single bits, which can express every comparison: `(a & b)
//! <= 5` holds if it holds for the highest bit that differs.

use tamis_abi::ArgIndex;
use tamis_rules::{CmpOp, Operand, Predicate, Test};

/// A value to compare.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Number(u64),
    Argument(ArgIndex),
    And(Vec<Value>),
    Or(Vec<Value>),
}

/// A comparison as a predicate.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) predicate: Predicate,
    /// The count of single-bit tests; 0 if one test of the rules is sufficient.
    pub(super) bit_tests: usize,
}

/// A masked argument, and bits that are set: `arg & keep | set`.
#[derive(Clone, Copy, Debug)]
struct Masked {
    /// `None` only if `keep` is 0.
    argument: Option<ArgIndex>,
    keep: u64,
    /// Disjoint from `keep`.
    set: u64,
}

/// The width of a comparison in bits.
#[derive(Clone, Copy, Debug)]
struct Width {
    is_wide: bool,
}

/// `left op right`, of 64 bits or of the lower 32.
pub(super) fn compare(left: &Value, op: CmpOp, right: &Value, is_wide: bool) -> Compared {
    let width = Width { is_wide };
    let plain = match (masked(left, width), masked(right, width)) {
        (Some(left), Some(right)) => match (left.argument, right.argument) {
            (_, None) => with_number(left, op, right.set, width),
            (None, _) => with_number(right, op.swapped(), left.set, width),
            _ => between(left, op, right, width),
        },
        _ => None,
    };
    match plain {
        Some(predicate) => Compared {
            predicate,
            bit_tests: 0,
        },
        None => {
            let predicate = bit_by_bit(left, op, right, width);
            Compared {
                bit_tests: predicate.tests().count(),
                predicate,
            }
        }
    }
}

impl Width {
    fn max(self) -> u64 {
        match self.is_wide {
            true => u64::MAX,
            false => u64::from(u32::MAX),
        }
    }

    /// The bit positions, lowest first.
    fn bits(self) -> impl Iterator<Item = u32> {
        0..self.max().count_ones()
    }

    fn operand(self, argument: ArgIndex) -> Operand {
        match self.is_wide {
            true => Operand::arg(argument),
            false => Operand::arg_low(argument),
        }
    }
}

/// The value as one argument with a mask, if it has that form.
fn masked(value: &Value, width: Width) -> Option<Masked> {
    match value {
        Value::Number(number) => Some(Masked {
            argument: None,
            keep: 0,
            set: *number,
        }),
        Value::Argument(argument) => Some(Masked {
            argument: Some(*argument),
            keep: width.max(),
            set: 0,
        }),
        Value::And(parts) => folded(parts, width, |left, right| {
            // `&` keeps a bit of an argument if the other side has a one or the same bit.
            let keep = left.keep & right.set | left.set & right.keep | left.keep & right.keep;
            (keep, left.set & right.set)
        }),
        Value::Or(parts) => folded(parts, width, |left, right| {
            let set = left.set | right.set;
            ((left.keep | right.keep) & !set, set)
        }),
    }
}

fn folded(
    parts: &[Value],
    width: Width,
    join: impl Fn(Masked, Masked) -> (u64, u64),
) -> Option<Masked> {
    let mut parts = parts.iter().map(|part| masked(part, width));
    let mut all = parts.next()??;
    for part in parts {
        let part = part?;
        let argument = match (all.argument, part.argument) {
            (Some(left), Some(right)) if left != right => return None,
            (left, right) => left.or(right),
        };
        let (keep, set) = join(all, part);
        all = Masked {
            argument: argument.filter(|_| keep != 0),
            keep,
            set,
        };
    }
    Some(all)
}

/// A comparison of at most one argument with a number.
fn with_number(left: Masked, op: CmpOp, number: u64, width: Width) -> Option<Predicate> {
    let Some(argument) = left.argument else {
        return Some(constant(op.holds(left.set, number)));
    };
    let operand = width.operand(argument);
    if left.keep == width.max() {
        return Some(Predicate::compare(operand, op, number));
    }
    if width.is_wide && left.keep == u64::from(u32::MAX) && left.set == 0 {
        return Some(Predicate::compare(Operand::arg_low(argument), op, number));
    }
    let equal = || {
        let is_possible = number & left.set == left.set && number & !(left.keep | left.set) == 0;
        match is_possible {
            true => Predicate::Test(Test::Masked {
                operand,
                mask: left.keep,
                value: number & left.keep,
            }),
            false => Predicate::False,
        }
    };
    match op {
        CmpOp::Eq => Some(equal()),
        CmpOp::Ne => Some(negated(equal())),
        // `> 0` is `!= 0`.
        CmpOp::Gt if number == 0 => Some(negated(equal())),
        CmpOp::Le if number == 0 => Some(equal()),
        _ => None,
    }
}

/// A comparison of two whole arguments.
fn between(left: Masked, op: CmpOp, right: Masked, width: Width) -> Option<Predicate> {
    let whole = |masked: Masked| {
        let argument = masked.argument.filter(|_| masked.keep == width.max())?;
        Some(width.operand(argument))
    };
    Some(Predicate::Test(Test::Between {
        left: whole(left)?,
        op,
        right: whole(right)?,
    }))
}

fn bit_by_bit(left: &Value, op: CmpOp, right: &Value, width: Width) -> Predicate {
    match op {
        CmpOp::Eq => equal(left, right, width),
        CmpOp::Ne => negated(equal(left, right, width)),
        CmpOp::Lt => below(left, right, false, width),
        CmpOp::Le => below(left, right, true, width),
        CmpOp::Gt => below(right, left, false, width),
        CmpOp::Ge => below(right, left, true, width),
    }
}

fn equal(left: &Value, right: &Value, width: Width) -> Predicate {
    let both = |place| {
        let (left, right) = (bit(left, place, width), bit(right, place, width));
        match (left, right) {
            (Predicate::True, other) | (other, Predicate::True) => other,
            (Predicate::False, other) | (other, Predicate::False) => negated(other),
            (left, right) => any(vec![
                all(vec![left.clone(), right.clone()]),
                all(vec![negated(left), negated(right)]),
            ]),
        }
    };
    all(width.bits().map(both).collect())
}

/// `left < right`, or `left <= right` with `or_equal`.
fn below(left: &Value, right: &Value, or_equal: bool, width: Width) -> Predicate {
    // The lower bits decide if the higher ones are equal.
    let mut so_far = constant(or_equal);
    for place in width.bits() {
        let not_left = negated(bit(left, place, width));
        let right = bit(right, place, width);
        so_far = any(vec![
            all(vec![not_left.clone(), right.clone()]),
            all(vec![any(vec![not_left, right]), so_far]),
        ]);
    }
    so_far
}

/// A bit of a value.
fn bit(value: &Value, place: u32, width: Width) -> Predicate {
    let mask = 1 << place;
    match value {
        Value::Number(number) => constant(number & mask != 0),
        Value::Argument(argument) => Predicate::Test(Test::Masked {
            operand: width.operand(*argument),
            mask,
            value: mask,
        }),
        Value::And(parts) => all(parts.iter().map(|part| bit(part, place, width)).collect()),
        Value::Or(parts) => any(parts.iter().map(|part| bit(part, place, width)).collect()),
    }
}

// Constructors that simplify constants.

fn constant(holds: bool) -> Predicate {
    match holds {
        true => Predicate::True,
        false => Predicate::False,
    }
}

fn negated(predicate: Predicate) -> Predicate {
    match predicate {
        Predicate::True => Predicate::False,
        Predicate::False => Predicate::True,
        Predicate::Not(inner) => *inner,
        other => Predicate::Not(Box::new(other)),
    }
}

fn all(parts: Vec<Predicate>) -> Predicate {
    joined(parts, Predicate::True, Predicate::False, Predicate::All)
}

fn any(parts: Vec<Predicate>) -> Predicate {
    joined(parts, Predicate::False, Predicate::True, Predicate::Any)
}

fn joined(
    parts: Vec<Predicate>,
    neutral: Predicate,
    decisive: Predicate,
    join: fn(Vec<Predicate>) -> Predicate,
) -> Predicate {
    let mut kept: Vec<Predicate> = Vec::new();
    for part in parts {
        if part == decisive {
            return decisive;
        }
        if part != neutral {
            kept.push(part);
        }
    }
    match kept.len() {
        0 => neutral,
        1 => kept.remove(0),
        _ => join(kept),
    }
}
