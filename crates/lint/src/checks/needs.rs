//! Needed calls that a filter denies.

use tamis_abi::{Action, ActionKind, Arch};
use tamis_diag::words::joined;
use tamis_prover::Limited;

use crate::context::{Access, Call, Context};
use crate::tables::start_up::{Choice, Need, Requirement};

use super::compat_arches::compat_arches;

/// The calls of needs that are denied, in the order of the table.
pub(super) fn denied(context: &mut Context, arch: Arch, needs: &[Need]) -> Limited<Vec<Call>> {
    let mut denied: Vec<Call> = Vec::new();
    for need in needs {
        let found = denied_form(context, arch, need)?;
        // A call that is denied with all arguments represents its forms.
        let is_known = |call: &Call| {
            let same = |known: &&Call| known.nr == call.nr;
            denied.iter().find(same).is_some_and(|known| {
                known.form.is_none_or(|form| form.with.is_none()) || known.label() == call.label()
            })
        };
        denied.extend(found.filter(|call| !is_known(call)));
    }
    Ok(denied)
}

/// The denied call of a need: the preferred form, without its arguments if all calls of its number are denied.
fn denied_form(context: &mut Context, arch: Arch, need: &Need) -> Limited<Option<Call>> {
    if !need.arches.is_empty() && !need.arches.contains(&arch) {
        return Ok(None);
    }
    let mut preferred = None;
    for form in need.forms {
        let Some(call) = context.form(arch, *form)? else {
            continue;
        };
        if !is_denied(context, &call, need.needed) {
            return Ok(None);
        }
        preferred = preferred.or(Some(call));
        if need.choice == Choice::First {
            break;
        }
    }
    let Some(call) = preferred else {
        return Ok(None);
    };
    let whole = context.call(arch, call.name);
    let whole = whole.filter(|whole| is_denied(context, whole, need.needed));
    Ok(Some(whole.unwrap_or(call)))
}

/// Whether all of these calls get an action that programs don't survive. Calls that a supervisor or a handler answers
/// are not denied.
fn is_denied(context: &Context, call: &Call, needed: Requirement) -> bool {
    let is_denial = |ret: u32| match Action::from_ret(ret).kind {
        ActionKind::KillProcess | ActionKind::KillThread => true,
        ActionKind::Errno => needed == Requirement::Executed,
        _ => false,
    };
    context
        .space
        .values(call.function)
        .into_iter()
        .all(is_denial)
}

/// All names, for a correction, which must be complete.
pub(super) fn all(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    joined(&names, "and")
}

/// Whether a call with this name is executed for some arguments.
pub(super) fn is_executed(context: &Context, arch: Arch, name: &str) -> bool {
    let call = context.call(arch, name);
    call.is_some_and(|call| call.access != Access::Refused)
}

/// The main architectures of a filter, without compat ones: a filter that allows 32-bit calls on a 64-bit machine isn't
/// necessarily for 32-bit programs.
pub(super) fn main_arches(context: &Context) -> Vec<Arch> {
    let all = &context.arches;
    let is_beside = |arch: &Arch| {
        let is_x32 = *arch == Arch::X32 && all.contains(&Arch::X86_64);
        let mut others = all.iter();
        is_x32 || others.any(|other| compat_arches(*other).contains(arch))
    };
    all.iter()
        .filter(|arch| !is_beside(arch))
        .copied()
        .collect()
}
