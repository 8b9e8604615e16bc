//! Drop rules that earlier rules leave nothing for.
//!
//! # What
//! Removes numbers from a rule that earlier unconditional rules have decided, and the rule if none
//! remain. A rule whose condition never holds goes too.
//!
//! # Before/After
//! ```text
//! 0..9: allow                     0..9: allow
//! 5 if arg0 == 0x1: errno(1)  ->  10: errno(1)
//! 8..10: errno(1)
//! ```
//!
//! # Why it is sound
//! The first rule that matches decides, and an unconditional rule matches every call of its numbers.
//!
//! # What it never does
//! It doesn't compare conditions: a rule behind a rule with a weaker condition stays.
//!
//! # Cost
//! `O(n log n)` in the intervals of the rules, unless a rule has very many of them.
//!
//! # Prior art
//! Shadowed-rule analysis of packet filters.

use tamis_rules::{IntervalSet, Predicate, Rule, Section};

use super::numbers::Numbers;
use super::{Changed, Claim, PassCx, PassInfo, Stage, describe};

/// About this pass.
pub(super) const INFO: PassInfo = PassInfo {
    name: "drop-unreachable-rules",
    summary: "remove rules and numbers that earlier rules have decided",
    stage: Stage::Rules,
    claim: Claim {
        never_longer: true,
        never_slower: false,
    },
};

pub(super) fn run(section: &mut Section, cx: &mut PassCx) -> Changed {
    let mut decided = Numbers::default();
    let mut changed = false;
    let mut kept: Vec<Rule> = Vec::with_capacity(section.rules.len());
    for (number, mut rule) in (1..).zip(std::mem::take(&mut section.rules)) {
        let open = if rule.when == Predicate::False {
            IntervalSet::empty()
        } else {
            decided.missing_of(&rule.syscalls)
        };
        let shrinks = open != rule.syscalls || open.is_empty();
        if shrinks && cx.apply(0, || describe(number, &rule)) {
            rule.syscalls = open.clone();
            changed = true;
            if open.is_empty() {
                continue;
            }
        }
        if rule.when == Predicate::True {
            decided.add(&open);
        }
        kept.push(rule);
    }
    section.rules = kept;
    Changed::when(changed)
}

#[cfg(test)]
mod tests {
    use super::super::testing::check_rules;
    use super::INFO;

    #[test]
    fn what_is_decided_goes() {
        check_rules(
            &INFO,
            "0..9: allow\n\
             5 if arg0 == 0x1: errno(2)\n\
             8..10: errno(3)",
            "0..9: allow\n\
             10: errno(3)",
        );
    }

    #[test]
    fn a_conditional_rule_decides_nothing() {
        check_rules(
            &INFO,
            "0..9 if arg0 == 0x1: allow\n\
             5: errno(2)",
            "0..9 if arg0 == 0x1: allow\n\
             5: errno(2)",
        );
    }

    #[test]
    fn rules_that_never_apply_go() {
        check_rules(
            &INFO,
            "1 if false: allow\n\
             none: allow\n\
             2: allow",
            "2: allow",
        );
    }

    #[test]
    fn pieces_on_both_sides_and_between_remain() {
        check_rules(
            &INFO,
            "3..5: allow\n\
             8: allow\n\
             0..20: errno(2)",
            "3..5: allow\n\
             8: allow\n\
             0..2, 6..7, 9..20: errno(2)",
        );
    }

    #[test]
    fn the_largest_number_is_a_number() {
        check_rules(
            &INFO,
            "4294967295: allow\n\
             all: errno(2)",
            "4294967295: allow\n\
             0..4294967294: errno(2)",
        );
    }
}
