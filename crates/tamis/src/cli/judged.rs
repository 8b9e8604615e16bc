//! Confirming rulesets that the prover derives from programs.

use std::collections::BTreeSet;

use tamis_abi::Arch;
use tamis_compiler::CompileError;
use tamis_optimize::judge::{self, Filter, Judged};
use tamis_rules::Ruleset;
use tamis_session::Loaded;

use super::Failure;
use super::limits::LimitArgs;

/// The failure if a limit ends the comparison.
const UNCONFIRMED: &str = "the policy could not be proved equivalent to the program";

/// Proves a ruleset equivalent to the filters of a task, the oldest first, or to their function for some architectures.
pub(crate) fn judge_reading(
    filters: &[Loaded],
    arches: &[Arch],
    ruleset: &Ruleset,
    limits: &LimitArgs,
) -> Result<Judged, Failure> {
    let filters: Vec<Filter<'_>> = filters
        .iter()
        .map(|filter| match filter {
            Loaded::Policy(policy) => Filter::Policy(&policy.ruleset),
            Loaded::Program(raw) => Filter::Program(&raw.program),
        })
        .collect();
    let effort = limits.effort();
    let arches: BTreeSet<Arch> = arches.iter().copied().collect();
    let judged = judge::judge_reading(&filters, &arches, ruleset, &effort);
    judged.map_err(|error| failure(&error, limits))
}

/// The failure if a ruleset could not be confirmed.
fn failure(error: &CompileError, limits: &LimitArgs) -> Failure {
    if let CompileError::Unproven { limit } = error {
        return limits.gave_up(UNCONFIRMED, *limit);
    }
    match error.is_bug() {
        true => Failure::bug(error.to_string(), "please report this with the program"),
        false => Failure::gave_up(error.to_string(), None),
    }
}
