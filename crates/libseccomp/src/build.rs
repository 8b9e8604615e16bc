//! From rules to a proved program.
//!
//! Programs are compiled with the quick effort, because compilation delays the start of a container. The first proof is
//! limited to a twentieth of the prover's usual work. Rules with masks on several arguments of one call can exceed it;
//! then the plain layout is compiled without passes, because its proof by circuits is faster, and only circuits have
//! the usual limit. An unproved program is never returned.
//!
//! A program that is too long for the kernel is compiled again with length as the objective.
//!
//! Programs contain only instructions that libseccomp also generates, because callers and tools of libseccomp parse
//! them.

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

/// Compiles and proves the program of a filter.
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

/// The limits of the first proof: 50 ms each for diagrams and circuits. Docker's profile takes a hundredth of it.
const BRIEF: ProofBudget = ProofBudget {
    diagram_steps: 1_000_000,
    conflicts: 100,
};

/// The limits of the last proof, for rules with large diagrams.
const BY_CIRCUIT: ProofBudget = ProofBudget {
    diagram_steps: 10_000,
    conflicts: 20_000,
};

/// The limits of a proof.
struct ProofBudget {
    diagram_steps: u64,
    conflicts: u64,
}

fn within(work: &ProofBudget) -> ProofEffort {
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

/// The expected calls, if the caller set priorities: a call with the greatest priority has weight 256.
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

/// Too long programs can't be loaded, and unproved ones aren't returned; any other error is a bug of tamis.
fn status(error: &CompileError) -> Status {
    match error {
        CompileError::TooLong { .. }
        | CompileError::TooDeep { .. }
        | CompileError::Unproven { .. } => Status::NoMemory,
        _ => Status::Fault,
    }
}
