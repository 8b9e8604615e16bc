//! One side of a comparison: a policy, a program, or several filters as a stack.
//!
//! A policy stands for what it means, not for what tamis compiles it to. A stack is given as a list with
//! commas, the oldest filter first, or as a folder of `.bpf` files, whose names give the order.

use std::fs;
use std::path::Path;

use tamis_abi::SeccompData;
use tamis_bpf::{Program, interp, stack};
use tamis_prover::{Function, LimitReached, Space, Subject};

use super::load::{LoadArgs, Loaded};
use super::{Failure, Global};

/// What is compared.
pub(crate) struct Side {
    /// As the user named it.
    pub(crate) name: String,
    /// One filter, or those of a stack, the oldest first.
    filters: Vec<Loaded>,
    is_stack: bool,
}

impl Side {
    /// Reads what an argument names.
    pub(crate) fn read(argument: &str, load: &LoadArgs, global: &Global) -> Result<Side, Failure> {
        let path = Path::new(argument);
        let (paths, is_stack) = if path.is_dir() {
            (programs_in(path)?, true)
        } else if argument.contains(',') && !path.exists() {
            let paths = argument.split(',').map(|path| path.trim().to_owned());
            (paths.filter(|path| !path.is_empty()).collect(), true)
        } else {
            (vec![argument.to_owned()], false)
        };
        let filters: Result<Vec<Loaded>, Failure> = paths
            .iter()
            .map(|path| load.load_among(path, global))
            .collect();
        Ok(Side {
            name: argument.to_owned(),
            filters: filters?,
            is_stack,
        })
    }

    /// The filters that it stands for.
    pub(crate) fn filters(&self) -> &[Loaded] {
        &self.filters
    }

    /// The same, to be used up.
    pub(crate) fn into_filters(self) -> Vec<Loaded> {
        self.filters
    }

    /// What it means.
    pub(crate) fn function(&self, space: &mut Space) -> Result<Function, LimitReached> {
        let mut functions = Vec::new();
        for filter in &self.filters {
            functions.push(match filter {
                Loaded::Policy(policy) => space.ruleset(&policy.ruleset)?,
                Loaded::Program(raw) => space.program(&raw.program, raw.endian)?,
            });
        }
        match functions.as_slice() {
            [function] if !self.is_stack => Ok(*function),
            functions => space.stack(functions),
        }
    }

    /// Hands it to the prover's other way; `None` if that doesn't take it: a stack that isn't of programs
    /// alone, or of several byte orders.
    pub(crate) fn with_subject<R>(&self, then: impl FnOnce(&Subject<'_>) -> R) -> Option<R> {
        match self.filters.as_slice() {
            [Loaded::Policy(policy)] if !self.is_stack => {
                Some(then(&Subject::Ruleset(&policy.ruleset)))
            }
            [Loaded::Program(raw), ..] => {
                let endian = raw.endian;
                let program = |filter: &Loaded| match filter {
                    Loaded::Program(raw) if raw.endian == endian => Some(raw.program.clone()),
                    _ => None,
                };
                let programs: Option<Vec<Program>> = self.filters.iter().map(program).collect();
                let programs = &programs?;
                let subject = match programs.as_slice() {
                    [program] if !self.is_stack => Subject::Program { program, endian },
                    programs => Subject::Stack { programs, endian },
                };
                Some(then(&subject))
            }
            _ => None,
        }
    }

    /// What it returns for one call, by the evaluator and the interpreter.
    pub(crate) fn answer(&self, data: &SeccompData) -> u32 {
        let answers: Vec<u32> = self
            .filters
            .iter()
            .map(|filter| match filter {
                Loaded::Policy(policy) => policy.ruleset.decide(data).action.ret(),
                Loaded::Program(raw) => interp::run(&raw.program, &data.image(raw.endian)).ret,
            })
            .collect();
        match answers.as_slice() {
            [answer] if !self.is_stack => *answer,
            answers => stack::winner(answers).map_or(stack::NO_FILTER, |index| answers[index]),
        }
    }
}

/// The raw programs in a folder, by name.
fn programs_in(folder: &Path) -> Result<Vec<String>, Failure> {
    let cannot_read = |error| Failure::input(format!("cannot read {}: {error}", folder.display()));
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot_read)? {
        let path = entry.map_err(cannot_read)?.path();
        if path.extension().is_some_and(|extension| extension == "bpf") {
            paths.push(path.display().to_string());
        }
    }
    if paths.is_empty() {
        return Err(Failure::usage(
            format!("{} has no .bpf files", folder.display()),
            "a folder stands for the stack of the programs in it, the oldest first by name",
        ));
    }
    paths.sort();
    Ok(paths)
}
