//! Rulesets in the form of other compilers: per number a few alternatives, each a list of conditions.
//!
//! The rules of other compilers have no order and no nested `or` or `not`. So every rule is restricted by the earlier
//! rules with other actions, and converted to disjunctive form. What cannot be expressed is an error: the instruction
//! pointer, arguments compared with each other, orders of upper halves.

use std::fmt;

use tamis_abi::{Action, ArgIndex};
use tamis_rules::{CmpOp, IntervalSet, Operand, OperandSource, Part, Predicate, Section, Test};

/// The most numbers of rules; rules for more are ranges.
const MAX_NUMBERS: u64 = 4096;
/// The most alternatives of one rule.
const MAX_ALTERNATIVES: usize = 4096;

/// A number, with conditions that must all hold for the action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainRule {
    /// The number.
    pub nr: u32,
    /// The conditions; none for an unconditional number.
    pub conditions: Vec<Condition>,
    /// The action.
    pub action: Action,
}

/// A condition on one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The argument.
    pub arg: ArgIndex,
    /// Whether only its lower half is tested.
    pub is_low: bool,
    /// The test.
    pub test: Comparison,
}

/// The test of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// An unsigned comparison with a constant.
    With(CmpOp, u64),
    /// `argument & mask == value`, and `value` has no bits outside `mask`.
    Masked {
        /// The tested bits.
        mask: u64,
        /// Their value.
        value: u64,
    },
}

/// The reason why a ruleset can't be expressed by plain rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPlain {
    /// A rule has a range of numbers.
    Ranges,
    /// The instruction pointer is tested.
    InstructionPointer,
    /// A run-time variable is used.
    Variable,
    /// Two arguments are compared with each other.
    Between,
    /// An upper half is compared by order.
    UpperHalf,
    /// A rule has too many alternatives.
    TooMany,
}

impl fmt::Display for NotPlain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotPlain::Ranges => "its rules have no ranges of numbers",
            NotPlain::InstructionPointer => "its rules can't look at the instruction pointer",
            NotPlain::Variable => "its rules have no run-time variables",
            NotPlain::Between => "its rules can't compare arguments with each other",
            NotPlain::UpperHalf => "its rules can't compare upper halves by order",
            NotPlain::TooMany => "a rule would have more than 4096 alternatives",
        })
    }
}

/// A conjunction.
type Alternative = Vec<Condition>;

/// The rules of a section with actions other than the default, by number.
///
/// # Errors
/// See [`NotPlain`].
pub fn plain_rules(section: &Section) -> Result<Vec<PlainRule>, NotPlain> {
    let mut plain = Vec::new();
    for nr in numbers(section)? {
        let mut earlier: Vec<(&Predicate, Action)> = Vec::new();
        let covering = section
            .rules
            .iter()
            .filter(|rule| rule.syscalls.contains(nr));
        for rule in covering {
            if rule.action != section.default {
                let others = earlier.iter().filter(|(_, action)| *action != rule.action);
                let not =
                    |(when, _): &(&Predicate, Action)| Predicate::Not(Box::new((*when).clone()));
                let mut all = vec![rule.when.clone()];
                all.extend(others.map(not));
                plain.extend(alternatives(&Predicate::All(all), true)?.into_iter().map(
                    |conditions| PlainRule {
                        nr,
                        conditions,
                        action: rule.action,
                    },
                ));
            }
            earlier.push((&rule.when, rule.action));
        }
    }
    Ok(plain)
}

/// The numbers of the rules, ascending.
fn numbers(section: &Section) -> Result<Vec<u32>, NotPlain> {
    let sets = section.rules.iter().map(|rule| &rule.syscalls);
    let all = sets.fold(IntervalSet::empty(), |all, set| all.union(set));
    let len = |(first, last): &(u32, u32)| u64::from(last - first) + 1;
    if all.intervals().iter().map(len).sum::<u64>() > MAX_NUMBERS {
        return Err(NotPlain::Ranges);
    }
    let intervals = all.intervals().iter();
    Ok(intervals.flat_map(|(first, last)| *first..=*last).collect())
}

/// The disjunctive form of a predicate, or of its negation.
fn alternatives(predicate: &Predicate, wanted: bool) -> Result<Vec<Alternative>, NotPlain> {
    match (predicate, wanted) {
        (Predicate::True, true) | (Predicate::False, false) => Ok(vec![Vec::new()]),
        (Predicate::True, false) | (Predicate::False, true) => Ok(Vec::new()),
        (Predicate::Not(inner), _) => alternatives(inner, !wanted),
        (Predicate::All(parts), true) | (Predicate::Any(parts), false) => {
            let mut product = vec![Vec::new()];
            for part in parts {
                let choices = alternatives(part, wanted)?;
                if product.len() * choices.len() > MAX_ALTERNATIVES {
                    return Err(NotPlain::TooMany);
                }
                let pairs = product
                    .iter()
                    .flat_map(|left| choices.iter().map(move |right| (left, right)));
                product = pairs
                    .filter_map(|(left, right)| joined(left, right))
                    .collect();
            }
            Ok(product)
        }
        (Predicate::All(parts), false) | (Predicate::Any(parts), true) => {
            let mut union: Vec<Alternative> = Vec::new();
            for part in parts {
                let more = alternatives(part, wanted)?;
                if union.len() + more.len() > MAX_ALTERNATIVES {
                    return Err(NotPlain::TooMany);
                }
                union.extend(more);
            }
            Ok(union)
        }
        (Predicate::Test(test), _) => of_test(test, wanted),
    }
}

