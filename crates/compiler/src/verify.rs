//! The last step: does the program do what the ruleset says?
//!
//! Nothing leaves the compiler but through [`Compiled`], and only this file makes one, after the prover
//! has compared the program with the ruleset as it was given, for every input. The prover knows nothing
//! of layout, emission or passes. A refusal carries an input for which the two differ; where the prover
//! gives up, there is no program either.

use tamis_abi::{Arch, Endian};
use tamis_bpf::Program;
use tamis_prover::{Answer, Limits, Subject, decide};
use tamis_rules::Ruleset;

use crate::error::CompileError;
use crate::passes::Remark;
use crate::stats::Stats;

/// A program together with the proof that it means what its ruleset means.
#[derive(Clone, Debug)]
pub struct Compiled {
    program: Program,
    endian: Endian,
    remarks: Vec<Remark>,
    archs: Vec<Arch>,
}

impl Compiled {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The byte order of the machines that the program is for.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// What the passes did, in order.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// Figures about the program, for the architectures of the ruleset in order. Made anew each time, by
    /// running the program.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.program, self.archs.iter().copied())
    }
}

/// Proves that the program means what the ruleset means, or says why not.
pub(crate) fn verify(
    program: Program,
    ruleset: &Ruleset,
    endian: Endian,
    remarks: Vec<Remark>,
) -> Result<Compiled, CompileError> {
    check_program(&program, ruleset, endian)?;
    let archs = ruleset.sections().iter().map(|section| section.arch);
    Ok(Compiled {
        program,
        endian,
        remarks,
        archs: archs.collect(),
    })
}

/// Whether a program means what the ruleset means.
pub(crate) fn check_program(
    program: &Program,
    ruleset: &Ruleset,
    endian: Endian,
) -> Result<(), CompileError> {
    compare(ruleset, &Subject::Program { program, endian })
}

/// Whether a ruleset that a pass made means what the ruleset as given means.
pub(crate) fn check_ruleset(made: &Ruleset, ruleset: &Ruleset) -> Result<(), CompileError> {
    compare(ruleset, &Subject::Ruleset(made))
}

fn compare(ruleset: &Ruleset, made: &Subject<'_>) -> Result<(), CompileError> {
    match decide(&Subject::Ruleset(ruleset), made, &Limits::default()) {
        Answer::Equal(_) => Ok(()),
        Answer::Different {
            data, left, right, ..
        } => Err(CompileError::Miscompiled {
            witness: data,
            expected_ret: left,
            actual_ret: right,
        }),
        Answer::Unknown(limit) => Err(CompileError::Unproven { limit }),
    }
}
