//! The meaning of a predicate: the condition that it holds.
//!
//! Sets become conditions by halving, comparisons with constants are sets, comparisons of words with
//! each other are relations.

use tamis_abi::Word;
use tamis_rules::{CmpOp, IntervalSet, Operand, Part, Predicate, Test};

use crate::diagram::{FALSE, LimitReached, Node, TRUE, Variable};
use crate::order;
use crate::relation::Comparison;
use crate::space::Space;

type Outcome<T> = Result<T, LimitReached>;

impl Space {
    /// The condition that a predicate holds.
    pub(crate) fn predicate(&mut self, predicate: &Predicate) -> Outcome<Node> {
        match predicate {
            Predicate::True => Ok(TRUE),
            Predicate::False => Ok(FALSE),
            Predicate::Not(inner) => {
                let inner = self.predicate(inner)?;
                self.diagram.not(inner)
            }
            Predicate::All(parts) => parts.iter().try_fold(TRUE, |all, part| {
                let part = self.predicate(part)?;
                self.diagram.ite(part, all, FALSE)
            }),
            Predicate::Any(parts) => parts.iter().try_fold(FALSE, |any, part| {
                let part = self.predicate(part)?;
                self.diagram.ite(part, TRUE, any)
            }),
            Predicate::Test(test) => self.test(test),
        }
    }

    fn test(&mut self, test: &Test) -> Outcome<Node> {
        match test {
            Test::Compare { operand, op, value } => {
                self.in_set(&operand_variables(*operand), &satisfying(*op, *value))
            }
            Test::In { operand, set } => self.in_set(&operand_variables(*operand), set),
            Test::Masked {
                operand,
                mask,
                value,
            } => self.masked(*operand, *mask, *value),
            Test::Between { left, op, right } => self.between(*left, *op, *right),
        }
    }

    /// The condition that the number made of these variables, the highest bit first, is in the set.
    /// Proportional to the intervals of the set times the number of variables.
    fn in_set(&mut self, variables: &[Variable], set: &IntervalSet<u64>) -> Outcome<Node> {
        self.in_intervals(variables, 0, set.intervals())
    }

    /// The condition that `base` with the variables as its lowest bits lies in one of the intervals,
    /// of which only those that may matter are given.
    fn in_intervals(
        &mut self,
        variables: &[Variable],
        base: u64,
        intervals: &[(u64, u64)],
    ) -> Outcome<Node> {
        let largest = base
            | u64::MAX
                .checked_shr(64 - variables.len() as u32)
                .unwrap_or(0);
        let from = intervals.partition_point(|(_, last)| *last < base);
        let until = intervals.partition_point(|(first, _)| *first <= largest);
        let relevant = &intervals[from..until.max(from)];
        let Some((first, last)) = relevant.first() else {
            return Ok(FALSE);
        };
        if *first <= base && largest <= *last {
            return Ok(TRUE);
        }
        let [variable, rest @ ..] = variables else {
            unreachable!("a single number is inside an interval or outside");
        };
        let low = self.in_intervals(rest, base, relevant)?;
        let high = self.in_intervals(rest, base | 1 << rest.len(), relevant)?;
        self.diagram.branch(*variable, low, high)
    }

    /// The condition that the bits in the mask are those of the value.
    fn masked(&mut self, operand: Operand, mask: u64, value: u64) -> Outcome<Node> {
        if value & !mask != 0 {
            return Ok(FALSE);
        }
        let variables = operand_variables(operand);
        if value > operand.max() {
            return Ok(FALSE);
        }
        let mut matches = TRUE;
        for (bit, variable) in variables.iter().rev().enumerate() {
            if mask >> bit & 1 == 1 {
                let is_set = value >> bit & 1 == 1;
                let (low, high) = if is_set {
                    (FALSE, matches)
                } else {
                    (matches, FALSE)
                };
                matches = self.diagram.branch(*variable, low, high)?;
            }
        }
        Ok(matches)
    }

