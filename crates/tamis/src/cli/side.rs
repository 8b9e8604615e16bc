//! One side of a comparison: a policy, a program, or several filters as a stack.
//!
//! A policy stands for what it means, not for what tamis compiles it to. A stack is given as a list with
//! commas, the oldest filter first, or as a folder of `.bpf` files, whose names give the order.

use std::fs;
use std::path::Path;

use tamis_abi::Arch;
use tamis_bpf::{MixedEndian, Program, Stack};
use tamis_prover::Subject;
use tamis_rules::Input;

use super::load::{LoadArgs, Loaded, RawProgram};
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
        let (paths, is_stack) = Side::paths(argument)?;
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

    /// Programs as the filters of a task, the oldest first, or the one filter that there is.
    pub(crate) fn of_programs(name: String, programs: Vec<Program>) -> Side {
        let is_stack = programs.len() != 1;
        let loaded = |program| {
            Loaded::Program(RawProgram {
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

    /// The files that an argument names, and whether they are a stack.
    pub(crate) fn paths(argument: &str) -> Result<(Vec<String>, bool), Failure> {
        let path = Path::new(argument);
        if path.is_dir() {
            return Ok((programs_in(path)?, true));
        }
        if !argument.contains(',') || path.exists() {
            return Ok((vec![argument.to_owned()], false));
        }
        let paths = argument.split(',').map(|path| path.trim().to_owned());
        let paths: Vec<String> = paths.collect();
        // A variable that was not set must not make a stack smaller.
        if paths.iter().any(String::is_empty) {
            return Err(Failure::usage(
                format!("`{argument}` has an empty file name"),
                "a stack is a list such as `old.bpf,new.bpf`, the oldest filter first",
            ));
        }
        Ok((paths, true))
    }

    /// The filters that it stands for.
    pub(crate) fn filters(&self) -> &[Loaded] {
        &self.filters
    }

    /// The same, to be changed.
    pub(crate) fn filters_mut(&mut self) -> impl Iterator<Item = &mut Loaded> {
        self.filters.iter_mut()
    }

    /// The same, to be used up.
    pub(crate) fn into_filters(self) -> Vec<Loaded> {
        self.filters
    }

    /// Hands it to the prover.
    pub(crate) fn with_subject<R>(&self, then: impl FnOnce(&Subject<'_>) -> R) -> R {
        let subjects: Vec<Subject<'_>> = self.filters.iter().map(Loaded::subject).collect();
        match subjects.as_slice() {
            [subject] if !self.is_stack => then(subject),
            subjects => then(&Subject::Stack(subjects)),
        }
    }

    /// What it returns for one input, by the evaluator and the interpreter.
    pub(crate) fn answer(&self, input: &Input) -> u32 {
        self.with_subject(|subject| subject.answer(input))
    }

    /// The architectures that it names.
    pub(crate) fn arches(&self) -> Vec<Arch> {
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

/// Programs as the filters of one task, the oldest first.
pub(crate) fn stack(filters: impl IntoIterator<Item = RawProgram>) -> Result<Stack, Failure> {
    let filters = filters.into_iter().map(|raw| (raw.name, raw.program));
    let (names, programs): (Vec<String>, Vec<Program>) = filters.unzip();
    Stack::new(programs).map_err(|MixedEndian { filter }| {
        let name = &names[filter];
        Failure::usage(
            format!("{name} is for machines of another byte order than the filters before it"),
            "filters of one task run on one machine; select it with `--arch`",
        )
    })
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
            "a directory is the stack of the programs in it, ordered by name, the oldest first",
        ));
    }
    paths.sort();
    Ok(paths)
}