/// The conjunction of both; `None` if they contradict each other in single bits.
fn joined(left: &[Condition], right: &[Condition]) -> Option<Alternative> {
    let mut all = left.to_vec();
    'right: for condition in right {
        for known in &mut all {
            if let (Some((mask, value)), Some((more, bits))) = (known.bits(), condition.bits())
                && known.arg == condition.arg
            {
                if (value ^ bits) & mask & more != 0 {
                    return None;
                }
                *known = Condition::of_bits(known.arg, mask | more, value | bits);
                continue 'right;
            }
        }
        if !all.contains(condition) {
            all.push(*condition);
        }
    }
    Some(all)
}

impl Condition {
    /// The bits that it fixes with their values, if it does nothing else.
    fn bits(&self) -> Option<(u64, u64)> {
        let all = if self.is_low {
            u64::from(u32::MAX)
        } else {
            u64::MAX
        };
        match self.test {
            Comparison::With(CmpOp::Eq, value) => (value <= all).then_some((all, value)),
            Comparison::With(..) => None,
            Comparison::Masked { mask, value } => Some((mask, value)),
        }
    }

    /// The condition that bits under a mask have a value.
    fn of_bits(arg: ArgIndex, mask: u64, value: u64) -> Condition {
        let low = u64::from(u32::MAX);
        let test = match mask {
            u64::MAX => Comparison::With(CmpOp::Eq, value),
            mask if mask == low => Comparison::With(CmpOp::Eq, value),
            mask => Comparison::Masked { mask, value },
        };
        let is_low = mask & !low == 0;
        Condition { arg, is_low, test }
    }
}

fn of_test(test: &Test, wanted: bool) -> Result<Vec<Alternative>, NotPlain> {
    match test {
        Test::Compare { operand, op, value } => {
            let op = if wanted { *op } else { op.negated() };
            compared(*operand, op, *value)
        }
        Test::Masked {
            operand,
            mask,
            value,
        } => masked(*operand, *mask, *value, wanted),
        Test::In { operand, set } => {
            let max = Operand::max(*operand);
            let set = if wanted {
                set.clone()
            } else {
                set.complement()
            };
            let mut union = Vec::new();
            for (first, last) in set.intervals() {
                let above = compared(*operand, CmpOp::Ge, *first)?;
                let below = compared(*operand, CmpOp::Le, *last)?;
                union.extend(match (*first, *last) {
                    (first, last) if first == last => compared(*operand, CmpOp::Eq, first)?,
                    (0, _) => below,
                    (_, last) if last >= max => above,
                    _ => vec![[above.concat(), below.concat()].concat()],
                });
            }
            Ok(union)
        }
        Test::Between { .. } => Err(NotPlain::Between),
    }
}

fn argument(operand: Operand) -> Result<ArgIndex, NotPlain> {
    match operand.source {
        OperandSource::Arg(arg) => Ok(arg),
        OperandSource::Ip => Err(NotPlain::InstructionPointer),
        OperandSource::Variable(_) => Err(NotPlain::Variable),
    }
}

fn compared(operand: Operand, op: CmpOp, value: u64) -> Result<Vec<Alternative>, NotPlain> {
    let arg = argument(operand)?;
    if value > operand.max() {
        // Constants beyond a half compare like numbers of their size.
        return Ok(match op {
            CmpOp::Ne | CmpOp::Lt | CmpOp::Le => vec![Vec::new()],
            CmpOp::Eq | CmpOp::Gt | CmpOp::Ge => Vec::new(),
        });
    }
    match (operand.part, op) {
        (Part::High, CmpOp::Eq) => masked(operand, u64::from(u32::MAX), value, true),
        (Part::High, CmpOp::Ne) => masked(operand, u64::from(u32::MAX), value, false),
        (Part::High, _) => Err(NotPlain::UpperHalf),
        (part, op) => Ok(vec![vec![Condition {
            arg,
            is_low: part == Part::Low,
            test: Comparison::With(op, value),
        }]]),
    }
}

fn masked(
    operand: Operand,
    mask: u64,
    value: u64,
    wanted: bool,
) -> Result<Vec<Alternative>, NotPlain> {
    let arg = argument(operand)?;
    let mask = mask & operand.max();
    if value & !mask != 0 {
        return Ok(if wanted { Vec::new() } else { vec![Vec::new()] });
    }
    let shift = if operand.part == Part::High { 32 } else { 0 };
    let (mask, value) = (mask << shift, value << shift);
    let fixed = |mask: u64, value: u64| vec![Condition::of_bits(arg, mask, value)];
    Ok(match (mask, wanted) {
        (0, true) => vec![Vec::new()],
        (0, false) => Vec::new(),
        (_, true) => vec![fixed(mask, value)],
        (_, false) => {
            let bits = (0..u64::BITS)
                .map(|bit| 1 << bit)
                .filter(|bit| mask & bit != 0);
            bits.map(|bit: u64| fixed(bit, !value & bit)).collect()
        }
    })
}
