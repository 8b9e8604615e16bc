//! Finds pairs of rules with different actions whose order affects some calls.
//!
//! An exception before a general rule is not reported: one condition then implies the other.

use crate::code::LINT_SHADOWED_RULE;

use super::overlap::overlaps;
use crate::context::Context;
use crate::finding::Finding;
use crate::registry::{Check, note};
use crate::rules_view::place;
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = note(
    "shadowed-rule",
    LINT_SHADOWED_RULE,
    "rules overlap and disagree: their order decides",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut findings: Vec<Finding> = Vec::new();
    for overlap in overlaps(context, |earlier, later| {
        earlier.action != later.action && earlier.origin != later.origin
    })? {
        let places = [
            place(overlap.later, "overridden where both match"),
            place(overlap.earlier, "decides there, because it is first"),
        ];
        let places: Vec<_> = places.into_iter().flatten().collect();
        if !places.is_empty() && findings.iter().any(|known| known.places == places) {
            continue;
        }
        let finding = Finding::new(
            (CHECK.code, CHECK.severity),
            format!(
                "rules for {} and {} overlap",
                overlap.earlier.action, overlap.later.action
            ),
            "neither condition implies the other, so the order of the rules matters",
            "make the conditions exclude each other if the order is not intended",
        );
        findings.push(finding.examples([overlap.both]).places(places));
    }
    Ok(findings)
}
