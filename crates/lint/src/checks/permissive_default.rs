//! Finds filters that allow unknown calls.

use crate::code::{ALLOWS_UNKNOWN, LINT_PERMISSIVE_DEFAULT};

use crate::context::{Context, is_executed};
use crate::finding::Finding;
use crate::registry::{Check, warning};
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = Check {
    front_end_codes: &[ALLOWS_UNKNOWN],
    ..warning(
        "permissive-default",
        LINT_PERMISSIVE_DEFAULT,
        "calls without a rule are allowed",
        run,
    )
};

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut arches = Vec::new();
    let mut example = None;
    for arch in context.arches.clone() {
        let (data, _) = context.unknown_call(arch)?;
        let answer = context.answer(&data);
        if is_executed(answer.action.ret()) {
            arches.push(arch);
            example = example.or(Some(answer));
        }
    }
    let Some(example) = example else {
        return Ok(Vec::new());
    };
    let place = context.place(&example.call, "");
    let finding = Finding::new(
        (CHECK.code, CHECK.severity),
        format!("calls without a rule are allowed{}", context.on(&arches)),
        "every kernel release adds calls; some are equivalent to an older, denied one",
        "list the allowed calls and deny the rest: `default errno(EPERM)`",
    );
    Ok(vec![finding.examples([example]).places(place)])
}
