//! Which needed calls a filter denies.

use tamis_abi::{Action, ActionKind, Arch};
use tamis_diag::words::joined;
use tamis_prover::Limited;

use crate::context::{Access, Call, Context};
use crate::tables::start_up::{Choice, Need, Needed};

use super::compat_arches::compat_arches;

/// The calls of needs that are denied, in the order of the table.
pub(super) fn denied(context: &mut Context, arch: Arch, needs: &[Need]) -> Limited<Vec<Call>> {
    let mut denied: Vec<Call> = Vec::new();
    for need in needs {
        let found = denied_form(context, arch, need)?;
        // A call that is denied whatever its arguments are stands for its forms.
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

/// The call of a need if it is denied: the preferred one, without its arguments if all calls of its number are.
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

/// Whether all of these calls are denied in the way that isn't survived. Those that a supervisor or a handler answers are
/// not.
fn is_denied(context: &Context, call: &Call, needed: Needed) -> bool {
    let is_denial = |ret: u32| match Action::from_ret(ret).kind {
        ActionKind::KillProcess | ActionKind::KillThread => true,
        ActionKind::Errno => needed == Needed::Executed,
        _ => false,
    };
    context
        .space
        .values(call.function)
        .into_iter()
        .all(is_denial)
}

/// All names, for a correction: a list that is cut corrects nothing.
pub(super) fn all(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    joined(&names, "and")
}

/// Whether a call of this name is executed for some arguments.
pub(super) fn is_executed(context: &Context, arch: Arch, name: &str) -> bool {
    let call = context.call(arch, name);
    call.is_some_and(|call| call.access != Access::Refused)
}

/// The architectures of a filter without those that are beside another one: whoever allows 32-bit calls on a 64-bit machine
/// need not want 32-bit programs to run.
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
