//! Finds filters that no program can start under: those that allow `execve` but deny calls of the C library before
//! `main`, and those that allow nothing.
//!
//! Filters that deny `execve` are installed by the program itself or after its start; they are not reported. Neither
//! are calls that a supervisor answers, errors that C libraries survive, and 32-bit architectures beside a 64-bit one.

use crate::code::LINT_START_UP;
use tamis_abi::Arch;
use tamis_diag::words::list;
use tamis_prover::LimitReached;

use super::needs::{all, denied, is_executed, main_arches};
use crate::context::{Access, Call, Context};
use crate::finding::{Finding, Place};
use crate::registry::{Check, warning};
use crate::tables::start_up::{PROGRAM, STARTS};

pub(crate) const CHECK: Check = warning(
    "start-up",
    LINT_START_UP,
    "programs may be started, and calls that each makes before main are denied",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    if let Some(finding) = nothing(context)? {
        return Ok(vec![finding]);
    }
    let mut missing: Vec<Call> = Vec::new();
    let mut arches: Vec<Arch> = Vec::new();
    for arch in main_arches(context) {
        if !STARTS.iter().any(|name| is_executed(context, arch, name)) {
            continue;
        }
        let found = denied(context, arch, PROGRAM)?;
        if !found.is_empty() {
            arches.push(arch);
        }
        let is_new = |call: &Call| !missing.iter().any(|known| known.label() == call.label());
        let new: Vec<Call> = found.into_iter().filter(is_new).collect();
        missing.extend(new);
    }
    let Some(first) = missing.first() else {
        return Ok(Vec::new());
    };
    let labels: Vec<String> = missing.iter().map(Call::label).collect();
    let names = list(&labels);
    let example = context.example(first, false);
    let place: Option<Place> = example.and_then(|example| context.place(&example.call, ""));
    let noun = if missing.len() == 1 { "call" } else { "calls" };
    let finding = Finding::new(
        (CHECK.code, CHECK.severity),
        format!(
            "no dynamically linked program starts{}: {noun} denied: {names}",
            context.on(&arches)
        ),
        "`execve` is allowed, and each dynamically linked program makes them before main: they load its libraries and set its memory up",
        format!("allow {}", all(&labels)),
    );
    Ok(vec![finding.examples(example).places(place)])
}

/// The finding for a filter that executes no call.
fn nothing(context: &mut Context) -> Result<Option<Finding>, LimitReached> {
    let mut first: Option<Call> = None;
    for arch in context.arches.clone() {
        let calls = context.calls_of(arch)?;
        if calls.iter().any(|call| call.access != Access::Refused) || context.executes_any(arch)? {
            return Ok(None);
        }
        let execve = calls.iter().find(|call| call.name == "execve").copied();
        first = first.or(execve).or(calls.first().copied());
    }
    let Some(first) = first else {
        return Ok(None);
    };
    // The action of a supervisor is outside the filter.
    if !context.denies(&first) {
        return Ok(None);
    }
    let example = context.example(&first, false);
    let finding = Finding::new(
        (CHECK.code, CHECK.severity),
        "no call is allowed",
        "nothing can run under this filter: it denies even the start and the end of a program",
        "allow the calls that the program makes: `tamis record` counts them, `tamis learn` lists them",
    );
    Ok(Some(finding.examples(example)))
}
