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
    compare_within(
        &Subject::Ruleset(ruleset),
        &Subject::Program { program, endian },
        &Limits::for_insns(program.len()),
    )
}

/// Whether a ruleset that a pass made means what the ruleset as given means.
pub(crate) fn check_ruleset(made: &Ruleset, ruleset: &Ruleset) -> Result<(), CompileError> {
    compare(&Subject::Ruleset(ruleset), &Subject::Ruleset(made))
}

/// Whether what was made means what was given.
pub(crate) fn compare(given: &Subject<'_>, made: &Subject<'_>) -> Result<(), CompileError> {
    compare_within(given, made, &Limits::default())
}

fn compare_within(
    given: &Subject<'_>,
    made: &Subject<'_>,
    limits: &Limits,
) -> Result<(), CompileError> {
    match decide(given, made, limits) {
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

#[cfg(test)]
mod tests {
    use tamis_abi::{Action, ArgIndex};
    use tamis_prover::Method;
    use tamis_rules::{CmpOp, IntervalSet, Operand, Part, Predicate, Rule, Section, Test};

    use super::*;

    fn denying(when: Predicate) -> Ruleset {
        let section = Section {
            arch: Arch::X86_64,
            rules: vec![Rule {
                syscalls: IntervalSet::single(1),
                when,
                action: Action::errno(1),
                origin: None,
            }],
            default: Action::ALLOW,
        };
        Ruleset::new(vec![section], Action::KILL_PROCESS).unwrap()
    }

    #[test]
    fn what_diagrams_leave_open_is_decided_by_gates() {
        let [a, b] = [0, 1].map(|index| Operand {
            part: Part::Low,
            ..Operand::arg(ArgIndex::ALL[index])
        });
        let is_less = Predicate::Test(Test::Between {
            left: a,
            op: CmpOp::Lt,
            right: b,
        });
        // From 10 on nothing is below a number that is below 9.
        let below = |least| {
            let a_is_large = Predicate::compare(a, CmpOp::Ge, least);
            let b_is_small = Predicate::compare(b, CmpOp::Lt, 9);
            denying(Predicate::All(vec![
                a_is_large,
                b_is_small,
                is_less.clone(),
            ]))
        };
        let never = denying(Predicate::False);
        let impossible = below(10);
        let subjects = [&impossible, &never].map(Subject::Ruleset);
        let answer = decide(&subjects[0], &subjects[1], &Limits::default());
        assert_eq!(answer, Answer::Equal(Method::Gates));
        assert_eq!(check_ruleset(&impossible, &never), Ok(()));
        let refusal = check_ruleset(&below(7), &never).unwrap_err();
        assert!(
            matches!(refusal, CompileError::Miscompiled { .. }),
            "{refusal}"
        );
    }
}
