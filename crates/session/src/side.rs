//! One side of a comparison: a policy, a program, or several filters as a stack.
//!
//! A policy stands for what it means, not for what tamis compiles it to.

use tamis_abi::Arch;
use tamis_bpf::Program;
use tamis_prover::Subject;
use tamis_rules::Input;

use crate::loaded::{Loaded, NamedProgram};

/// What is compared.
#[derive(Clone, Debug)]
pub struct Side {
    /// As the user named it.
    pub name: String,
    /// One filter, or those of a stack, the oldest first.
    filters: Vec<Loaded>,
    is_stack: bool,
}

impl Side {
    /// A single filter, or those of a stack, the oldest first.
    pub fn new(name: impl Into<String>, filters: Vec<Loaded>, is_stack: bool) -> Side {
        Side {
            name: name.into(),
            filters,
            is_stack,
        }
    }

    /// Programs as the filters of a task, the oldest first, or the one filter that there is.
    pub fn of_programs(name: String, programs: Vec<Program>) -> Side {
        let is_stack = programs.len() != 1;
        let loaded = |program| {
            Loaded::Program(NamedProgram {
                name: name.clone(),
                program,
            })
        };
        Side {
            filters: programs.into_iter().map(loaded).collect(),
            is_stack,
            name,
        }
    }

    /// The filters that it stands for.
    pub fn filters(&self) -> &[Loaded] {
        &self.filters
    }

    /// The same, to be changed.
    pub fn filters_mut(&mut self) -> impl Iterator<Item = &mut Loaded> {
        self.filters.iter_mut()
    }

    /// The same, to be used up.
    pub fn into_filters(self) -> Vec<Loaded> {
        self.filters
    }

    /// Hands it to the prover.
    pub fn with_subject<R>(&self, then: impl FnOnce(&Subject<'_>) -> R) -> R {
        let subjects: Vec<Subject<'_>> = self.filters.iter().map(Loaded::subject).collect();
        match subjects.as_slice() {
            [subject] if !self.is_stack => then(subject),
            subjects => then(&Subject::Stack(subjects)),
        }
    }

    /// What it returns for one input, by the evaluator and the interpreter.
    pub fn answer(&self, input: &Input) -> u32 {
        self.with_subject(|subject| subject.answer(input))
    }

    /// The architectures that it names.
    pub fn arches(&self) -> Vec<Arch> {
        let is_named = |arch: &Arch| {
            self.filters.iter().any(|filter| match filter {
                Loaded::Policy(policy) => {
                    let mut sections = policy.ruleset.sections().iter();
                    sections.any(|section| section.arch == *arch)
                }
                Loaded::Program(raw) => {
                    let mut insns = raw.program.insns().iter();
                    insns.any(|insn| insn.k == arch.audit())
                }
            })
        };
        Arch::all().filter(is_named).collect()
    }
}
