//! The last step: the proof that the program is equivalent to the ruleset.
//!
//! The compiler returns programs only as [`Compiled`], and only this file makes one, after the prover has compared
//! the program with the ruleset as given, for every input. The prover shares no code with layout, emission or passes.
//! If the two differ, the error carries an input that shows it; if the prover reaches a limit, no program is
//! returned.

use crate::meter::{Cost, measure_archs};
use tamis_abi::{Arch, Endian};
use tamis_bpf::{Program, Template};
use tamis_prover::{Subject, decide_until};
use tamis_rules::{BindError, Ruleset, Variable, variable};

use crate::error::CompileError;
use crate::judge;
use crate::options::ProofEffort;
use crate::passes::Remark;

/// A program that is proved equivalent to its ruleset, for all values of the ruleset's run-time variables.
///
/// Without variables, [`program`](Compiled::program) returns the program; with variables, [`bind`](Compiled::bind)
/// makes a program for given values, as does [`values`](Compiled::values) by name.
#[derive(Clone, Debug)]
pub struct Compiled {
    template: Template,
    remarks: Vec<Remark>,
    variables: Vec<Variable>,
    archs: Vec<Arch>,
}

impl Compiled {
    /// The program of a ruleset without variables.
    ///
    /// # Errors
    /// If the ruleset has a variable: [`bind`](Self::bind) takes the values.
    pub fn program(&self) -> Result<&Program, BindError> {
        match self.variables.first() {
            None => Ok(self.template.unbound()),
            Some(variable) => Err(BindError::Unset {
                variable: variable.clone(),
            }),
        }
    }

    /// The program with the places of its variables, which hold 0, for callers that bind it by other means.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// The byte order of the machines that the program is for.
    pub fn endian(&self) -> Endian {
        self.template.endian()
    }

    /// The variables, by index.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// The changes of the passes, in order.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// The program for these values of the variables: a copy with the values stored in their places.
    ///
    /// # Errors
    /// If the number of values differs from the number of variables, or a value is out of range.
    pub fn bind(&self, values: &[u64]) -> Result<Program, BindError> {
        variable::check_values(&self.variables, values)?;
        Ok(self.template.bind(values))
    }

    /// The cost of every known call with all arguments 0, for each architecture of the ruleset; all variables are 0.
    /// Measured on each call.
    pub fn costs(&self) -> Vec<(Arch, Cost)> {
        measure_archs(std::slice::from_ref(self.template.unbound()), &self.archs)
    }
}

/// Proves that the template is equivalent to the ruleset, or returns an error.
pub(crate) fn verify(
    template: Template,
    ruleset: &Ruleset,
    remarks: Vec<Remark>,
    effort: &ProofEffort,
) -> Result<Compiled, CompileError> {
    judge::compiled(&template, ruleset, effort)?;
    let archs = ruleset.sections().iter().map(|section| section.arch);
    Ok(Compiled {
        template,
        remarks,
        variables: ruleset.variables().to_vec(),
        archs: archs.collect(),
    })
}

/// Checks that a ruleset made by a pass is equivalent to the ruleset as given.
pub(crate) fn check_ruleset(
    made: &Ruleset,
    ruleset: &Ruleset,
    effort: &ProofEffort,
) -> Result<(), CompileError> {
    let [given, made] = [ruleset, made].map(Subject::Ruleset);
    compare(&given, &made, effort)
}

/// Checks that the result is equivalent to the input.
pub(crate) fn compare(
    given: &Subject<'_>,
    made: &Subject<'_>,
    effort: &ProofEffort,
) -> Result<(), CompileError> {
    judge::proved(decide_until(given, made, &effort.limits, &effort.stop)).map(|_| ())
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Action, ArgIndex};
    use tamis_prover::{Answer, Limits, Method, decide};
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
        // With `least` 10 the predicate never holds: no word that is at least 10 is less than a word below 9.
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
        let effort = ProofEffort::default();
        assert_eq!(check_ruleset(&impossible, &never, &effort), Ok(()));
        let refusal = check_ruleset(&below(7), &never, &effort).unwrap_err();
        assert!(
            matches!(refusal, CompileError::Miscompiled { .. }),
            "{refusal}"
        );
    }
}
