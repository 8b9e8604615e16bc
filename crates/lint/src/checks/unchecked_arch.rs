//! Finds filters whose result doesn't depend on the architecture.
//!
//! A filter that allows no call is not reported.

use crate::code::LINT_UNCHECKED_ARCH;

use super::compat_arches::{compat_arches, most_informative};
use crate::context::{Access, Call, Context, is_executed};
use crate::finding::{Example, Finding};
use crate::registry::{Check, warning};
use tamis_prover::LimitReached;

pub(crate) const CHECK: Check = warning(
    "unchecked-arch",
    LINT_UNCHECKED_ARCH,
    "the architecture is never checked",
    run,
);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut values = context.space.values(context.function).into_iter();
    if context.tests_arch || !values.any(is_executed) {
        return Ok(Vec::new());
    }
    let example = example(context)?;
    let place = example.and_then(|example| context.place(&example.call, "allows it"));
    let finding = Finding::new(
        (CHECK.code, CHECK.severity),
        "the filter never checks the architecture",
        "numbers denote other calls on other architectures, and most kernels run two",
        "compare `arch` before the number and deny other architectures",
    );
    Ok(vec![finding.examples(example).places(place)])
}

/// A call of another architecture that is executed although the call of the same name is denied here; else any
/// executed one.
fn example(context: &mut Context) -> Result<Option<Example>, LimitReached> {
    let Some(own) = context.arches.first().copied() else {
        return Ok(None);
    };
    for compat in compat_arches(own) {
        let calls = context.calls_of(*compat)?;
        let is_refused_here = |call: &Call| {
            let namesake = context.call(own, call.name);
            namesake.is_some_and(|namesake| namesake.access == Access::Refused)
        };
        let disguised: Vec<Call> = calls.iter().copied().filter(is_refused_here).collect();
        if let Some(call) = most_informative(&disguised).or_else(|| most_informative(&calls)) {
            return Ok(context.example(&call, true));
        }
    }
    Ok(None)
}
