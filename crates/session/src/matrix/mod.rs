//! Matrices of options: from the text to the policies of all combinations, and from these to proved filters.
//!
//! [`LoadedMatrix`] is a matrix with its text. [`Plan`] reads the policies of the selected combinations, each with its
//! settings, and compiles the distinct ones. The caller provides files and parallelism through [`Environment`]. Nothing
//! prints: warnings are data of the plan, merged where combinations share them.

mod merged_diagnostics;
mod plan;

use std::path::PathBuf;

use tamis_diag::{Diagnostic, SourceId, Sources, suggest};
use tamis_policy::front_end;
use tamis_policy::loader::Loader;
use tamis_policy::matrix::{self, Combination, Matrix};

pub use plan::{CompiledPlan, Member, Plan, Target};

use crate::error::Error;
use crate::input::Input;
use crate::kind::InputKind;
use crate::options::LoadOptions;

/// A matrix with its text.
#[derive(Clone, Debug)]
pub struct LoadedMatrix {
    /// The name of the input; its folder is the base of the files in the matrix.
    pub name: String,
    /// The parsed matrix.
    pub matrix: Matrix,
    /// The text.
    pub sources: Sources,
    /// Warnings about the text.
    pub warnings: Vec<Diagnostic>,
}

/// Warnings with the texts that they point into.
#[derive(Clone, Debug)]
pub struct Warnings {
    /// The warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts.
    pub sources: Sources,
}

/// Access to files and processors, provided by the caller.
pub trait Environment: Sync {
    /// Reads a path or an embedded policy.
    ///
    /// # Errors
    /// If the input can't be read.
    fn read(&self, path: &str) -> Result<Input, Error>;

    /// A loader of included files with these additional folders.
    fn loader(&self, folders: &[PathBuf]) -> Box<dyn Loader>;

    /// Processes all items and returns the results in the same order. The default is sequential.
    fn for_each<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        items.iter().map(work).collect()
    }
}

impl LoadedMatrix {
    /// Reads a matrix; `is_strict` turns warnings into errors.
    ///
    /// # Errors
    /// If the text isn't a matrix, or has mistakes.
    pub fn read(input: Input, is_strict: bool) -> Result<LoadedMatrix, Error> {
        let name = input.name.clone();
        let mut sources = Sources::new();
        let source = input.add_to(&mut sources)?;
        let (matrix, warnings) = matrix::read(&sources, source, is_strict);
        match matrix {
            Some(matrix) => Ok(LoadedMatrix {
                name,
                matrix,
                sources,
                warnings,
            }),
            None => Err(Error::Diagnostics(
                mistaken(source, &sources).map_or(warnings, |own| vec![own]),
                sources,
            )),
        }
    }

    /// The options of reading the policies: the architectures of the matrix, unless the caller requests others.
    #[must_use]
    pub fn load_options(&self, common: &LoadOptions) -> LoadOptions {
        let mut options = common.clone();
        if options.policy.asked_arches.is_empty() {
            let arches = &self.matrix.arches;
            options.policy.asked_arches.clone_from(arches);
        }
        options
    }

    /// Selects combinations that are not excluded and have the given values, `OPTION=VALUE`. Several values of one
    /// option are alternatives; an option without values is unrestricted.
    ///
    /// # Errors
    /// If there is no such option or value, or no combination is left.
    pub fn choose(&self, only: &[String]) -> Result<Vec<Combination>, Error> {
        let matrix = &self.matrix;
        let mut wanted: Vec<Vec<usize>> = vec![Vec::new(); matrix.options.len()];
        for text in only {
            let (axis, value) = self.find(text)?;
            wanted[axis].push(value);
        }
        let is_wanted = |values: &Combination| {
            let mut pairs = values.iter().zip(&wanted);
            pairs.all(|(value, wanted)| wanted.is_empty() || wanted.contains(value))
        };
        let chosen: Vec<Combination> = matrix
            .combinations()
            .filter(|values| is_wanted(values) && !matrix.is_excluded(values))
            .collect();
        match chosen.is_empty() {
            true => Err(Error::usage(
                "the matrix excludes all combinations selected by `--only`",
                "choose other values, or omit `--only`",
            )),
            false => Ok(chosen),
        }
    }

    /// Resolves `OPTION=VALUE` to indices.
    fn find(&self, text: &str) -> Result<(usize, usize), Error> {
        let (option, value) = text.split_once('=').ok_or_else(|| {
            Error::usage(
                format!("`{text}` is not an option with a value"),
                "write `--only OPTION=VALUE`",
            )
        })?;
        let all = &self.matrix.options;
        let options: Vec<&str> = all.iter().map(|own| own.name.value.as_str()).collect();
        let axis = options.iter().position(|own| *own == option);
        let axis = axis.ok_or_else(|| unknown("option", option, "", &options))?;
        let values = all[axis].values.iter();
        let values: Vec<&str> = values.map(|own| own.name.value.as_str()).collect();
        let whose = format!(" of `{option}`");
        let found = values.iter().position(|own| *own == value);
        let found = found.ok_or_else(|| unknown("value", value, &whose, &values))?;
        Ok((axis, found))
    }

    /// The text of the policy of a single selected combination.
    ///
    /// # Errors
    /// If several are selected, or no option changes the text.
    pub fn policy_text(&self, chosen: &[Combination]) -> Result<String, Error> {
        let [values] = chosen else {
            return Err(Error::usage(
                format!(
                    "`--emit policy` writes one policy, and there are {} combinations",
                    chosen.len()
                ),
                "choose one with `--only OPTION=VALUE`, once for each option",
            ));
        };
        let text = self.matrix.policy_text(values);
        text.filter(|_| self.matrix.text_span().is_some())
            .ok_or_else(|| {
                Error::usage(
                    "no option changes the text of the policy",
                    "the policy is the file named in the matrix",
                )
            })
    }

    /// An error in the matrix.
    pub(crate) fn error(&self, diagnostic: Diagnostic) -> Error {
        Error::diagnostic(diagnostic, self.sources.clone())
    }
}

fn unknown(what: &str, name: &str, whose: &str, known: &[&str]) -> Error {
    let help = match suggest::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known.join(", ")),
    };
    Error::usage(format!("there is no {what} `{name}`{whose}"), help)
}

/// The error for a text that resembles another kind than a matrix.
fn mistaken(source: SourceId, sources: &Sources) -> Option<Diagnostic> {
    let text = &sources.get(source).text;
    let kind = InputKind::of_text(text).filter(|_| !matrix::recognises(text))?;
    let help = "`tamis compile` compiles it; in a matrix it is named by `policy = \"FILE\"`";
    Some(front_end::mistaken(
        source,
        "a matrix of options",
        kind.title(),
        help,
    ))
}

#[cfg(test)]
mod tests;
