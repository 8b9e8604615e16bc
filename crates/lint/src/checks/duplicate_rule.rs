//! Finds rules that duplicate an earlier one: the same calls and the same action.
//!
//! Rules are compared as functions, so `a == 1 || a == 2` duplicates `a in {1, 2}`.

use crate::code::{LINT_DUPLICATE_RULE, NEVER_MATCHES, OCI_NO_EFFECT};

use super::undecided::undecided;
use crate::context::Context;
use crate::finding::Finding;
use crate::registry::{Check, warning};
use crate::rules_view::name;
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = Check {
    front_end_codes: &[NEVER_MATCHES, OCI_NO_EFFECT],
    ..warning(
        "duplicate-rule",
        LINT_DUPLICATE_RULE,
        "a rule repeats an earlier one",
        run,
    )
};

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let statements = context.statements()?;
    let mut findings = Vec::new();
    for (statement, repeated) in undecided(&context.space, &statements)? {
        let Some(first) = repeated.filter(|_| !context.kind.keeps(statement.origin)) else {
            continue;
        };
        let finding = Finding::new(
            (CHECK.code, CHECK.severity),
            format!("{} repeats an earlier one", name(&statement.rules[0])),
            "it matches the same calls and has the same action",
            format!("correct it, or {}", context.kind.deletion()),
        );
        let places = [statement.place("repeated"), first.place("first given here")];
        findings.push(finding.places(places.into_iter().flatten()));
    }
    Ok(findings)
}
