//! Finds rules with unsatisfiable conditions.
//!
//! A rule without numbers - for a call that the architecture lacks - is not reported.

use crate::code::{CONSTANT_CONDITION, LINT_NEVER_HOLDS};
use tamis_rules::{Predicate, Section};

use super::undecided::matching;
use crate::context::Context;
use crate::finding::Finding;
use crate::registry::{Check, warning};
use crate::rules_view::{RuleView, name};
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = Check {
    front_end_codes: &[CONSTANT_CONDITION],
    ..warning(
        "never-holds",
        LINT_NEVER_HOLDS,
        "no call satisfies a condition",
        run,
    )
};

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut findings = Vec::new();
    for statement in context.statements()?.iter() {
        if !statement.rules.iter().all(is_about_calls)
            || !matching(&context.space, statement)?.is_empty()
        {
            continue;
        }
        let rule = &statement.rules[0];
        let finding = Finding::new(
            (CHECK.code, CHECK.severity),
            format!("the condition of {} never holds", name(rule)),
            "its parts contradict each other, so the rule has no effect",
            format!(
                "correct the condition (`||` instead of `&&`?), or {}",
                context.kind.deletion()
            ),
        );
        findings.push(finding.places(statement.place("no call satisfies this")));
    }
    Ok(findings)
}

/// Whether the rule has numbers of its architecture, and a condition other than `false`, which is deliberate.
fn is_about_calls(rule: &RuleView) -> bool {
    let own = Section::domain(rule.section.arch);
    let numbers = rule.rule().syscalls.intersection(&own);
    !numbers.is_empty() && rule.rule().when != Predicate::False
}
