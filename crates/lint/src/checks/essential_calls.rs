//! Finds filters that deny calls that every program needs to end, to return from a signal handler or to complete a
//! sleep.
//!
//! Not reported are architectures without any allowed call, calls that are needed only after a denied one, and actions
//! with a supervisor or handler that answers the call.

use crate::code::LINT_ESSENTIAL;
use tamis_abi::Arch;
use tamis_diag::Severity;
use tamis_diag::words::list;

use crate::context::{Access, Call, Context};
use crate::finding::{Finding, Place};
use crate::registry::{Check, warning};
use crate::tables::essential::{self, Essential};
use tamis_prover::LimitReached;

/// The check.
pub(crate) const CHECK: Check = warning(
    "essential-calls",
    LINT_ESSENTIAL,
    "essential calls are denied: no program can end, or handle signals",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut denied: Vec<(&Essential, Call)> = Vec::new();
    let mut arches = Vec::new();
    for arch in context.arches.clone() {
        if !context.calls_of(arch)?.iter().any(is_executed) {
            continue;
        }
        for row in essential::ALL {
            if let Some(call) = denied_call(context, arch, row) {
                if !arches.contains(&arch) {
                    arches.push(arch);
                }
                if !denied.iter().any(|(known, _)| known.call == row.call) {
                    denied.push((row, call));
                }
            }
        }
    }
    let Some((_, first)) = denied.first() else {
        return Ok(Vec::new());
    };
    let example = context.example(first, false);
    let place: Option<Place> = example.and_then(|example| context.place(&example.call, ""));
    let mut broken: Vec<&str> = denied.iter().map(|(row, _)| row.broken).collect();
    broken.dedup();
    let names = list(denied.iter().map(|(row, _)| row.call));
    let is_certain = denied.iter().any(|(row, _)| row.is_certain);
    let severity = if is_certain {
        CHECK.severity
    } else {
        Severity::Note
    };
    let noun = if denied.len() == 1 { "call" } else { "calls" };
    let finding = Finding::new(
        (CHECK.code, severity),
        format!("essential {noun} denied{}: {names}", context.on(&arches)),
        broken.join("; "),
        format!("allow {names}"),
    );
    Ok(vec![finding.examples(example).places(place)])
}

fn is_executed(call: &Call) -> bool {
    call.access != Access::Refused
}

/// The call of a row if it always fails or kills, and programs under the filter need it.
fn denied_call(context: &Context, arch: Arch, row: &Essential) -> Option<Call> {
    let call = context.call(arch, row.call)?;
    let mut before = row.needed_after.iter();
    let is_needed = row.needed_after.is_empty()
        || before.any(|name| context.call(arch, name).as_ref().is_some_and(is_executed));
    (context.denies(&call) && is_needed).then_some(call)
}
