//! Make one value set of the tests of one operand.
//!
//! # What
//! In a list of alternatives or of requirements, the comparisons and value sets of one operand become one
//! value set, at the place of the first. A set of one value or of one range becomes a comparison again.
//!
//! # Before/After
//! ```text
//! any(arg1 == 0x1, arg0 == 0x5, arg1 == 0x2)   ->   any(arg1 in {0x1..0x2}, arg0 == 0x5)
//! all(arg0 >= 0x2, arg0 < 0x9)                 ->   arg0 in {0x2..0x8}
//! ```
//!
//! # Why it is sound
//! A test of one operand is a set of its values; alternatives unite sets, requirements intersect them, and
//! the order of parts has no influence on a condition.
//!
//! # What it never does
//! It doesn't merge tests of a half with tests of the whole, nor masks, nor comparisons of two operands.
//!
//! # Cost
//! `O(n log n)`.
//!
//! # Prior art
//! Value sets of kafel; merging of ranges in packet classifiers.

use std::collections::HashMap;

use tamis_rules::{CmpOp, IntervalSet, Operand, Predicate, Section, Test};

use super::{Changed, Claim, PassCx, PassInfo, Stage, rewrite_conditions};

/// About this pass.
pub(super) const INFO: PassInfo = PassInfo {
    name: "merge-value-tests",
    summary: "make one value set of several tests of one operand",
    stage: Stage::Rules,
    claim: Claim {
        never_longer: true,
        never_slower: false,
    },
};

pub(super) fn run(section: &mut Section, cx: &mut PassCx) -> Changed {
    rewrite_conditions(section, cx, merge)
}

fn merge(predicate: &Predicate) -> Predicate {
    match predicate {
        Predicate::Not(inner) => Predicate::Not(Box::new(merge(inner))),
        Predicate::Any(parts) => one_or(merge_list(parts, union), Predicate::Any),
        Predicate::All(parts) => one_or(merge_list(parts, intersection), Predicate::All),
        Predicate::True | Predicate::False | Predicate::Test(_) => predicate.clone(),
    }
}

fn one_or(mut parts: Vec<Predicate>, many: impl FnOnce(Vec<Predicate>) -> Predicate) -> Predicate {
    if parts.len() == 1 {
        parts.remove(0)
    } else {
        many(parts)
    }
}

fn merge_list(
    parts: &[Predicate],
    combine: impl Fn(&[IntervalSet<u64>]) -> IntervalSet<u64>,
) -> Vec<Predicate> {
    let mut sets: HashMap<Operand, Vec<IntervalSet<u64>>> = HashMap::new();
    for part in parts {
        if let Some((operand, set)) = values(part) {
            sets.entry(operand).or_default().push(set);
        }
    }
    parts
        .iter()
        .filter_map(|part| match values(part) {
            // The first test of the operand stands for all; a test that is alone stays as it is.
            Some((operand, _)) => match sets.remove(&operand)?.as_slice() {
                [_] => Some(part.clone()),
                several => Some(test_of(operand, combine(several))),
            },
            None => Some(merge(part)),
        })
        .collect()
}

fn union(sets: &[IntervalSet<u64>]) -> IntervalSet<u64> {
    let pieces = sets.iter().flat_map(IntervalSet::intervals);
    pieces.map(|(first, last)| *first..=*last).collect()
}

fn intersection(sets: &[IntervalSet<u64>]) -> IntervalSet<u64> {
    let gaps: Vec<IntervalSet<u64>> = sets.iter().map(IntervalSet::complement).collect();
    union(&gaps).complement()
}

/// The operand and the values for which a part holds, if it is a test of one operand's value.
fn values(part: &Predicate) -> Option<(Operand, IntervalSet<u64>)> {
    match part {
        Predicate::Test(Test::In { operand, set }) => Some((*operand, set.clone())),
        Predicate::Test(Test::Compare { operand, op, value }) => {
            let below = value.checked_sub(1).map(|last| 0..=last);
            let above = value.checked_add(1).map(|first| first..=u64::MAX);
            let set = match op {
                CmpOp::Eq => IntervalSet::single(*value),
                CmpOp::Ne => IntervalSet::single(*value).complement(),
                CmpOp::Lt => below.into_iter().collect(),
                CmpOp::Le => [0..=*value].into_iter().collect(),
                CmpOp::Gt => above.into_iter().collect(),
                CmpOp::Ge => [*value..=u64::MAX].into_iter().collect(),
            };
            Some((*operand, set))
        }
        _ => None,
    }
}

/// The simplest test for a set of values.
fn test_of(operand: Operand, set: IntervalSet<u64>) -> Predicate {
    let compare = |op, value| Predicate::compare(operand, op, value);
    let gaps = set.complement();
    match (set.intervals(), gaps.intervals()) {
        ([], _) => Predicate::False,
        (_, []) => Predicate::True,
        ([(value, last)], _) if value == last => compare(CmpOp::Eq, *value),
        (_, [(value, last)]) if value == last => compare(CmpOp::Ne, *value),
        ([(first, u64::MAX)], _) => compare(CmpOp::Ge, *first),
        ([(0, last)], _) => compare(CmpOp::Le, *last),
        _ => Predicate::Test(Test::In { operand, set }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::RulePass;
    use super::super::testing::check_rules;

    const PASS: RulePass = RulePass {
        info: super::INFO,
        run: super::run,
    };

    #[test]
    fn alternatives_unite() {
        check_rules(
            PASS,
            "0 if any(arg1 == 0x1, arg0 == 0x5, arg1 == 0x2): allow",
            "0 if any(arg1 in {0x1..0x2}, arg0 == 0x5): allow",
        );
    }

    #[test]
    fn requirements_intersect() {
        check_rules(
            PASS,
            "0 if all(arg0 >= 0x2, arg0 < 0x9): allow\n\
             1 if all(arg0 > 0x2, arg0 <= 0x3): allow",
            "0 if arg0 in {0x2..0x8}: allow\n\
             1 if arg0 == 0x3: allow",
        );
    }

    #[test]
    fn a_half_and_the_whole_are_two_operands() {
        check_rules(
            PASS,
            "0 if any(arg0 == 0x1, arg0.low == 0x2): allow",
            "0 if any(arg0 == 0x1, arg0.low == 0x2): allow",
        );
    }

    #[test]
    fn nothing_left_is_a_constant() {
        check_rules(
            PASS,
            "0 if all(arg0 == 0x1, arg0 == 0x2): allow\n\
             1 if any(arg0 < 0x2, arg0 >= 0x2): allow",
            "0 if false: allow\n\
             1: allow",
        );
    }
}
