//! Merge rules with one action.
//!
//! # What
//! A rule joins an earlier one with the same action if it has the same condition (their numbers unite) or
//! the same numbers (their conditions become alternatives), and no rule between them has another action for
//! one of its numbers. The merged rule keeps the place and the origin of the earlier one.
//!
//! # Before/After
//! ```text
//! 1: allow
//! 7 if arg0 == 0x2: allow      1, 3: allow
//! 3: allow                 ->  7 if any(arg0 == 0x2, arg0 == 0x4): allow
//! 7 if arg0 == 0x4: allow
//! ```
//!
//! # Why it is sound
//! Neighbouring rules swap places where they share no number or have the same action. So the later rule
//! moves up to the earlier one, and two neighbours with one action answer what either answers.
//!
//! # What it never does
//! It never moves a rule past one that answers otherwise, whatever the conditions say.
//!
//! # Cost
//! `O(n log n)` in the intervals of the rules, with hashing.
//!
//! # Prior art
//! gVisor's rule sets join the rules of neighbouring sets; here the rules between may be about other numbers.

use std::collections::BTreeMap;
use std::hash::BuildHasherDefault;

use tamis_abi::Action;
use tamis_rules::{IntervalSet, Predicate, Rule, Section};

use super::shape::Kind;
use super::{Changed, Claim, PassCx, PassInfo, Stage, describe};
use crate::hash::{FastMap, hash_of};

/// About this pass.
pub(super) const INFO: PassInfo = PassInfo {
    name: "merge-rules",
    summary: "make one rule of several with one action and the same condition or numbers",
    stage: Stage::Rules,
    claim: Claim {
        never_longer: true,
        never_slower: false,
    },
};

pub(super) fn run(section: &mut Section, cx: &mut PassCx) -> Changed {
    let by_condition = merge(
        &mut section.rules,
        cx,
        |rule| Key::Condition(&rule.when, rule.action),
        |rules| {
            let intervals = rules.iter().flat_map(|rule| rule.syscalls.intervals());
            let syscalls = intervals.map(|(first, last)| *first..=*last).collect();
            Rule {
                syscalls,
                ..rules[0].clone()
            }
        },
    );
    let by_numbers = merge(
        &mut section.rules,
        cx,
        |rule| Key::Numbers(&rule.syscalls, rule.action),
        |rules| {
            let parts = rules.iter().flat_map(|rule| Kind::Any.parts(&rule.when));
            let is_certain = rules.iter().any(|rule| rule.when == Predicate::True);
            Rule {
                when: if is_certain {
                    Predicate::True
                } else {
                    Kind::Any.join(parts.cloned().collect())
                },
                ..rules[0].clone()
            }
        },
    );
    Changed::when(by_condition || by_numbers)
}

/// What rules that may become one have in common.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Condition(&'a Predicate, Action),
    Numbers(&'a IntervalSet<u32>, Action),
}

/// Collects rules with one key where the first of them stands, and makes one rule of each collection.
fn merge(
    rules: &mut Vec<Rule>,
    cx: &mut PassCx,
    key: fn(&Rule) -> Key<'_>,
    join: impl Fn(&[Rule]) -> Rule,
) -> bool {
    let places = places(rules, cx, key);
    if places.is_empty() {
        return false;
    }
    let mut collections: Vec<Vec<Rule>> = Vec::with_capacity(rules.len());
    for (rule, place) in rules.drain(..).zip(places) {
        match collections.get_mut(place) {
            Some(collection) => collection.push(rule),
            None => collections.push(vec![rule]),
        }
    }
    rules.extend(collections.into_iter().map(|mut rules| {
        if rules.len() == 1 {
            rules.remove(0)
        } else {
            join(&rules)
        }
    }));
    true
}