    fn between(&mut self, left: Operand, op: CmpOp, right: Operand) -> Outcome<Node> {
        match op {
            CmpOp::Eq => self.compare_values(left, right, Comparison::Equal),
            CmpOp::Gt => self.compare_values(left, right, Comparison::Greater),
            CmpOp::Ge => self.compare_values(left, right, Comparison::GreaterOrEqual),
            CmpOp::Lt => self.compare_values(right, left, Comparison::Greater),
            CmpOp::Le => self.compare_values(right, left, Comparison::GreaterOrEqual),
            CmpOp::Ne => {
                let equal = self.compare_values(left, right, Comparison::Equal)?;
                self.diagram.not(equal)
            }
        }
    }

    /// A comparison of two 64-bit values: the high halves decide, or tie and leave it to the low.
    fn compare_values(
        &mut self,
        left: Operand,
        right: Operand,
        comparison: Comparison,
    ) -> Outcome<Node> {
        let ((left_high, left_low), (right_high, right_low)) = (halves(left), halves(right));
        let diagram = &mut self.diagram;
        let low_decides = self
            .relations
            .compare(diagram, comparison, left_low, right_low)?;
        let high_equal = self.compare_high(left_high, right_high, Comparison::Equal)?;
        let high_decides = match comparison {
            Comparison::Equal => FALSE,
            Comparison::Greater | Comparison::GreaterOrEqual => {
                self.compare_high(left_high, right_high, Comparison::Greater)?
            }
        };
        self.diagram.ite(high_equal, low_decides, high_decides)
    }

    /// A comparison of two high halves, of which one that is absent is zero.
    fn compare_high(
        &mut self,
        left: Option<Word>,
        right: Option<Word>,
        comparison: Comparison,
    ) -> Outcome<Node> {
        let (word, word_is_left) = match (left, right) {
            (Some(left), Some(right)) => {
                return self
                    .relations
                    .compare(&mut self.diagram, comparison, left, right);
            }
            (None, None) if comparison == Comparison::Greater => return Ok(FALSE),
            (None, None) => return Ok(TRUE),
            (Some(left), None) => (left, true),
            (None, Some(right)) => (right, false),
        };
        let is_zero = self.in_set(&word_variables(word), &single(0))?;
        match (comparison, word_is_left) {
            (Comparison::Equal, _) | (Comparison::GreaterOrEqual, false) => Ok(is_zero),
            (Comparison::Greater, true) => self.diagram.not(is_zero),
            (Comparison::GreaterOrEqual, true) => Ok(TRUE),
            (Comparison::Greater, false) => Ok(FALSE),
        }
    }
}

/// The variables of a word, the highest bit first.
fn word_variables(word: Word) -> Vec<Variable> {
    (0..32)
        .rev()
        .map(|bit| order::variable(word, bit))
        .collect()
}

/// The variables of an operand's value, the highest bit first.
fn operand_variables(operand: Operand) -> Vec<Variable> {
    let (high, low) = halves(operand);
    high.into_iter()
        .chain([low])
        .flat_map(word_variables)
        .collect()
}

/// The words of an operand's value: the high half, if it isn't always zero, and the low.
fn halves(operand: Operand) -> (Option<Word>, Word) {
    let (low, high) = operand.words();
    match operand.part {
        Part::Full => (Some(high), low),
        Part::Low => (None, low),
        Part::High => (None, high),
    }
}

/// The numbers for which `number op value`.
fn satisfying(op: CmpOp, value: u64) -> IntervalSet<u64> {
    let below = || {
        value
            .checked_sub(1)
            .map(|last| 0..=last)
            .into_iter()
            .collect()
    };
    let above = || {
        value
            .checked_add(1)
            .map(|first| first..=u64::MAX)
            .into_iter()
            .collect()
    };
    match op {
        CmpOp::Eq => IntervalSet::single(value),
        CmpOp::Ne => IntervalSet::single(value).complement(),
        CmpOp::Lt => below(),
        CmpOp::Le => IntervalSet::from_iter([0..=value]),
        CmpOp::Gt => above(),
        CmpOp::Ge => IntervalSet::from_iter([value..=u64::MAX]),
    }
}

fn single(value: u32) -> IntervalSet<u64> {
    IntervalSet::single(u64::from(value))
}
