//! Drop rules that say what the default says.
//!
//! # What
//! Removes numbers from a rule whose action is the section's default where no later rule has another
//! action for them, and the rule if none remain.
//!
//! # Before/After
//! ```text
//! default errno(1)
//! 5..6 if arg0 == 0x1: errno(1)  ->  6 if arg0 == 0x1: errno(1)
//! 6: allow                           6: allow
//! ```
//!
//! # Why it is sound
//! A call that such a rule no longer catches can only meet rules with the same action, or the default.
//!
//! # What it never does
//! It doesn't compare the condition with those of later rules.
//!
//! # Cost
//! `O(n log n)` in the intervals of the rules, unless a rule has very many of them.
//!
//! # Prior art
//! Redundant rules of packet filters: "downward redundancy" in firewall analysis.

use tamis_rules::{Rule, Section};

use super::numbers::Numbers;
use super::{Changed, Claim, PassCx, PassInfo, Stage, describe};

/// About this pass.
pub(super) const INFO: PassInfo = PassInfo {
    name: "drop-default-rules",
    summary: "remove rules and numbers for which the default answers the same",
    stage: Stage::Rules,
    claim: Claim {
        never_longer: true,
        never_slower: false,
    },
};

pub(super) fn run(section: &mut Section, cx: &mut PassCx) -> Changed {
    let default = section.default;
    if section.rules.iter().all(|rule| rule.action != default) {
        return Changed::No;
    }
    let mut answered_otherwise = Numbers::default();
    let mut changed = false;
    let mut kept: Vec<Rule> = Vec::with_capacity(section.rules.len());
    let numbered = (1..).zip(std::mem::take(&mut section.rules));
    for (number, mut rule) in numbered.collect::<Vec<_>>().into_iter().rev() {
        let untouched = answered_otherwise.missing_of(&rule.syscalls);
        if rule.action != section.default {
            answered_otherwise.add(&untouched);
        } else if !untouched.is_empty() && cx.apply(0, || describe(number, &rule)) {
            rule.syscalls = rule.syscalls.difference(&untouched);
            changed = true;
            if rule.syscalls.is_empty() {
                continue;
            }
        }
        kept.push(rule);
    }
    kept.reverse();
    section.rules = kept;
    Changed::when(changed)
}

#[cfg(test)]
mod tests {
    use super::super::testing::check_rules;
    use super::INFO;

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
