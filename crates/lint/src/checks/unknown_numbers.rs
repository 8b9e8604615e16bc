//! Two checks of the action for unassigned numbers: an error other than `ENOSYS`, and kill.

use crate::code::{LINT_UNKNOWN_ERRNO, LINT_UNKNOWN_KILLS};
use tamis_abi::{Action, ActionKind};

use crate::context::Context;
use crate::finding::Finding;
use crate::registry::{Check, note};
use tamis_prover::LimitReached;

pub(crate) const ERRNO: Check = note(
    "unknown-errno",
    LINT_UNKNOWN_ERRNO,
    "numbers of later kernels get an error other than ENOSYS",
    errno,
);

pub(crate) const KILLS: Check = note(
    "unknown-kills",
    LINT_UNKNOWN_KILLS,
    "numbers of later kernels kill the process",
    kills,
);

fn errno(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    report(
        context,
        ERRNO,
        |action, enosys| action.kind == ActionKind::Errno && action != enosys,
        [
            "calls of later kernels are denied with an error other than ENOSYS",
            "programs try new calls and fall back to older ones after ENOSYS, but not after other errors",
            "return ENOSYS: `unknown errno(ENOSYS)`, or `--enosys-tail` for OCI profiles",
        ],
    )
}

fn kills(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    report(
        context,
        KILLS,
        |action, _| {
            matches!(
                action.kind,
                ActionKind::KillProcess | ActionKind::KillThread
            )
        },
        [
            "calls of later kernels kill the process",
            "a newer C library may try such a call, with a fallback to an older one",
            "return ENOSYS: `unknown errno(ENOSYS)`; ignore this if the program never changes",
        ],
    )
}

fn report(
    context: &mut Context,
    check: Check,
    is_wrong: impl Fn(Action, Action) -> bool,
    [message, why, help]: [&str; 3],
) -> Result<Vec<Finding>, LimitReached> {
    let mut arches = Vec::new();
    let mut example = None;
    for arch in context.arches.clone() {
        let (data, _) = context.unknown_call(arch)?;
        let answer = context.answer(&data);
        if is_wrong(answer.action, context.enosys(arch)) {
            arches.push(arch);
            example = example.or(Some(answer));
        }
    }
    let Some(example) = example else {
        return Ok(Vec::new());
    };
    let message = format!("{message}{}", context.on(&arches));
    let finding = Finding::new((check.code, check.severity), message, why, help);
    let place = context.place(&example.call, "");
    Ok(vec![finding.examples([example]).places(place)])
}
