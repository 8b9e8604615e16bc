//! Merge tests of one operand into a value set.
//!
//! # Effect
//! In a list of alternatives or of requirements, the comparisons and value sets of one operand become one value set,
//! at the place of the first. A set of one value or of one range becomes a comparison. A mask of leading bits counts
//! as a range: `arg0.low & 0x80000000 == 0x0` tests that a descriptor is not negative.
//!
//! # Before/After
//! ```text
//! any(arg1 == 0x1, arg0 == 0x5, arg1 == 0x2)   ->   any(arg1 in {0x1..0x2}, arg0 == 0x5)
//! all(arg0 >= 0x2, arg0 < 0x9)                 ->   arg0 in {0x2..0x8}
//! ```
//!
//! # Why it is sound
//! A test of one operand is a set of its values; alternatives unite sets, requirements intersect them, and the order
//! of parts does not affect a condition.
//!
//! # Limits
//! It does not merge tests of a half with tests of the whole, other masks, or comparisons of two operands.
//!
//! # Cost
//! `O(n log n)`.
//!
//! # Prior art
//! Value sets of kafel; merging of ranges in packet classifiers.

use tamis_abi::hash::WordHashMap;
use tamis_rules::{IntervalSet, Operand, Predicate, Test};

use crate::passes::support::shape::{ListKind, rewrite_lists, test_of, values};
use crate::passes::{Changed, Claim, Draft, PassCx, PassInfo, Stage, rewrite_conditions};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "merge-values",
    summary: "make one value set of several tests of one operand",
    stage: Stage::Rules,
    claim: Claim {
        never_longer: true,
        never_slower: false,
    },
};

pub(in crate::passes) fn run(draft: &mut Draft, cx: &mut PassCx) -> Changed {
    rewrite_conditions(draft, cx, |when| rewrite_lists(when, &merge))
}

fn merge(kind: ListKind, parts: &[Predicate]) -> Option<Predicate> {
    if !has_operand_twice(parts) {
        return None;
    }
    let merged = match kind {
        ListKind::Any => merge_list(parts, union),
        ListKind::All => merge_list(parts, intersection),
    };
    (merged.len() < parts.len()).then(|| kind.join(merged))
}

fn has_operand_twice(parts: &[Predicate]) -> bool {
    let tested_from = |place| parts[place..].iter().filter_map(tested);
    // There are few operands, so the search is short.
    let mut operands = parts.iter().enumerate();
    operands.any(|(place, part)| {
        let operand = tested(part);
        operand.is_some_and(|operand| tested_from(place + 1).any(|other| other == operand))
    })
}

fn merge_list(
    parts: &[Predicate],
    combine: impl Fn(&[IntervalSet<u64>]) -> IntervalSet<u64>,
) -> Vec<Predicate> {
    let known: Vec<Option<(Operand, IntervalSet<u64>)>> = parts.iter().map(values_of).collect();
    let mut sets: WordHashMap<Operand, Vec<IntervalSet<u64>>> = WordHashMap::default();
    for (operand, set) in known.iter().flatten() {
        sets.entry(*operand).or_default().push(set.clone());
    }
    let merged = parts.iter().zip(known).filter_map(|(part, known)| {
        let Some((operand, _)) = known else {
            return Some(part.clone());
        };
        // The merged set replaces the first test of the operand; a single test is not changed.
        match sets.remove(&operand)?.as_slice() {
            [_] => Some(part.clone()),
            several => Some(test_of(operand, &combine(several))),
        }
    });
    merged.collect()
}

/// The operand that a test with constants is about.
const fn tested(part: &Predicate) -> Option<Operand> {
    match part {
        Predicate::Test(
            Test::Compare { operand, .. } | Test::In { operand, .. } | Test::Masked { operand, .. },
        ) => Some(*operand),
        _ => None,
    }
}

fn values_of(part: &Predicate) -> Option<(Operand, IntervalSet<u64>)> {
    match part {
        Predicate::Test(test) => values(test),
        _ => None,
    }
}

fn union(sets: &[IntervalSet<u64>]) -> IntervalSet<u64> {
    let pieces = sets.iter().flat_map(IntervalSet::intervals);
    pieces.map(|(first, last)| *first..=*last).collect()
}

fn intersection(sets: &[IntervalSet<u64>]) -> IntervalSet<u64> {
    let gaps: Vec<IntervalSet<u64>> = sets.iter().map(IntervalSet::complement).collect();
    union(&gaps).complement()
}

#[cfg(test)]
mod tests {
    use super::INFO;
    use crate::passes::support::testing::check_rules;

    #[test]
    fn alternatives_unite() {
        check_rules(
            &INFO,
            "0 if any(arg1 == 0x1, arg0 == 0x5, arg1 == 0x2): allow",
            "0 if any(arg1 in {0x1..0x2}, arg0 == 0x5): allow",
        );
    }

    #[test]
    fn requirements_intersect() {
        check_rules(
            &INFO,
            "0 if all(arg0 >= 0x2, arg0 < 0x9): allow\n\
             1 if all(arg0 > 0x2, arg0 <= 0x3): allow",
            "0 if arg0 in {0x2..0x8}: allow\n\
             1 if arg0 == 0x3: allow",
        );
    }

    #[test]
    fn a_half_and_the_whole_are_two_operands() {
        check_rules(
            &INFO,
            "0 if any(arg0 == 0x1, arg0.low == 0x2): allow",
            "0 if any(arg0 == 0x1, arg0.low == 0x2): allow",
        );
    }

    #[test]
    fn nothing_left_is_a_constant() {
        check_rules(
            &INFO,
            "0 if all(arg0 == 0x1, arg0 == 0x2): allow\n\
             1 if any(arg0 < 0x2, arg0 >= 0x2): allow",
            "0 if false: allow\n\
             1: allow",
        );
    }
}
