//! What is looked at: a policy, or the filters of one task.

use tamis_abi::{Action, Arch, Endian, SeccompData};
use tamis_bpf::Stack;
use tamis_prover::{Function, LimitReached, Space};
use tamis_rules::Ruleset;

/// What decides about calls.
#[derive(Clone, Copy, Debug)]
pub enum Meaning<'a> {
    /// A policy.
    Policy(&'a Ruleset),
    /// Programs that are installed on one task; mostly one.
    Filters {
        /// The programs.
        stack: &'a Stack,
        /// The byte order of the machine that they are for.
        endian: Endian,
    },
}

/// What to look at.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What decides about calls.
    pub meaning: Meaning<'a>,
    /// Whose numbers a program means that never looks at the architecture.
    pub assumed_arch: Arch,
}

impl Meaning<'_> {
    /// The answer to a call, by the evaluator of rulesets or by the reference interpreter.
    pub fn decide(&self, data: &SeccompData) -> Action {
        match self {
            Meaning::Policy(ruleset) => ruleset.decide(data).action,
            Meaning::Filters { stack, endian } => {
                Action::from_ret(stack.run(&data.image(*endian)).ret)
            }
        }
    }

    /// The answers to all calls.
    pub(crate) fn function(&self, space: &mut Space) -> Result<Function, LimitReached> {
        match self {
            Meaning::Policy(ruleset) => space.ruleset(ruleset),
            Meaning::Filters { stack, endian } => {
                let mut functions = Vec::new();
                for program in stack.programs() {
                    functions.push(space.program(program, *endian)?);
                }
                match functions.as_slice() {
                    [only] => Ok(*only),
                    all => space.stack(all),
                }
            }
        }
    }
}
