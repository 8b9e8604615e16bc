//! From rules to a proved program.
//!
//! Programs are made with the compiler's quick effort: they are made while a container starts. The proof has a bound of
//! its own, a twentieth of the prover's usual work. If it is reached, which takes many rules with masks on several
//! arguments of one call, the program of the plain layout is made, without passes, which circuits prove faster; for this
//! proof only circuits have the usual bound. An unproved program is never returned.
//!
//! A program that is longer than the kernel takes is made anew with length as the objective.
//!
//! Programs contain only instructions that libseccomp's programs contain: callers and tools of libseccomp read them.

use tamis_abi::{Action, Arch, Nr};
use tamis_bpf::Program;
use tamis_compiler::passes::registry::Selection;
use tamis_compiler::{
    CompileError, CompileOptions, Effort, Instructions, Objective, ProofEffort, compile,
};
use tamis_profile::Profile;

use crate::filter::Rules;
use crate::report;
use crate::status::Status;

/// The program of a filter's rules.
pub(crate) fn program(rules: &Rules, bad_arch: Action) -> Result<Program, Status> {
    let ruleset = rules.ruleset(bad_arch).map_err(|_| Status::NoMemory)?;
    let options = CompileOptions {
        effort: Effort::Quick,
        instructions: Instructions::Libseccomp,
        profile: weights(rules),
        proof: within(&BRIEF),
        ..CompileOptions::default()
    };
    let fitting = |options: CompileOptions| match compile(&ruleset, &options) {
        Err(CompileError::TooLong { .. }) => compile(&ruleset, &short(options)),
        compiled => compiled,
    };
    let compiled = match fitting(options.clone()) {
        Err(CompileError::Unproven { .. }) => fitting(plain(options)),
        compiled => compiled,
    };
    let compiled = compiled.map_err(|error| status(&error))?;
    let program = compiled.program().map_err(|_| Status::Fault)?.clone();
    report::built(rules, &ruleset, &program);
    Ok(program)
}

fn plain(options: CompileOptions) -> CompileOptions {
    CompileOptions {
        passes: Selection::none(),
        proof: within(&BY_CIRCUIT),
        ..options
    }
}

/// The bound of the first proof: 50 ms for diagrams, as much for circuits. Docker's profile takes a hundredth.
const BRIEF: Work = Work {
    diagram_steps: 1_000_000,
    conflicts: 100,
};

/// The bound of the last proof, for rules of which diagrams are known to be large.
const BY_CIRCUIT: Work = Work {
    diagram_steps: 10_000,
    conflicts: 20_000,
};

/// What a proof may take.
struct Work {
    diagram_steps: u64,
    conflicts: u64,
}

fn within(work: &Work) -> ProofEffort {
    let mut effort = ProofEffort::default();
    effort.limits.max_steps = work.diagram_steps;
    effort.limits.max_conflicts = work.conflicts;
    effort
}

fn short(options: CompileOptions) -> CompileOptions {
    CompileOptions {
        objective: Objective::Length,
        passes: Selection::default(),
        ..options
    }
}

/// The expected calls, if the caller gave priorities: a call with the greatest one counts 256 times.
fn weights(rules: &Rules) -> Option<Profile> {
    let mut given = rules.filters().iter().flat_map(|filter| {
        let priorities = filter.user_priorities();
        priorities.map(|(nr, priority)| (filter.arch(), nr, priority))
    });
    let first: (Arch, Nr, u8) = given.next()?;
    let mut profile = Profile::default();
    for filter in rules.filters() {
        profile.merge(Profile::builtin(filter.arch()));
    }
    for (arch, nr, priority) in std::iter::once(first).chain(given) {
        let call = profile.call_mut(arch, nr);
        call.count = call.count.max(1).saturating_mul(1 + u64::from(priority));
    }
    Some(profile)
}

/// A program that is too long can't be loaded anyway, and one that isn't proved is none; everything else would be a bug
/// of tamis.
fn status(error: &CompileError) -> Status {
    match error {
        CompileError::TooLong { .. }
        | CompileError::TooDeep { .. }
        | CompileError::Unproven { .. } => Status::NoMemory,
        _ => Status::Fault,
    }
}
