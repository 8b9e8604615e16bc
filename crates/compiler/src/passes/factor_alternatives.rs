//! Ask about what alternatives have in common once.
//!
//! # What
//! Among alternatives that are lists of requirements, those with a part in common become one: the part, and
//! the alternatives without it. Every alternative goes with the part that most alternatives have; one that
//! shares nothing stays as it is. Requirements that are lists of alternatives are treated alike.
//!
//! # Before/After
//! ```text
//! any(all(arg0 == 0x1, arg1 == 0x2), arg3 == 0x9, all(arg0 == 0x1, arg1 == 0x3))
//! -> any(all(arg0 == 0x1, any(arg1 == 0x2, arg1 == 0x3)), arg3 == 0x9)
//! ```
//!
//! # Why it is sound
//! Distributivity; the order of parts has no influence on a condition.
//!
//! # What it never does
//! It never repeats a part, so a condition never gets more tests; it doesn't search for the factoring with
//! the fewest, which is hard.
//!
//! # Cost
//! Linear, with hashing; one level of nesting at a time.
//!
//! # Prior art
//! Algebraic factoring of logic synthesis; gVisor extracts repeated argument matchers if the alternatives are
//! a full cross product.

use tamis_rules::{Predicate, Section};

use super::shape::{Kind, has_list, rewrite_lists};
use super::{Changed, Claim, PassCx, PassInfo, Stage, rewrite_conditions};
use crate::hash::{FastMap, FastSet};

/// About this pass.
pub(super) const INFO: PassInfo = PassInfo {
    name: "factor-alternatives",
    summary: "ask about what alternatives have in common once",
    stage: Stage::Rules,
    claim: Claim {
        never_longer: true,
        never_slower: false,
    },
};

pub(super) fn run(section: &mut Section, cx: &mut PassCx) -> Changed {
    let is_open = |kind, parts: &[Predicate]| parts.len() < 2 || may_share(kind, parts);
    rewrite_conditions(section, cx, |when| {
        has_list(when, &is_open).then(|| rewrite_lists(when, &factor))
    })
}

fn factor(kind: Kind, lists: Vec<Predicate>) -> Predicate {
    let common = shared_parts(kind, &lists);
    if common.iter().all(Option::is_none) {
        return kind.join(lists);
    }
    // What stands in place of each alternative; those of one common part stand where the first does.
    let mut places: FastMap<&Predicate, usize> = FastMap::default();
    let mut groups: Vec<(Option<&Predicate>, Vec<Predicate>)> = Vec::new();
    for (list, part) in lists.iter().zip(common) {
        let Some(part) = part else {
            groups.push((None, vec![list.clone()]));
            continue;
        };
        let mut rest = kind.dual().parts(list).to_vec();
        rest.retain(|other| other != part);
        let rest = kind.dual().join(rest);
        match places.get(part) {
            Some(place) => groups[*place].1.push(rest),
            None => {
                places.insert(part, groups.len());
                groups.push((Some(part), vec![rest]));
            }
        }
    }
    let made = groups.into_iter().map(|(part, rests)| match part {
        None => kind.join(rests),
        Some(part) if rests.contains(&kind.dual().neutral()) => part.clone(),
        Some(part) => kind.dual().join(vec![part.clone(), kind.join(rests)]),
    });
    kind.join(made.collect())
}

/// Whether two lists have a part in common, or whether finding that out would take as long as all the rest.
fn may_share(kind: Kind, lists: &[Predicate]) -> bool {
    /// So many parts are compared with each other faster than hashed.
    const FEW: usize = 16;
    let parts = |list| kind.dual().parts(list);
    if lists.iter().map(|list| parts(list).len()).sum::<usize>() > FEW {
        return shared_parts(kind, lists).iter().any(Option::is_some);
    }
    let mut rest = lists;
    while let [list, others @ ..] = rest {
        let mut other_parts = others.iter().flat_map(parts);
        if other_parts.any(|part| parts(list).contains(part)) {
            return true;
        }
        rest = others;
    }
    false
}

/// For each list the part that it shares with most of the others, of those with which it can go.
fn shared_parts(kind: Kind, lists: &[Predicate]) -> Vec<Option<&Predicate>> {
    let parts: Vec<Vec<&Predicate>> = lists
        .iter()
        .map(|list| {
            let mut seen = FastSet::default();
            let parts = kind.dual().parts(list).iter();
            parts.filter(|part| seen.insert(*part)).collect()
        })
        .collect();
    let mut counts: FastMap<&Predicate, usize> = FastMap::default();
    for part in parts.iter().flatten() {
        *counts.entry(part).or_default() += 1;
    }
    let mut chosen: Vec<Option<&Predicate>> = parts
        .iter()
        .map(|parts| {
            // Of equals the first, whatever the tables look like.
            let shared = parts.iter().rev().filter(|part| counts[**part] > 1);
            shared.max_by_key(|part| counts[**part]).copied()
        })
        .collect();
    // Others may have chosen otherwise; a part that one list alone has chosen is nothing in common.
    let mut takers: FastMap<&Predicate, usize> = FastMap::default();
    for part in chosen.iter().flatten() {
        *takers.entry(part).or_default() += 1;
    }
    for part in &mut chosen {
        *part = part.filter(|part| takers[part] > 1);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::super::testing::check_rules;
    use super::INFO;

    #[test]
    fn the_odd_one_out_stays() {
        check_rules(
            &INFO,
            "0 if any(all(arg0 == 0x1, arg1 == 0x2), arg3 == 0x9, all(arg1 == 0x3, arg0 == 0x1)): allow",
            "0 if any(all(arg0 == 0x1, any(arg1 == 0x2, arg1 == 0x3)), arg3 == 0x9): allow",
        );
    }

    #[test]
    fn requirements_have_alternatives_in_common() {
        check_rules(
            &INFO,
            "0 if all(any(arg0 == 0x1, arg1 == 0x2), any(arg0 == 0x1, arg2 == 0x3)): allow",
            "0 if any(arg0 == 0x1, all(arg1 == 0x2, arg2 == 0x3)): allow",
        );
    }

    #[test]
    fn what_is_left_of_an_alternative_may_be_nothing() {
        check_rules(
            &INFO,
            "0 if any(all(arg0 == 0x1, arg1 == 0x2), arg0 == 0x1): allow",
            "0 if arg0 == 0x1: allow",
        );
    }

    #[test]
    fn the_most_common_part_comes_first() {
        check_rules(
            &INFO,
            "0 if any(all(arg0 == 0x1, arg1 == 0x1), all(arg0 == 0x1, arg1 == 0x2, arg2 == 0x1), \
             all(arg0 == 0x2, arg1 == 0x2), all(arg0 == 0x1, arg1 == 0x2, arg2 == 0x3)): allow",
            "0 if any(all(arg0 == 0x1, any(arg1 == 0x1, all(arg1 == 0x2, any(arg2 == 0x1, \
             arg2 == 0x3)))), all(arg0 == 0x2, arg1 == 0x2)): allow",
        );
    }
}
