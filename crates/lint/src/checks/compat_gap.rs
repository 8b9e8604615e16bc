//! Finds calls that are denied or restricted on an architecture and open on its 32-bit compat architecture, if the
//! filter has rules for both.
//!
//! Arguments are not compared: their order and widths differ. A filter that ignores the architecture is reported by
//! another check.

use crate::code::LINT_COMPAT_GAP;
use tamis_abi::Arch;
use tamis_diag::words::list;

use super::compat_arches::compat_arches;
use crate::context::{Access, Call, Context, is_executed};
use crate::finding::{Finding, Relevance};
use crate::registry::{Check, warning};
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = warning(
    "compat-gap",
    LINT_COMPAT_GAP,
    "calls restricted on one architecture are allowed on its 32-bit counterpart",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut findings = Vec::new();
    if !context.tests_arch {
        return Ok(findings);
    }
    for own in context.arches.clone() {
        for compat in compat_arches(own) {
            if context.arches.contains(compat) {
                findings.extend(gap(context, own, *compat)?);
            }
        }
    }
    Ok(findings)
}

fn gap(context: &mut Context, own: Arch, compat: Arch) -> Result<Option<Finding>, LimitReached> {
    let mut gaps: Vec<(Call, Call)> = Vec::new();
    for call in context.calls_of(own)? {
        let Some(other) = context.call(compat, call.name) else {
            continue;
        };
        let is_wider = match call.access {
            Access::Open => false,
            Access::Conditional => other.access == Access::Open,
            Access::Refused => other.access != Access::Refused,
        };
        if is_wider {
            gaps.push((call, other));
        }
    }
    let Some((refused, allowed)) = gaps.first() else {
        return Ok(None);
    };
    let refusal = context.example(refused, false);
    // The same arguments are the best example if they are allowed.
    let same = refusal.map(|example| context.answer(&allowed.complete(example.call)));
    let same = same.filter(|example| is_executed(example.action.ret()));
    let allowed = same.or_else(|| context.example(allowed, true));
    let place = allowed.and_then(|example| context.place(&example.call, ""));
    let names = gaps.iter().map(|(call, _)| call.name);
    let finding = Finding::new(
        (CHECK.code, CHECK.severity),
        format!("{compat} allows calls that {own} denies: {}", list(names)),
        format!("kernels of {own} usually accept the calls of {compat} from any program"),
        format!(
            "give {compat} the rules of {own}, or remove it if no program of {compat} is to run"
        ),
    );
    Ok(Some(
        finding
            .relevance(Relevance::Intent)
            .examples(refusal.into_iter().chain(allowed))
            .places(place),
    ))
}
