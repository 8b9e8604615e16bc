//! Finds 32-bit calls that are allowed while their successors, which C libraries try first, are killed.
//!
//! Since 2020 the C libraries of 32-bit architectures have 64-bit times: glibc and musl call `clock_gettime64` and fall
//! back to `clock_gettime` only after `ENOSYS`. So a filter with the older call only kills every program. Errors other
//! than `ENOSYS` are reported by `enosys-expected`. On a 64-bit machine 32-bit calls are checked only if 32-bit
//! programs can start.

use std::collections::BTreeMap;

use crate::code::LINT_TIME64;
use tamis_abi::{Action, ActionKind, Arch};
use tamis_diag::words::list;
use tamis_prover::LimitReached;

use super::enosys_expected::older_time;
use super::needs::{denied, is_executed, main_arches};
use crate::context::{Call, Context};
use crate::finding::{Finding, Place};
use crate::registry::{Check, warning};
use crate::tables::start_up::{PROGRAM, STARTS};

pub(crate) const CHECK: Check = warning(
    "time64",
    LINT_TIME64,
    "a 32-bit call is allowed, and its successor with 64-bit times kills",
    run,
);

/// The calls that glibc implements by `statx` since 64-bit times.
const STATUS: [&str; 4] = ["fstatat64", "stat64", "lstat64", "fstat64"];

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    // By name: the killed call, and the allowed one.
    let mut killed: BTreeMap<&str, (Call, &str)> = BTreeMap::new();
    let mut arches: Vec<Arch> = Vec::new();
    for arch in context.arches.clone() {
        if arch.has_64_bit_registers() || !is_checked(context, arch)? {
            continue;
        }
        for call in context.calls_of(arch)? {
            let older = match call.name {
                "statx" => STATUS
                    .into_iter()
                    .find(|name| is_executed(context, arch, name)),
                name => older_time(name).filter(|name| is_executed(context, arch, name)),
            };
            let Some(older) = older.filter(|_| kills(context, &call)) else {
                continue;
            };
            killed.entry(call.name).or_insert((call, older));
            if !arches.contains(&arch) {
                arches.push(arch);
            }
        }
    }
    let Some((call, _)) = killed.values().next() else {
        return Ok(Vec::new());
    };
    let example = context.example(call, false);
    let place: Option<Place> = example.and_then(|example| context.place(&example.call, ""));
    let names = list(killed.keys());
    let older = list(killed.values().map(|(_, older)| *older));
    let finding = Finding::new(
        (CHECK.code, CHECK.severity),
        format!(
            "calls that C libraries try first kill{}: {names}",
            context.on(&arches)
        ),
        format!(
            "they replace {older}, which are allowed and to which programs fall back only after ENOSYS"
        ),
        "allow them, or return ENOSYS for them",
    );
    Ok(vec![finding.examples(example).places(place)])
}

/// Whether an architecture is the filter's main one, or its programs can start.
fn is_checked(context: &mut Context, arch: Arch) -> Result<bool, LimitReached> {
    if main_arches(context).contains(&arch) {
        return Ok(true);
    }
    let is_started = STARTS.iter().any(|name| is_executed(context, arch, name));
    Ok(is_started && denied(context, arch, PROGRAM)?.is_empty())
}

fn kills(context: &Context, call: &Call) -> bool {
    let is_kill = |ret: u32| {
        let kind = Action::from_ret(ret).kind;
        matches!(kind, ActionKind::KillProcess | ActionKind::KillThread)
    };
    context.space.values(call.function).into_iter().all(is_kill)
}
