//! Drop rules that earlier rules shadow completely.
//!
//! # What
//! Removes numbers from a rule that earlier unconditional rules decide, and the rule if no numbers remain. A rule
//! whose condition never holds is removed too.
//!
//! # Before/After
//! ```text
//! 0..9: allow                     0..9: allow
//! 5 if arg0 == 0x1: errno(1)  ->  10: errno(1)
//! 8..10: errno(1)
//! ```
//!
//! # Why it is sound
//! The first matching rule decides, and an unconditional rule matches every call with one of its numbers.
//!
//! # What it never does
//! It does not compare conditions: a rule behind one with a weaker condition remains.
//!
//! # Cost
//! `O(n log n)` in the intervals of the rules, and one step per 64 pieces between their borders that a rule covers.
//!
//! # Prior art
//! Shadowed-rule analysis of packet filters.

use tamis_rules::IntervalSet;

use super::numbers::Numbers;
use super::{Changed, Claim, Draft, PassCx, PassInfo, Stage};

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

pub(super) fn run(draft: &mut Draft, cx: &mut PassCx) -> Changed {
    let mut decided = Numbers::new(&draft.cuts);
    let mut changed = false;
    let mut number = 0;
    draft.rules.retain_mut(|rule| {
        number += 1;
        let is_idle = rule.when.is_false() || rule.syscalls.is_empty();
        let is_cut =
            (is_idle || decided.meets(&rule.syscalls)) && cx.apply(0, || rule.describe(number));
        if is_cut {
            changed = true;
            rule.syscalls = if is_idle {
                IntervalSet::empty()
            } else {
                decided.missing_of(&rule.syscalls)
            };
        }
        if rule.when.is_true() {
            decided.add(&rule.syscalls);
        }
        !(is_cut && rule.syscalls.is_empty())
    });
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
