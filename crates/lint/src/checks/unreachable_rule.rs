//! Finds rules that match calls, but only after an earlier rule.
//!
//! A statement of the policy is compiled to a rule for each architecture; it is reported if none of them decides any
//! call. Exact duplicates have a separate check. Settings of a unit with effects besides filtering are not reported.

use crate::code::{LINT_UNREACHABLE_RULE, NEVER_MATCHES, OCI_NO_EFFECT};

use super::undecided::{matching, undecided};
use crate::context::Context;
use crate::finding::{Finding, Place};
use crate::registry::{Check, warning};
use crate::rules_view::{RuleView, name, place};
use tamis_analysis::find;
use tamis_prover::LimitReached;
use tamis_rules::Input;

pub(crate) const CHECK: Check = Check {
    front_end_codes: &[NEVER_MATCHES, OCI_NO_EFFECT],
    ..warning(
        "unreachable-rule",
        LINT_UNREACHABLE_RULE,
        "earlier rules decide all calls that a rule matches",
        run,
    )
};

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let statements = context.statements()?;
    let mut findings = Vec::new();
    for (statement, repeated) in undecided(&context.space, &statements)? {
        if repeated.is_some() || context.kind.keeps(statement.origin) {
            continue;
        }
        let Some(rule) = matching(&context.space, statement)?.first().copied() else {
            continue;
        };
        let deletion = context.kind.deletion();
        let help = match context.kind.has_order() {
            true => format!("move it before the more general rule, or {deletion}"),
            false => deletion.to_owned(),
        };
        let finding = Finding::new(
            (CHECK.code, CHECK.severity),
            format!("{} never matches", name(rule)),
            "earlier rules decide every call that it matches",
            help,
        );
        let found = find(&context.space, &[rule.matches], &|values| values[0] == 1)?;
        let example = found.map(|found| context.answer(&found.data));
        let places = statement.place("never decides");
        let covering = found.and_then(|found| covering(&found, rule));
        findings.push(
            finding
                .examples(example)
                .places(places.into_iter().chain(covering)),
        );
    }
    Ok(findings)
}

/// The first earlier rule that matches a call.
fn covering(found: &Input, rule: &RuleView) -> Option<Place> {
    let earlier = rule.section.rules[..rule.index]
        .iter()
        .find(|earlier| earlier.matches(&found.data, &found.variables))?;
    place(earlier, "decides first")
}
