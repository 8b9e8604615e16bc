//! The last step: does the program do what the ruleset says?
//!
//! Nothing leaves the compiler but through [`Compiled`], and only this file makes one, after the prover
//! has compared the program with the ruleset as it was given, for every input. The prover knows nothing
//! of layout, emission or passes. A refusal carries an input for which the two differ; where the prover
//! gives up, there is no program either.

use tamis_abi::{Arch, Endian};
use tamis_bpf::{Program, Template};
use tamis_meter::{Cost, measure_archs};
use tamis_prover::{Subject, decide_until};
use tamis_rules::{BindError, Ruleset, Variable, variable};

use crate::binding::Binding;
use crate::error::CompileError;
use crate::judge;
use crate::options::ProofEffort;
use crate::passes::Remark;

/// A program together with the proof that it means what its ruleset means, whatever is bound to the run-time
/// variables that the ruleset has.
///
/// A ruleset without variables has its [`program`](Compiled::program) at hand; one with variables has a program
/// for all their values, made by [`bind`](Compiled::bind) or, by name, by [`values`](Compiled::values).
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
    /// If there is a variable, which has no value here: [`bind`](Self::bind) gives it one.
    pub fn program(&self) -> Result<&Program, BindError> {
        match self.variables.first() {
            None => Ok(self.template.unbound()),
            Some(variable) => Err(BindError::Unset {
                variable: variable.clone(),
            }),
        }
    }

    /// The program with the places of its variables, which has 0 there. It is for whoever binds it elsewhere.
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

    /// What the passes did, in order.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// The program for these values of the variables: a copy, and a store for each place where a value belongs.
    ///
    /// # Errors
    /// If there are not as many values as variables, or one is out of its range.
    pub fn bind(&self, values: &[u64]) -> Result<Program, BindError> {
        variable::check_values(&self.variables, values)?;
        Ok(self.template.bind(values))
    }

    /// Takes values by name; [`Binding::bind`] then gives the program.
    ///
    /// ```
    /// # use tamis_compiler::{CompileOptions, compile};
    /// # let text = "ruleset bad-arch kill_process\nvariable \"fd\" u32 0x0..0xffffffff\n\
    /// #             section x86_64 default errno(1)\n  write if arg0.low == var0.low: allow\n";
    /// # let mut sources = tamis_diag::Sources::new();
    /// # let source = sources.add("a.rules", text);
    /// # let ruleset = tamis_rules::text::parse(&sources, source).unwrap();
    /// let compiled = compile(&ruleset, &CompileOptions::default()).unwrap();
    /// let program = compiled.values().set("fd", 3)?.bind()?;
    /// assert_eq!(Ok(program), compiled.bind(&[3]));
    /// # Ok::<(), tamis_rules::BindError>(())
    /// ```
    pub fn values(&self) -> Binding<'_> {
        Binding::new(self)
    }

    /// What every known call costs, made once with all arguments 0, for each architecture of the ruleset; all
    /// variables are 0. Measured anew each time.
    pub fn costs(&self) -> Vec<(Arch, Cost)> {
        measure_archs(std::slice::from_ref(self.template.unbound()), &self.archs)
    }
}

/// Proves that the template means what the ruleset means, or says why not.
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

/// Whether a ruleset that a pass made means what the ruleset as given means.
pub(crate) fn check_ruleset(
    made: &Ruleset,
    ruleset: &Ruleset,
    effort: &ProofEffort,
) -> Result<(), CompileError> {
    let [given, made] = [ruleset, made].map(Subject::Ruleset);
    compare(&given, &made, effort)
}

/// Whether what was made means what was given.
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
        let effort = ProofEffort::default();
        assert_eq!(check_ruleset(&impossible, &never, &effort), Ok(()));
        let refusal = check_ruleset(&below(7), &never, &effort).unwrap_err();
        assert!(
            matches!(refusal, CompileError::Miscompiled { .. }),
            "{refusal}"
        );
    }
}