/// For each rule the place of its collection; nothing if each is one of its own.
fn places(rules: &[Rule], cx: &mut PassCx, key: fn(&Rule) -> Key<'_>) -> Vec<usize> {
    // Different hashes are different keys; most rules have one of their own.
    let mut hashes: Vec<u64> = rules.iter().map(|rule| hash_of(&key(rule))).collect();
    hashes.sort_unstable();
    if hashes.windows(2).all(|pair| pair[0] != pair[1]) {
        return Vec::new();
    }
    let mut latest: FastMap<Key<'_>, usize> =
        FastMap::with_capacity_and_hasher(rules.len(), BuildHasherDefault::default());
    let mut touched = Touched::default();
    let (mut next, mut changed) = (0, false);
    let mut places = Vec::with_capacity(rules.len());
    for (number, rule) in (1..).zip(rules) {
        let barrier = touched.touch(&rule.syscalls, rule.action, next);
        let place = latest.entry(key(rule)).or_insert(next);
        let can_move = *place < next && barrier.is_none_or(|barrier| barrier < *place);
        if can_move && cx.apply(0, || describe(number, rule)) {
            changed = true;
        } else {
            *place = next;
            next += 1;
        }
        places.push(*place);
    }
    if changed { places } else { Vec::new() }
}

/// For every number the rules that are about it, as far as moving another one up needs to know.
#[derive(Default)]
struct Touched(BTreeMap<u32, Touch>);

#[derive(Clone, Copy)]
struct Touch {
    /// The last number of the interval.
    last: u32,
    /// The action of the latest rules.
    action: Action,
    /// The place of the latest of them.
    latest: usize,
    /// The place of the latest rule with another action, before them.
    barrier: Option<usize>,
}

impl Touched {
    /// Notes a rule at the next place; says which is the latest rule that it cannot be moved past.
    fn touch(&mut self, set: &IntervalSet<u32>, action: Action, here: usize) -> Option<usize> {
        let mut highest = None;
        for (first, last) in set.intervals() {
            self.split_at(*first);
            if let Some(after) = last.checked_add(1) {
                self.split_at(after);
            }
            let mut next = Some(*first);
            let mut gaps = Vec::new();
            for (start, touch) in self.0.range_mut(first..=last) {
                if let Some(gap) = next.filter(|gap| gap < start) {
                    gaps.push((gap, start - 1));
                }
                next = touch.last.checked_add(1);
                if touch.action != action {
                    touch.barrier = Some(touch.latest);
                    touch.action = action;
                }
                touch.latest = here;
                highest = highest.max(touch.barrier);
            }
            gaps.extend(next.filter(|gap| gap <= last).map(|gap| (gap, *last)));
            for (start, last) in gaps {
                let touch = Touch {
                    last,
                    action,
                    latest: here,
                    barrier: None,
                };
                self.0.insert(start, touch);
            }
        }
        highest
    }

    /// Makes an interval that holds `at` and begins before it into two.
    fn split_at(&mut self, at: u32) {
        let Some((_, touch)) = self.0.range_mut(..at).next_back() else {
            return;
        };
        if touch.last >= at {
            let upper = *touch;
            touch.last = at - 1;
            self.0.insert(at, upper);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check_rules;
    use super::INFO;

    #[test]
    fn rules_with_one_condition_unite_their_numbers() {
        check_rules(
            &INFO,
            "1: allow\n\
             7 if arg0 == 0x2: errno(2)\n\
             3: allow",
            "1, 3: allow\n\
             7 if arg0 == 0x2: errno(2)",
        );
    }

    #[test]
    fn rules_with_the_same_numbers_become_alternatives() {
        check_rules(
            &INFO,
            "7 if arg0 == 0x2: allow\n\
             8: errno(2)\n\
             7 if any(arg1 == 0x1, arg0 == 0x4): allow",
            "7 if any(arg0 == 0x2, arg1 == 0x1, arg0 == 0x4): allow\n\
             8: errno(2)",
        );
    }

    #[test]
    fn nothing_moves_past_another_action() {
        let text = "7 if arg0 == 0x2: allow\n\
                    6..7 if arg1 == 0x1: errno(2)\n\
                    7 if arg0 == 0x4: allow";
        check_rules(&INFO, text, text);
    }

    #[test]
    fn what_cannot_move_far_may_move_less_far() {
        check_rules(
            &INFO,
            "7 if arg0 == 0x2: allow\n\
             7 if arg1 == 0x1: errno(2)\n\
             7 if arg0 == 0x4: allow\n\
             9 if arg0 == 0x8: allow\n\
             7 if arg0 == 0x6: allow",
            "7 if arg0 == 0x2: allow\n\
             7 if arg1 == 0x1: errno(2)\n\
             7 if any(arg0 == 0x4, arg0 == 0x6): allow\n\
             9 if arg0 == 0x8: allow",
        );
    }
}
