//! Finds profiles that prevent a container runtime from starting the container's program: the filter applies to the
//! runtime's own last steps.
//!
//! The check needs the name of the runtime. The steps depend on `no_new_privs`, which isn't part of a profile: without
//! it the runtime needs its capabilities to install the filter, so it drops them and changes the user and the folder
//! afterwards.

use crate::code::LINT_RUNTIME;
use tamis_diag::words::list;
use tamis_prover::LimitReached;

use super::needs::{all, denied, main_arches};
use crate::context::{Call, Context};
use crate::finding::{Finding, Place};
use crate::registry::{Check, warning};
use crate::subject::Runtime;
use crate::tables::start_up::{CRUN, RUNC};

pub(crate) const CHECK: Check = warning(
    "runtime",
    LINT_RUNTIME,
    "calls by which the container's runtime starts its program are denied (with `--runtime`)",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let Some(runtime) = context.runtime else {
        return Ok(Vec::new());
    };
    let needs = match runtime {
        Runtime::Runc => &RUNC,
        Runtime::Crun => &CRUN,
    };
    let mut findings = Vec::new();
    let mut known: Vec<String> = Vec::new();
    for (needs, is_always) in [(needs.always, true), (needs.with_privileges, false)] {
        let mut missing: Vec<Call> = Vec::new();
        let mut arches = Vec::new();
        for arch in main_arches(context) {
            let found = denied(context, arch, needs)?;
            let new: Vec<Call> = found
                .into_iter()
                .filter(|call| !known.contains(&call.label()))
                .collect();
            if !new.is_empty() {
                arches.push(arch);
            }
            known.extend(new.iter().map(Call::label));
            missing.extend(new);
        }
        let Some(first) = missing.first() else {
            continue;
        };
        let names: Vec<String> = missing.iter().map(Call::label).collect();
        let (names, help) = (list(&names), all(&names));
        let (when, why) = match is_always {
            true => (
                "",
                "makes them between the installation of the filter and the start of the container's program",
            ),
            false => (
                " without no_new_privs",
                "makes them behind the filter, to drop capabilities and to change the user and the folder; with no_new_privs it does that before",
            ),
        };
        let example = context.example(first, false);
        let place: Option<Place> = example.and_then(|example| context.place(&example.call, ""));
        let noun = if missing.len() == 1 { "call" } else { "calls" };
        let name = runtime.name();
        let finding = Finding::new(
            (CHECK.code, CHECK.severity),
            format!(
                "{name} starts no container{when}{}: {noun} denied: {names}",
                context.on(&arches)
            ),
            format!("{name} {why}"),
            match is_always {
                true => format!("allow {help}"),
                false => format!("allow {help}, or set `noNewPrivileges`"),
            },
        );
        findings.push(finding.examples(example).places(place));
    }
    Ok(findings)
}
