//! A search for a call for which two filters differ, before anything is proved.
//!
//! Most filters that differ do so on calls near the constants in them, and running a call is a thousand times
//! cheaper than a proof. The search is a [`Campaign`] with a fixed seed and a fixed amount of counted work, so it
//! finds the same on every machine; it says nothing if it finds nothing.

use tamis_prover::{Scope, Stop, Subject};

use crate::campaign::{Campaign, Found};

const SEED: u64 = 0;
/// The most work of a search, see [`Campaign::work`]; some ten milliseconds.
const MAX_WORK: u64 = 4_000_000;
/// The evaluations between checks of the work and for cancellation.
const EVALUATIONS_BETWEEN_CHECKS: u64 = 64;

/// A call of a scope that two subjects answer differently, confirmed by the reference; `None` if a short search
/// finds none, the caller stops it, or a policy has run-time variables, of which campaigns know nothing.
///
/// ```
/// use tamis_abi::Endian;
/// use tamis_bpf::{Op, Program, Test};
/// use tamis_fuzz::refute;
/// use tamis_prover::{Scope, Stop, Subject};
/// let program = |k| {
///     let test = Op::branch(Test::Eq, k, 0, 1);
///     let ops = [Op::LoadData(0), test, Op::RetImm(0x7fff_0000), Op::RetImm(0)];
///     Program::new(ops.map(Into::into).to_vec(), Endian::Little).unwrap()
/// };
/// let programs = [program(1 << 30), program((1 << 30) + 1)];
/// let [left, right] = programs.each_ref().map(Subject::Program);
/// let refute = |scope: &Scope| refute([&left, &right], scope, &Stop::default());
/// assert!(refute(&Scope::default()).is_some());
/// let native = Scope { native_only: true, ..Scope::default() };
/// assert!(refute(&native).is_none());
/// ```
pub fn refute(subjects: [&Subject<'_>; 2], scope: &Scope, stop: &Stop) -> Option<Found> {
    if subjects.into_iter().any(has_variables) {
        return None;
    }
    // A policy whose plain form is no program isn't run.
    let mut campaign = Campaign::new(subjects, SEED).ok()?.within(scope.clone());
    while campaign.work() < MAX_WORK && !stop.is_asked_for() {
        if let Some(found) = campaign.run(EVALUATIONS_BETWEEN_CHECKS) {
            return Some(found);
        }
    }
    None
}

/// Whether a subject is also a function of run-time variables.
fn has_variables(subject: &Subject<'_>) -> bool {
    match subject {
        Subject::Ruleset(ruleset) => !ruleset.variables().is_empty(),
        Subject::Template(_) => true,
        Subject::Program(_) => false,
        Subject::Stack(subjects) => subjects.iter().any(has_variables),
    }
}
