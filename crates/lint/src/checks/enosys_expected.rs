//! Finds new calls that are denied with an error other than `ENOSYS` although the older fallback is allowed.
//!
//! Kill actions are not reported: they are deliberate.

use std::collections::BTreeMap;

use crate::code::LINT_ENOSYS_EXPECTED;
use tamis_abi::{Action, ActionKind, Arch};
use tamis_diag::words::list;

use crate::context::{Access, Call, Context};
use crate::finding::{Finding, Place};
use crate::registry::{Check, warning};
use crate::tables::newer;
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = warning(
    "enosys-expected",
    LINT_ENOSYS_EXPECTED,
    "a new call is denied with an error other than ENOSYS",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    // By name: the first of the calls, and the consequence.
    let mut refused: BTreeMap<&str, (Call, &str)> = BTreeMap::new();
    let mut arches = Vec::new();
    for arch in context.arches.clone() {
        let before = arches.len();
        for row in newer::ALL {
            let mut fallbacks = row.fallbacks.iter();
            if let Some(call) = refused_call(context, arch, row.call)
                && fallbacks.any(|name| is_allowed(context, arch, name))
            {
                refused.entry(call.name).or_insert((call, row.broken));
                arches.truncate(before);
                arches.push(arch);
            }
        }
        for call in context.calls_of(arch)? {
            let Some(base) = older_time(call.name) else {
                continue;
            };
            if refused_call(context, arch, call.name).is_some() && is_allowed(context, arch, base) {
                let broken = "programs with 64-bit times fail";
                refused.entry(call.name).or_insert((call, broken));
                arches.truncate(before);
                arches.push(arch);
            }
        }
    }
    let Some((call, _)) = refused.values().next() else {
        return Ok(Vec::new());
    };
    let example = context.example(call, false);
    let mut places: Vec<Place> = Vec::new();
    for (call, _) in refused.values() {
        let example = context.example(call, false);
        let place = example.and_then(|example| context.place(&example.call, ""));
        places.extend(place.filter(|place| !places.contains(place)));
    }
    places.truncate(1);
    let mut broken: Vec<&str> = refused.values().map(|(_, broken)| *broken).collect();
    broken.dedup();
    let names = list(refused.keys().copied());
    let finding = Finding::new(
        (CHECK.code, CHECK.severity),
        format!(
            "new calls are denied with an error other than ENOSYS{}: {names}",
            context.on(&arches)
        ),
        format!(
            "programs fall back to older calls, which are allowed, only after ENOSYS: {}",
            broken.join(", ")
        ),
        "return ENOSYS for them, or allow them",
    );
    Ok(vec![finding.examples(example).places(places)])
}

/// The call with 32-bit times that a call with 64-bit times replaces.
pub(super) fn older_time(name: &'static str) -> Option<&'static str> {
    match name {
        "clock_gettime64" | "clock_settime64" | "clock_adjtime64" => name.strip_suffix("64"),
        _ => name.strip_suffix("_time64"),
    }
}

fn is_allowed(context: &Context, arch: Arch, name: &str) -> bool {
    let call = context.call(arch, name);
    call.is_some_and(|call| call.access != Access::Refused)
}

/// The call with this name if it always gets an error other than `ENOSYS`.
fn refused_call(context: &Context, arch: Arch, name: &str) -> Option<Call> {
    let call = context.call(arch, name)?;
    let enosys = context.enosys(arch);
    let is_wrong = |ret: u32| {
        let action = Action::from_ret(ret);
        action.kind == ActionKind::Errno && action != enosys
    };
    let values = context.space.values(call.function);
    values.into_iter().all(is_wrong).then_some(call)
}
