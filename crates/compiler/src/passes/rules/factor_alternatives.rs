//! Test common parts of alternatives once.
//!
//! # Effect
//! Alternatives that are lists of requirements and have a part in common are merged into one: the part, and the
//! alternatives without it. Every alternative is merged by the part that most alternatives have; an alternative that
//! shares no part is not changed. Requirements that are lists of alternatives are treated dually.
//!
//! # Before/After
//! ```text
//! any(all(arg0 == 0x1, arg1 == 0x2), arg3 == 0x9, all(arg0 == 0x1, arg1 == 0x3))
//! -> any(all(arg0 == 0x1, any(arg1 == 0x2, arg1 == 0x3)), arg3 == 0x9)
//! ```
//!
//! # Why it is sound
//! Distributivity; the order of parts does not affect a condition.
//!
//! # Limits
//! It never repeats a part, so a condition never gets more tests. It does not search for the factoring with the
//! fewest tests, which is a hard problem.
//!
//! # Cost
//! Linear, with hashing; one level of nesting at a time.
//!
//! # Prior art
//! Algebraic factoring of logic synthesis; gVisor extracts repeated argument matchers if the alternatives are a full
//! cross product.

use tamis_abi::hash::{BuildWordHasher, WordHashMap};
use tamis_rules::Predicate;

use crate::passes::support::shape::{ListKind, rewrite_lists};
use crate::passes::{Changed, Claim, Draft, PassCx, PassInfo, Stage, rewrite_conditions};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "factor-alternatives",
    summary: "ask about what alternatives have in common once",
    stage: Stage::Rules,
    claim: Claim {
        never_longer: true,
        never_slower: false,
    },
};

pub(in crate::passes) fn run(draft: &mut Draft, cx: &mut PassCx) -> Changed {
    rewrite_conditions(draft, cx, |when| rewrite_lists(when, &factor))
}

fn factor(kind: ListKind, lists: &[Predicate]) -> Option<Predicate> {
    if !may_share(kind, lists) {
        return None;
    }
    let parts = Parts::from_lists(kind, lists);
    let common = parts.shared()?;
    // The replacement of each alternative; those merged by one part are at the place of the first.
    let mut groups: Vec<(Option<&Predicate>, Vec<Predicate>)> = Vec::new();
    let mut places: Vec<Option<usize>> = vec![None; parts.distinct.len()];
    for (list, number) in lists.iter().zip(common) {
        let Some(number) = number else {
            groups.push((None, vec![list.clone()]));
            continue;
        };
        let part = parts.distinct[number];
        let rest = kind
            .dual()
            .parts(list)
            .iter()
            .filter(|other| *other != part);
        let rest = kind.dual().join(rest.cloned().collect());
        match places[number] {
            Some(place) => groups[place].1.push(rest),
            None => {
                places[number] = Some(groups.len());
                groups.push((Some(part), vec![rest]));
            }
        }
    }
    let made = groups.into_iter().map(|(part, rests)| match part {
        None => kind.join(rests),
        Some(part) if rests.contains(&kind.dual().neutral()) => part.clone(),
        Some(part) => kind.dual().join(vec![part.clone(), kind.join(rests)]),
    });
    Some(kind.join(made.collect()))
}

/// Whether two lists may have a part in common; true if this takes hashing.
fn may_share(kind: ListKind, lists: &[Predicate]) -> bool {
    /// The maximum number of parts that are compared pairwise; hashing is faster for more.
    const FEW: usize = 16;
    let parts = |list| kind.dual().parts(list);
    if lists.iter().map(|list| parts(list).len()).sum::<usize>() > FEW {
        return true;
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

/// The parts of lists, numbered; equal parts have equal numbers.
struct Parts<'a> {
    /// By number, the first such part.
    distinct: Vec<&'a Predicate>,
    /// By number, how many lists contain it.
    counts: Vec<usize>,
    /// The numbers of the parts of all lists, without repetitions within a list.
    numbers: Vec<usize>,
    /// By list, the end of its numbers.
    ends: Vec<usize>,
}

impl<'a> Parts<'a> {
    fn from_lists(kind: ListKind, lists: &'a [Predicate]) -> Parts<'a> {
        let parts = |list| kind.dual().parts(list);
        let total = lists.iter().map(|list| parts(list).len()).sum();
        let mut known: WordHashMap<&Predicate, usize> =
            WordHashMap::with_capacity_and_hasher(total, BuildWordHasher::default());
        let mut found = Parts {
            distinct: Vec::with_capacity(total),
            counts: Vec::with_capacity(total),
            numbers: Vec::with_capacity(total),
            ends: Vec::with_capacity(lists.len()),
        };
        // By number, the last list that contains it.
        let mut latest: Vec<usize> = Vec::with_capacity(total);
        for (place, list) in lists.iter().enumerate() {
            for part in parts(list) {
                let number = *known.entry(part).or_insert(found.distinct.len());
                if number == found.distinct.len() {
                    found.distinct.push(part);
                    found.counts.push(0);
                    latest.push(usize::MAX);
                }
                if latest[number] != place {
                    latest[number] = place;
                    found.counts[number] += 1;
                    found.numbers.push(number);
                }
            }
            found.ends.push(found.numbers.len());
        }
        found
    }

    /// For each list the number of the part that it is merged by, which is the one that most lists share; `None` if no
    /// two lists are merged.
    fn shared(&self) -> Option<Vec<Option<usize>>> {
        if self.counts.iter().all(|count| *count == 1) {
            return None;
        }
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let lists = starts
            .zip(&self.ends)
            .map(|(start, end)| &self.numbers[start..*end]);
        let chosen = lists.map(|numbers| {
            // The first of equally frequent parts.
            let shared = numbers
                .iter()
                .rev()
                .filter(|number| self.counts[**number] > 1);
            shared.max_by_key(|number| self.counts[**number]).copied()
        });
        let mut chosen: Vec<Option<usize>> = chosen.collect();
        // Other lists may have chosen other parts; a part chosen by only one list merges nothing.
        let mut takers = vec![0; self.distinct.len()];
        for number in chosen.iter().flatten() {
            takers[*number] += 1;
        }
        for part in &mut chosen {
            *part = part.filter(|number| takers[*number] > 1);
        }
        chosen.iter().any(Option::is_some).then_some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::INFO;
    use crate::passes::support::testing::check_rules;

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
