//! What can be compared: a ruleset, a program, or several of them as a stack.

use tamis_bpf::{Program, Template, interp, stack};
use tamis_rules::{Input, Ruleset};

use crate::diagram::LimitReached;
use crate::space::{Function, Space};

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// What a policy means.
    Ruleset(&'a Ruleset),
    /// A program.
    Program(&'a Program),
    /// A program with run-time variables: a function of their values too.
    Template(&'a Template),
    /// Several filters on one task, the oldest first.
    Stack(&'a [Subject<'a>]),
}

impl<'a> Subject<'a> {
    /// Programs, each on its own.
    pub fn programs(programs: &'a [Program]) -> Vec<Subject<'a>> {
        programs.iter().map(Subject::Program).collect()
    }

    /// All filters of a task, the oldest first: a single one is the function that it is, several are what
    /// the kernel makes of them.
    pub fn whole(filters: &'a [Subject<'a>]) -> Subject<'a> {
        match filters {
            [filter] => *filter,
            filters => Subject::Stack(filters),
        }
    }

    /// What it returns for one input, by the evaluator or the interpreter: the reference against which
    /// the prover is judged.
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
