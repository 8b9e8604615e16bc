//! The judge of what the prover reads in programs.

use std::collections::BTreeSet;

use tamis_abi::Arch;
use tamis_compiler::CompileError;
use tamis_optimize::judge::{self, Filter, Judged};
use tamis_rules::Ruleset;
use tamis_session::Loaded;

use super::Failure;
use super::limits::LimitArgs;

/// What is said where a limit ends the comparison with the program.
const UNCONFIRMED: &str = "the policy could not be proved equivalent to the program";

/// Lets the judge compare a ruleset with the filters of a task, the oldest first, that it was read in, or with what
/// they do for some architectures.
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

/// What is said if a ruleset could not be confirmed. It was read, so some policy expresses the program.
fn failure(error: &CompileError, limits: &LimitArgs) -> Failure {
    if let CompileError::Unproven { limit } = error {
        return limits.gave_up(UNCONFIRMED, *limit);
    }
    match error.is_bug() {
        true => Failure::bug(error.to_string(), "please report this with the program"),
        false => Failure::gave_up(error.to_string(), None),
    }
}
