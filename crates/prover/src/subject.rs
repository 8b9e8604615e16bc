//! The subjects of comparisons: a ruleset, a program, or a stack of several.

use tamis_bpf::{Program, Template, interp, stack};
use tamis_rules::{Input, Rule, Ruleset, Section};

use crate::diagram::LimitReached;
use crate::space::{Function, Space};

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// The ruleset of a policy.
    Ruleset(&'a Ruleset),
    /// A program.
    Program(&'a Program),
    /// A program with run-time variables, which is also a function of their values.
    Template(&'a Template),
    /// Several filters on one task, the oldest first.
    Stack(&'a [Subject<'a>]),
}

impl<'a> Subject<'a> {
    /// Programs as separate subjects.
    pub fn programs(programs: &'a [Program]) -> Vec<Subject<'a>> {
        programs.iter().map(Subject::Program).collect()
    }

    /// All filters of a task, the oldest first: a single one as it is, several as a stack.
    pub fn whole(filters: &'a [Subject<'a>]) -> Subject<'a> {
        match filters {
            [filter] => *filter,
            filters => Subject::Stack(filters),
        }
    }

    /// Whether both are written alike: the same instructions, or the same rules up to their places in the text. Such
    /// subjects are equal without a proof. Linear.
    pub fn is_identical(&self, other: &Subject<'_>) -> bool {
        match (self, other) {
            (Subject::Ruleset(left), Subject::Ruleset(right)) => same_rules(left, right),
            (Subject::Program(left), Subject::Program(right)) => left == right,
            (Subject::Template(left), Subject::Template(right)) => left == right,
            (Subject::Stack(left), Subject::Stack(right)) => {
                let mut pairs = left.iter().zip(*right);
                left.len() == right.len() && pairs.all(|(left, right)| left.is_identical(right))
            }
            _ => false,
        }
    }

    /// Its return value for one input, by the evaluator or the interpreter: the reference for the prover.
    pub fn answer(&self, input: &Input) -> u32 {
        match self {
            Subject::Ruleset(ruleset) => {
                let decision = ruleset.decide_with(&input.data, &input.variables);
                decision.action.ret()
            }
            Subject::Program(program) => interp::run(program, &input.data).ret,
            Subject::Template(template) => {
                let program = template.bind(input.variables.as_slice());
                interp::run(&program, &input.data).ret
            }
            Subject::Stack(filters) => {
                let answers: Vec<u32> = filters.iter().map(|filter| filter.answer(input)).collect();
                stack::winner(&answers).map_or(stack::NO_FILTER, |index| answers[index])
            }
        }
    }
}

/// Whether two rulesets differ at most in the places of their rules.
fn same_rules(left: &Ruleset, right: &Ruleset) -> bool {
    let (left_sections, right_sections) = (left.sections(), right.sections());
    let same_rule = |(left, right): (&Rule, &Rule)| {
        (&left.syscalls, &left.when, left.action) == (&right.syscalls, &right.when, right.action)
    };
    let same_section = |(left, right): (&Section, &Section)| {
        (left.arch, left.default, left.rules.len())
            == (right.arch, right.default, right.rules.len())
            && left.rules.iter().zip(&right.rules).all(same_rule)
    };
    left.bad_arch == right.bad_arch
        && left.variables() == right.variables()
        && left_sections.len() == right_sections.len()
        && left_sections.iter().zip(right_sections).all(same_section)
}

impl Space {
    /// The meaning of a subject.
    ///
    /// # Errors
    /// If the space is full.
    pub fn subject(&mut self, subject: &Subject<'_>) -> Result<Function, LimitReached> {
        match subject {
            Subject::Ruleset(ruleset) => self.ruleset(ruleset),
            Subject::Program(program) => self.program(program),
            Subject::Template(template) => self.template(template),
            Subject::Stack(filters) => {
                let functions: Result<Vec<Function>, LimitReached> =
                    filters.iter().map(|filter| self.subject(filter)).collect();
                self.stack(&functions?)
            }
        }
    }
}
