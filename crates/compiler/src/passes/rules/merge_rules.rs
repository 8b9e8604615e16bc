//! Merge rules with one action.
//!
//! # Effect
//! A rule is merged with an earlier one with the same action if both have the same condition, which unites their
//! numbers, or the same numbers, which makes their conditions alternatives, and no rule between them has another
//! action for one of its numbers. The merged rule has the place and the origin of the earlier one.
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
//! Neighbouring rules can be swapped if they share no number or have the same action. So the later rule can be moved up
//! to the earlier one, and two neighbours with one action are equivalent to a rule that matches the calls of both.
//!
//! # Limits
//! It never moves a rule past one with a number in common and another action, whatever the conditions are.
//!
//! # Cost
//! `O(n log n)` in the intervals of the rules, with hashing, and one step per piece between their borders that a rule
//! covers.
//!
//! # Prior art
//! gVisor's rule sets merge the rules of neighbouring sets; here rules about other numbers may be between them.

use std::hash::{Hash, Hasher};

use tamis_abi::Action;
use tamis_abi::hash::{BuildWordHasher, WordHashMap};
use tamis_rules::{IntervalSet, Predicate};

use crate::passes::support::draft::{Condition, DraftRule};
use crate::passes::support::numbers::Cuts;
use crate::passes::support::shape::ListKind;
use crate::passes::{Changed, Claim, Draft, PassCx, PassInfo, Stage};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "merge-rules",
    summary: "make one rule of several with one action and the same condition or numbers",
    stage: Stage::Rules,
    claim: Claim {
        never_longer: true,
        never_slower: false,
    },
};

pub(in crate::passes) fn run(draft: &mut Draft, cx: &mut PassCx) -> Changed {
    let by_condition = merge(
        draft,
        cx,
        |rule| Key::Condition(rule.when.hash(), rule.when.predicate(), rule.action),
        |first, others, _| {
            let intervals = others
                .iter()
                .flat_map(|(_, rule)| rule.syscalls.intervals());
            let intervals = first.syscalls.intervals().iter().chain(intervals);
            first.syscalls = intervals.map(|(first, last)| *first..=*last).collect();
        },
    );
    let by_numbers = merge(
        draft,
        cx,
        |rule| Key::Numbers(&rule.syscalls, rule.action),
        |first, others, cx| {
            let conditions = || {
                let others = others.iter().map(|(_, rule)| &rule.when);
                std::iter::once(&first.when).chain(others)
            };
            let parts = || conditions().flat_map(|when| ListKind::Any.parts(when.predicate()));
            first.when = cx.condition(if conditions().any(Condition::is_true) {
                Predicate::True
            } else {
                ListKind::Any.join(parts().cloned().collect())
            });
        },
    );
    Changed::when(by_condition || by_numbers)
}

/// The common properties of rules that can be merged.
#[derive(PartialEq, Eq)]
enum Key<'a> {
    Condition(u64, &'a Predicate, Action),
    Numbers(&'a IntervalSet<u32>, Action),
}

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            // The first field is a hash of the condition.
            Key::Condition(hash, _, action) => (hash, action).hash(state),
            Key::Numbers(numbers, action) => (numbers, action).hash(state),
        }
    }
}

/// Merges the rules with one key at the place of the first, as far as they can be moved there: `join` adds the others
/// to it.
fn merge(
    draft: &mut Draft,
    cx: &mut PassCx,
    key: fn(&DraftRule) -> Key<'_>,
    join: impl Fn(&mut DraftRule, &[(usize, DraftRule)], &PassCx),
) -> bool {
    let Some(places) = places(draft, cx, key) else {
        return false;
    };
    let mut merged: Vec<DraftRule> = Vec::with_capacity(draft.rules.len());
    let mut others = Vec::new();
    for (rule, place) in draft.rules.drain(..).zip(places) {
        if place < merged.len() {
            others.push((place, rule));
        } else {
            merged.push(rule);
        }
    }
    others.sort_by_key(|(place, _)| *place);
    for others in others.chunk_by(|(one, _), (other, _)| one == other) {
        join(&mut merged[others[0].0], others, cx);
    }
    draft.rules = merged;
    true
}

/// The new place of each rule, which is that of an earlier rule if it is merged with it; `None` if no rule is.
fn places(draft: &Draft, cx: &mut PassCx, key: fn(&DraftRule) -> Key<'_>) -> Option<Vec<usize>> {
    let rules = &draft.rules;
    let mut numbers: WordHashMap<Key<'_>, usize> =
        WordHashMap::with_capacity_and_hasher(rules.len(), BuildWordHasher::default());
    let keys: Vec<usize> = rules
        .iter()
        .map(|rule| {
            let next = numbers.len();
            *numbers.entry(key(rule)).or_insert(next)
        })
        .collect();
    if numbers.len() == rules.len() {
        return None;
    }
    // By key, the new place of the latest rule with it.
    let mut latest: Vec<Option<usize>> = vec![None; numbers.len()];
    let mut touched = Touched::new(&draft.cuts);
    let (mut next, mut changed) = (0, false);
    let mut places = Vec::with_capacity(rules.len());
    for (number, (rule, key)) in (1..).zip(rules.iter().zip(keys)) {
        let barrier = touched.touch(&rule.syscalls, rule.action, next);
        let place = latest[key].filter(|place| barrier.is_none_or(|barrier| barrier < *place));
        let place = place.filter(|_| cx.apply(0, || rule.describe(number)));
        changed |= place.is_some();
        let place = place.unwrap_or_else(|| {
            next += 1;
            next - 1
        });
        latest[key] = Some(place);
        places.push(place);
    }
    changed.then_some(places)
}

/// For every piece of the numbers the last rules that cover it, which limit how far a rule can be moved up.
struct Touched<'a> {
    cuts: &'a Cuts,
    pieces: Vec<Option<Touch>>,
}

#[derive(Clone, Copy)]
struct Touch {
    /// The action of the latest rules.
    action: Action,
    /// The place of the latest of them.
    latest: usize,
    /// The place of the latest rule with another action, before them.
    barrier: Option<usize>,
}

impl Touched<'_> {
    fn new(cuts: &Cuts) -> Touched<'_> {
        Touched {
            cuts,
            pieces: vec![None; cuts.len()],
        }
    }

    /// Adds a rule at the next place; returns the last place past which it cannot be moved.
    fn touch(&mut self, set: &IntervalSet<u32>, action: Action, here: usize) -> Option<usize> {
        let mut highest = None;
        for interval in set.intervals() {
            for piece in &mut self.pieces[self.cuts.pieces(*interval)] {
                let touch = piece.get_or_insert(Touch {
                    action,
                    latest: here,
                    barrier: None,
                });
                if touch.action != action {
                    touch.barrier = Some(touch.latest);
                    touch.action = action;
                }
                touch.latest = here;
                highest = highest.max(touch.barrier);
            }
        }
        highest
    }
}

#[cfg(test)]
mod tests {
    use super::INFO;
    use crate::passes::support::testing::check_rules;

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
