//! Finds calls with power over the machine that are allowed without a condition.
//!
//! One finding for each kind of power, with all its calls.

use std::collections::BTreeSet;

use tamis_abi::Arch;
use tamis_diag::code::LINT_DANGEROUS;

use crate::context::{Access, Call, Context};
use crate::finding::{Finding, Place, list};
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
            let calls = danger.calls.iter();
            let calls = calls.filter_map(|name| context.call(arch, name));
            open.extend(calls.filter(|call| call.access == Access::Open));
        }
        let Some(first) = open.first() else { continue };
        let example = context.example(first, true);
        let mut names: Vec<&str> = Vec::new();
        let mut places: Vec<Place> = Vec::new();
        for call in &open {
            if names.contains(&call.name) {
                continue;
            }
            names.push(call.name);
            let place = context.example(call, true);
            let place = place.and_then(|example| context.place(&example.call, "allowed here"));
            places.extend(place.filter(|place| !places.contains(place)));
        }
        // The positions of returns in a program are not informative; one instruction is enough.
        if matches!(places.first(), Some(Place::Insn { .. })) {
            places.truncate(1);
        }
        let arches: BTreeSet<Arch> = open.iter().map(|call| call.arch).collect();
        let on = context.on(&arches.into_iter().collect::<Vec<_>>());
        let message = format!(
            "calls that {} are allowed{on}: {}",
            danger.power,
            list(names)
        );
        let finding = Finding::new(
            (CHECK.code, danger.severity),
            message,
            danger.reason,
            "deny them, or allow them only for programs that need them",
        );
        findings.push(finding.examples(example).places(places));
    }
    Ok(findings)
}
