//! Simplify conditions under the assumption that earlier rules didn't match.
//!
//! # What
//! If an earlier rule covers all numbers of a later one, the later condition is tested only if the earlier one fails.
//! Parts with a known outcome are removed; a condition may become a constant, which `drop-unreachable-rules` then
//! removes.
//!
//! # Before/After
//! ```text
//! 9..10 if arg2 & 0x4 == 0x4: errno(1)
//! 9 if all(arg2 & 0x4 == 0x0, arg0 == 0x0): allow  ->  9 if arg0 == 0x0: allow
//! 9 if arg2 in {0x4..0x7}: allow                   ->  9 if false: allow
//! ```
//!
//! # Why it is sound
//! The first matching rule decides: a call reaches a rule only if all earlier ones failed.
//!
//! # What it never does
//! It draws no conclusions from rules that cover only some of the numbers, and considers at most sixteen earlier
//! rules for a number, and sixteen for very many numbers.
//!
//! # Cost
//! Near-linear, with these bounds as a factor.
//!
//! # Prior art
//! Shadowed-rule analysis of packet filters; Coudert and Madre's *restrict*.

use super::draft::DraftRule;
use super::facts::Facts;
use super::{Changed, Claim, Draft, PassCx, PassInfo, Stage};

/// The most earlier rules that are considered.
const MAX_EARLIER: usize = 16;

/// A rule for at most this many numbers is listed under each of them.
const MAX_NUMBERS: u64 = 64;

/// About this pass.
pub(super) const INFO: PassInfo = PassInfo {
    name: "assume-earlier-rules",
    summary: "simplify conditions, knowing that earlier rules did not match",
    stage: Stage::Rules,
    claim: Claim {
        never_longer: true,
        never_slower: false,
    },
};

pub(super) fn run(draft: &mut Draft, cx: &mut PassCx) -> Changed {
    let conditional = Conditional::of(&draft.rules);
    let mut changed = false;
    for place in 0..draft.rules.len() {
        let (before, after) = draft.rules.split_at_mut(place);
        let rule = &mut after[0];
        if rule.when.is_true() {
            continue;
        }
        let mut facts = conditional.facts_at(rule, before);
        if facts.is_empty() {
            continue;
        }
        let Some(simplified) = facts.simplify(rule.when.predicate()) else {
            continue;
        };
        if cx.apply(0, || rule.describe(place + 1)) {
            rule.when = cx.condition(simplified);
            changed = true;
        }
    }
    Changed::when(changed)
}

/// The places of conditional rules, by their numbers.
struct Conditional {
    /// Pairs of number and place, ascending.
    by_number: Vec<(u32, usize)>,
    /// The places of rules for very many numbers, ascending.
    about_many: Vec<usize>,
}

impl Conditional {
    fn of(rules: &[DraftRule]) -> Conditional {
        let mut conditional = Conditional {
            by_number: Vec::with_capacity(rules.len()),
            about_many: Vec::new(),
        };
        for (place, rule) in rules.iter().enumerate() {
            if rule.when.is_true() {
                continue;
            }
            let intervals = rule.syscalls.intervals();
            let counts = intervals
                .iter()
                .map(|(first, last)| u64::from(last - first) + 1);
            if counts.sum::<u64>() > MAX_NUMBERS {
                conditional.about_many.push(place);
                continue;
            }
            for (first, last) in intervals {
                let numbers = (*first..=*last).map(|number| (number, place));
                conditional.by_number.extend(numbers);
            }
        }
        conditional.by_number.sort_unstable();
        conditional
    }

    fn facts_at<'a>(&self, rule: &DraftRule, earlier: &'a [DraftRule]) -> Facts<'a> {
        let mut facts = Facts::default();
        let Some((first, _)) = rule.syscalls.intervals().first() else {
            return facts;
        };
        let from = self.by_number.partition_point(|(number, _)| number < first);
        let about_it = self.by_number[from..].iter();
        let about_it =
            about_it.take_while(|(number, place)| number == first && *place < earlier.len());
        let about_many = self
            .about_many
            .iter()
            .take_while(|place| **place < earlier.len());
        let about_it = about_it.map(|(_, place)| place).take(MAX_EARLIER);
        for place in about_it.chain(about_many.take(MAX_EARLIER)) {
            let other = &earlier[*place];
            if rule.syscalls.is_subset(&other.syscalls) {
                facts.assume(other.when.predicate(), false);
            }
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check_rules;
    use super::INFO;

    #[test]
    fn what_an_earlier_rule_decided_is_known() {
        check_rules(
            &INFO,
            "9..10 if arg2 & 0x4 == 0x4: errno(1)\n\
             9 if all(arg2 & 0x4 == 0x0, arg0 == 0x0): allow\n\
             9 if arg2 in {0x4..0x7}: allow",
            "9..10 if arg2 & 0x4 == 0x4: errno(1)\n\
             9 if arg0 == 0x0: allow\n\
             9 if false: allow",
        );
    }

    #[test]
    fn the_opposite_of_an_earlier_rule_is_the_rest() {
        check_rules(
            &INFO,
            "all if any(arg0 == 0x1, arg1 < 0x5): errno(1)\n\
             9 if arg1 >= 0x5: allow",
            "all if any(arg0 == 0x1, arg1 < 0x5): errno(1)\n\
             9: allow",
        );
    }

    #[test]
    fn a_rule_about_some_of_the_numbers_says_nothing() {
        let text = "9 if arg0 == 0x1: errno(1)\n\
                    9..10 if arg0 == 0x1: allow";
        check_rules(&INFO, text, text);
    }
}
