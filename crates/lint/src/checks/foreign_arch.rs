//! Finds filters that allow calls of architectures without rules.
//!
//! It is a warning if one kernel runs both this architecture and one with rules, and otherwise a note: calls of s390x
//! can't be made on x86_64.

use crate::code::LINT_FOREIGN_ARCH;
use tamis_diag::Severity;

use super::compat_arches::{compat_arches, most_informative};
use crate::context::{Context, is_executed};
use crate::finding::Finding;
use crate::registry::{Check, warning};
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = warning(
    "foreign-arch",
    LINT_FOREIGN_ARCH,
    "calls of an architecture without rules are allowed",
    run,
);

const HELP: &str = "kill on foreign architectures: `bad-arch kill-process`";

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    if !context.tests_arch {
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    for own in context.arches.clone() {
        for compat in compat_arches(own) {
            if context.arches.contains(compat) {
                continue;
            }
            let Some(call) = most_informative(&context.calls_of(*compat)?) else {
                continue;
            };
            let example = context.example(&call, true);
            let place = example.and_then(|example| context.place(&example.call, ""));
            let finding = Finding::new(
                (CHECK.code, Severity::Warning),
                format!("all calls of {compat} are allowed"),
                format!("kernels of {own} run {compat} too, and the filter has no rules for it"),
                HELP,
            );
            findings.push(finding.examples(example).places(place));
        }
    }
    let foreign = context.answer(&context.foreign_call());
    if findings.is_empty() && is_executed(foreign.action.ret()) {
        let finding = Finding::new(
            (CHECK.code, Severity::Note),
            "calls of unknown architectures are allowed",
            "no program makes such calls on today's kernels, so denying them costs nothing",
            HELP,
        );
        findings.push(finding.examples([foreign]));
    }
    Ok(findings)
}
