//! Predicates: conditions on a call's arguments and instruction pointer.
//!
//! A predicate is a boolean tree over [`Test`]s. A test compares one [`Operand`] - a 64-bit argument, its low or
//! high half, or the instruction pointer - always unsigned. Widths are explicit: a language that compares an `int`
//! argument on 32 bits uses the low half.

use std::mem;

use tamis_abi::{ArgIndex, SeccompData, VariableIndex, Word};

use crate::input::{Values, word_of};
use crate::set::IntervalSet;

/// A condition on one system call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Predicate {
    /// Holds for every call.
    True,
    /// Holds for no call.
    False,
    /// Holds if the inner one doesn't.
    Not(Box<Predicate>),
    /// Holds if all hold; the empty conjunction holds.
    All(Vec<Predicate>),
    /// Holds if at least one holds; the empty disjunction doesn't.
    Any(Vec<Predicate>),
    /// Holds if the test holds.
    Test(Test),
}

/// The source of an operand's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperandSource {
    /// An argument.
    Arg(ArgIndex),
    /// The instruction pointer.
    Ip,
    /// A run-time variable of the policy: the same for all calls, and unknown before binding.
    Variable(VariableIndex),
}

/// The bits of a source in an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// All 64 bits.
    Full,
    /// The lower 32 bits.
    Low,
    /// The upper 32 bits, shifted down.
    High,
}

/// An unsigned value of the call or of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operand {
    /// The source.
    pub source: OperandSource,
    /// The bits.
    pub part: Part,
}

/// An unsigned comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CmpOp {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

/// A test of the call. Constants above 32 bits never equal a half; they are allowed, and are compared without
/// truncation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// `operand op value`.
    Compare {
        /// The left-hand side.
        operand: Operand,
        /// The comparison.
        op: CmpOp,
        /// The right-hand side.
        value: u64,
    },
    /// `operand & mask == value`; never holds if `value` has bits outside `mask`.
    Masked {
        /// The tested value.
        operand: Operand,
        /// The tested bits.
        mask: u64,
        /// Their required value.
        value: u64,
    },
    /// `operand` is an element of the set.
    In {
        /// The tested value.
        operand: Operand,
        /// The set.
        set: IntervalSet<u64>,
    },
    /// `left op right`, both from the call, or one of them a variable.
    Between {
        /// The left-hand side.
        left: Operand,
        /// The comparison.
        op: CmpOp,
        /// The right-hand side.
        right: Operand,
    },
}

impl Operand {
    /// All 64 bits of an argument.
    pub const fn arg(arg: ArgIndex) -> Operand {
        Operand {
            source: OperandSource::Arg(arg),
            part: Part::Full,
        }
    }

    /// The lower half of an argument.
    pub const fn arg_low(arg: ArgIndex) -> Operand {
        Operand {
            source: OperandSource::Arg(arg),
            part: Part::Low,
        }
    }

    /// The words of the source: low, high.
    pub const fn words(self) -> (Word, Word) {
        match self.source {
            OperandSource::Arg(arg) => (Word::arg_low(arg), Word::arg_high(arg)),
            OperandSource::Ip => (Word::IP_LOW, Word::IP_HIGH),
            OperandSource::Variable(variable) => {
                (Word::variable_low(variable), Word::variable_high(variable))
            }
        }
    }

    /// The value in a call, with these values of the variables.
    pub const fn read(self, data: &SeccompData, variables: &Values) -> u64 {
        let (low, high) = self.words();
        let low = word_of(data, variables, low) as u64;
        let high = word_of(data, variables, high) as u64;
        match self.part {
            Part::Full => high << 32 | low,
            Part::Low => low,
            Part::High => high,
        }
    }

    /// The largest possible value.
    pub const fn max(self) -> u64 {
        match self.part {
            Part::Full => u64::MAX,
            Part::Low | Part::High => u32::MAX as u64,
        }
    }
}

impl CmpOp {
    /// All comparisons.
    pub const ALL: [CmpOp; 6] = [
        CmpOp::Eq,
        CmpOp::Ne,
        CmpOp::Lt,
        CmpOp::Le,
        CmpOp::Gt,
        CmpOp::Ge,
    ];

    /// Whether `left op right`.
    pub const fn holds(self, left: u64, right: u64) -> bool {
        match self {
            CmpOp::Eq => left == right,
            CmpOp::Ne => left != right,
            CmpOp::Lt => left < right,
            CmpOp::Le => left <= right,
            CmpOp::Gt => left > right,
            CmpOp::Ge => left >= right,
        }
    }

    /// The comparison that holds with the sides exchanged.
    #[must_use]
    pub const fn swapped(self) -> CmpOp {
        match self {
            CmpOp::Eq | CmpOp::Ne => self,
            CmpOp::Lt => CmpOp::Gt,
            CmpOp::Le => CmpOp::Ge,
            CmpOp::Gt => CmpOp::Lt,
            CmpOp::Ge => CmpOp::Le,
        }
    }

