//! Finds rules that repeat an earlier one: the same calls, the same answer.
//!
//! Equality is that of the functions, so `a == 1 || a == 2` repeats `a in {1, 2}`.

use tamis_diag::code::{LINT_DUPLICATE_RULE, NEVER_MATCHES, OCI_NO_EFFECT};

use super::unreachable_rule::is_unreachable;
use crate::context::Context;
use crate::finding::Finding;
use crate::registry::{Check, warning};
use crate::rules_view::{RuleView, Statement, name, statements};
use tamis_prover::{LimitReached, Space};

pub(crate) const CHECK: Check = Check {
    told_by: &[NEVER_MATCHES, OCI_NO_EFFECT],
    ..warning(
        "duplicate-rule",
        LINT_DUPLICATE_RULE,
        "a rule repeats an earlier one",
        run,
    )
};

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let Some(policy) = context.policy() else {
        return Ok(Vec::new());
    };
    let statements = statements(&mut context.space, policy)?;
    let mut findings = Vec::new();
    for (index, statement) in statements.iter().enumerate() {
        if !is_unreachable(&context.space, statement) {
            continue;
        }
        let Some(first) = repeated(&context.space, &statements[..index], statement) else {
            continue;
        };
        let finding = Finding::new(
            (CHECK.code, CHECK.severity),
            format!("{} repeats an earlier one", name(&statement.rules[0])),
            "it matches the same calls and gives the same answer",
            "delete one, or correct the one that was meant to differ",
        );
        let places = [statement.place("repeated"), first.place("first given here")];
        findings.push(finding.places(places.into_iter().flatten()));
    }
    Ok(findings)
}

/// The earlier statement that this one repeats on every architecture where it matches anything.
pub(super) fn repeated<'s, 'a>(
    space: &Space,
    earlier: &'s [Statement<'a>],
    statement: &Statement<'a>,
) -> Option<&'s Statement<'a>> {
    let matching: Vec<&RuleView> = statement
        .rules
        .iter()
        .filter(|rule| rule.can_match(space))
        .collect();
    earlier.iter().find(|first| {
        matching.iter().all(|rule| {
            let mut rules = first.rules.iter();
            rules.any(|other| {
                other.matches == rule.matches && other.rule().action == rule.rule().action
            })
        })
    })
}
