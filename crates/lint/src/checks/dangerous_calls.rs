//! Finds calls with power over the machine that are allowed without a condition.
//!
//! One finding for each kind of power, with all its calls.

use std::collections::BTreeSet;

use crate::code::LINT_DANGEROUS;
use tamis_abi::Arch;
use tamis_diag::words::list;

use crate::context::{Access, Call, Context};
use crate::finding::{Finding, Place, Relevance};
use crate::registry::{Check, warning};
use crate::tables::dangerous;
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = warning(
    "dangerous-calls",
    LINT_DANGEROUS,
    "privileged calls are allowed without a condition",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut findings = Vec::new();
    for danger in dangerous::ALL {
        let mut open: Vec<Call> = Vec::new();
        for arch in context.arches.clone() {
            for form in danger.calls {
                let call = context.form(arch, *form)?;
                open.extend(call.filter(|call| call.access == Access::Open));
            }
        }
        let Some(first) = open.first() else { continue };
        let example = context.example(first, true);
        let mut names: Vec<String> = Vec::new();
        let mut places: Vec<Place> = Vec::new();
        for call in &open {
            let name = call.label();
            if names.contains(&name) {
                continue;
            }
            names.push(name);
            let place = context.example(call, true);
            let place = place.and_then(|example| context.place(&example.call, "allowed here"));
            places.extend(place.filter(|place| !places.contains(place)));
        }
        let is_named = matches!(places.first(), Some(Place::Rule(..)));
        let relevance = match !is_named && context.leaves_aside(danger.calls)? {
            true => Relevance::Aside,
            false => Relevance::General,
        };
        // The positions of returns in a program are not informative; one instruction is enough.
        if matches!(places.first(), Some(Place::Insn { .. })) {
            places.truncate(1);
        }
        let arches: BTreeSet<Arch> = open.iter().map(|call| call.arch).collect();
        let on = context.on(&arches.into_iter().collect::<Vec<_>>());
        let message = format!(
            "calls that {} are allowed{on}: {}",
            danger.power,
            list(names.iter().map(String::as_str))
        );
        let finding = Finding::new(
            (CHECK.code, danger.severity),
            message,
            danger.reason,
            "deny them, or allow them only for programs that need them",
        );
        let finding = finding.relevance(relevance);
        findings.push(finding.examples(example).places(places));
    }
    Ok(findings)
}