    /// The comparison that holds exactly if this one doesn't.
    ///
    /// ```
    /// use tamis_rules::CmpOp;
    /// for op in CmpOp::ALL {
    ///     assert!([1, 2, 3].iter().all(|left| op.holds(*left, 2) != op.negated().holds(*left, 2)));
    /// }
    /// ```
    #[must_use]
    pub const fn negated(self) -> CmpOp {
        match self {
            CmpOp::Eq => CmpOp::Ne,
            CmpOp::Ne => CmpOp::Eq,
            CmpOp::Lt => CmpOp::Ge,
            CmpOp::Le => CmpOp::Gt,
            CmpOp::Gt => CmpOp::Le,
            CmpOp::Ge => CmpOp::Lt,
        }
    }

    /// The operator as written.
    pub const fn symbol(self) -> &'static str {
        match self {
            CmpOp::Eq => "==",
            CmpOp::Ne => "!=",
            CmpOp::Lt => "<",
            CmpOp::Le => "<=",
            CmpOp::Gt => ">",
            CmpOp::Ge => ">=",
        }
    }
}

impl Test {
    /// Whether the test holds for a call and these values of the variables.
    pub fn holds(&self, data: &SeccompData, variables: &Values) -> bool {
        match self {
            Test::Compare { operand, op, value } => op.holds(operand.read(data, variables), *value),
            Test::Masked {
                operand,
                mask,
                value,
            } => operand.read(data, variables) & mask == *value,
            Test::In { operand, set } => set.contains(operand.read(data, variables)),
            Test::Between { left, op, right } => {
                op.holds(left.read(data, variables), right.read(data, variables))
            }
        }
    }
}

impl Predicate {
    /// A comparison of an operand with a constant.
    pub const fn compare(operand: Operand, op: CmpOp, value: u64) -> Predicate {
        Predicate::Test(Test::Compare { operand, op, value })
    }

    /// Whether the predicate holds for a call and these values of the variables.
    pub fn holds(&self, data: &SeccompData, variables: &Values) -> bool {
        match self {
            Predicate::True => true,
            Predicate::False => false,
            Predicate::Not(inner) => !inner.holds(data, variables),
            Predicate::All(parts) => parts.iter().all(|part| part.holds(data, variables)),
            Predicate::Any(parts) => parts.iter().any(|part| part.holds(data, variables)),
            Predicate::Test(test) => test.holds(data, variables),
        }
    }

    /// Replaces each test by a predicate, in order and without recursion. Tests in the replacements are not
    /// replaced.
    ///
    /// ```
    /// use tamis_abi::ArgIndex;
    /// use tamis_rules::{CmpOp, Operand, Predicate};
    /// let is = |value| Predicate::compare(Operand::arg(ArgIndex::ALL[0]), CmpOp::Eq, value);
    /// let mut either = Predicate::Any(vec![is(1), is(2)]);
    /// either.map_tests(|test| Predicate::Not(Box::new(Predicate::Test(test))));
    /// let not = |value| Predicate::Not(Box::new(is(value)));
    /// assert_eq!(either, Predicate::Any(vec![not(1), not(2)]));
    /// ```
    pub fn map_tests(&mut self, mut replacement: impl FnMut(Test) -> Predicate) {
        let mut open = vec![self];
        while let Some(predicate) = open.pop() {
            match predicate {
                Predicate::Not(inner) => open.push(inner),
                Predicate::All(parts) | Predicate::Any(parts) => {
                    open.extend(parts.iter_mut().rev());
                }
                Predicate::True | Predicate::False => {}
                Predicate::Test(_) => {
                    if let Predicate::Test(test) = mem::replace(predicate, Predicate::True) {
                        *predicate = replacement(test);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::ArgIndex;

    use super::*;

    /// Tests of these numbers, as written, at several depths.
    fn nesting(values: [u64; 4], wrapped: impl Fn(Predicate) -> Predicate) -> Predicate {
        let operand = Operand::arg(ArgIndex::ALL[0]);
        let [a, b, c, d] =
            values.map(|value| wrapped(Predicate::compare(operand, CmpOp::Eq, value)));
        let inner = Predicate::Not(Box::new(Predicate::All(vec![b, Predicate::False, c])));
        Predicate::Any(vec![a, inner, Predicate::All(Vec::new()), d])
    }

    #[test]
    fn mapped_tests_are_taken_as_written_and_their_replacements_are_left_alone() {
        let not = |part| Predicate::Not(Box::new(part));
        let (mut predicate, mut taken) = (nesting([0, 1, 2, 3], |part| part), Vec::new());
        predicate.map_tests(|test| {
            if let Test::Compare { value, .. } = test {
                taken.push(value);
            }
            not(Predicate::Test(test))
        });
        assert_eq!(taken, [0, 1, 2, 3]);
        assert_eq!(predicate, nesting([0, 1, 2, 3], not));
    }
}
