//! Drop rules with the same action as the default.
//!
//! # Effect
//! Removes numbers from a rule whose action is the section's default if no later rule has another action for them,
//! and the rule if no numbers remain.
//!
//! # Before/After
//! ```text
//! default errno(1)
//! 5..6 if arg0 == 0x1: errno(1)  ->  6 if arg0 == 0x1: errno(1)
//! 6: allow                           6: allow
//! ```
//!
//! # Why it is sound
//! A call that no longer matches the rule can match only rules with the same action, or none, which gives the
//! default.
//!
//! # Limits
//! It doesn't compare the condition with those of later rules.
//!
//! # Cost
//! `O(n log n)` in the intervals of the rules, and one step per 64 pieces between their borders that a rule covers.
//!
//! # Prior art
//! Redundant rules of packet filters: "downward redundancy" in firewall analysis.

use crate::passes::support::numbers::Numbers;
use crate::passes::{Changed, Claim, Draft, PassCx, PassInfo, Stage};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "drop-default-rules",
    summary: "remove rules and numbers for which the default answers the same",
    stage: Stage::Rules,
    claim: Claim {
        never_longer: true,
        never_slower: false,
    },
};

pub(in crate::passes) fn run(draft: &mut Draft, cx: &mut PassCx) -> Changed {
    let default = draft.default;
    if draft.rules.iter().all(|rule| rule.action != default) {
        return Changed::No;
    }
    let mut answered_otherwise = Numbers::new(&draft.cuts);
    let mut changed = false;
    let mut gone = Vec::new();
    for (place, rule) in draft.rules.iter_mut().enumerate().rev() {
        if rule.action != default {
            answered_otherwise.add(&rule.syscalls);
            continue;
        }
        let untouched = answered_otherwise.missing_of(&rule.syscalls);
        if !untouched.is_empty() && cx.apply(0, || rule.describe(place + 1)) {
            rule.syscalls = rule.syscalls.difference(&untouched);
            changed = true;
            if rule.syscalls.is_empty() {
                gone.push(place);
            }
        }
    }
    let mut places = 0..;
    draft
        .rules
        .retain(|_| gone.pop_if(|place| Some(*place) == places.next()).is_none());
    Changed::when(changed)
}

#[cfg(test)]
mod tests {
    use super::INFO;
    use crate::passes::support::testing::check_rules;

    #[test]
    fn what_the_default_says_goes() {
        check_rules(
            &INFO,
            "5..7 if arg0 == 0x1: errno(1)\n\
             6: allow\n\
             8: errno(1)",
            "6 if arg0 == 0x1: errno(1)\n\
             6: allow",
        );
    }

    #[test]
    fn an_exception_from_a_later_rule_stays() {
        check_rules(
            &INFO,
            "5 if arg0 == 0x1: errno(1)\n\
             all if arg1 == 0x2: allow",
            "5 if arg0 == 0x1: errno(1)\n\
             all if arg1 == 0x2: allow",
        );
    }
}
