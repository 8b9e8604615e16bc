//! Matrices: one policy with options, compiled for all combinations of their values.
//!
//! A program that may run with or without a network, as root or not, needs a filter for each case, and compiling one at
//! its start would take too long. A matrix is a TOML file that names a policy and, for each option, its values, each
//! with its additions to the policy:
//!
//! ```toml
//! policy = "server.tamis"
//!
//! [option.network]
//! none = {}
//! host = { include = "network.tamis", let.MAX_FD = 1023 }
//!
//! [option.debug]
//! false = {}
//! true = { rules = "allow ptrace" }
//! ```
//!
//! [`read`](read()) parses a [`Matrix`]; `settings` defines the settings of options, `text` writes the policy of one
//! combination in the tamis language, where it is an ordinary policy. The meaning of options consists of that text and
//! of the options for a front end: no language has special support.

pub mod code;
mod exclusion;
mod reader;
mod settings;
mod text;
mod toml;

use std::fmt;

use tamis_abi::Arch;
use tamis_diag::{Diagnostic, SourceId, Sources, Span, sort_by_place};

pub use self::settings::Settings;

use crate::sink::Sink;

/// The most combinations of one matrix, excluded ones among them.
pub const MAX_COMBINATIONS: usize = 4096;

/// A value of a matrix with its place; the place doesn't affect equality.
#[derive(Clone, Debug)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// The place.
    pub span: Span,
}

/// A word or text of a matrix.
pub type Name = Placed<String>;

/// A policy and its options.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The text that it was read from.
    pub source: SourceId,
    /// The name of the family in generated code.
    pub name: Option<Name>,
    /// The architectures of the filters; empty to use those of the policy.
    pub arches: Vec<Arch>,
    /// The objective of the optimisation.
    pub objective: Option<Goal>,
    /// The compilation effort.
    pub effort: Option<Effort>,
    /// Folders of included files.
    pub include_dirs: Vec<Name>,
    /// The settings of all combinations.
    pub base: Settings,
    /// The options, in the order of the text; at least one.
    pub options: Vec<OptionAxis>,
    /// Combinations without filters.
    pub exclusions: Vec<Exclusion>,
}

/// The objective of a filter, as in `--objective`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// `steps`
    Steps,
    /// `ns`
    Ns,
    /// `length`
    Length,
}

/// The compilation effort, as in `--effort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// `full`
    Full,
    /// `quick`
    Quick,
}

/// An option with its values.
#[derive(Clone, Debug)]
pub struct OptionAxis {
    /// The name.
    pub name: Name,
    /// The values, in the order of the text; at least one.
    pub values: Vec<OptionValue>,
}

/// A value of an option.
#[derive(Clone, Debug)]
pub struct OptionValue {
    /// The name.
    pub name: Name,
    /// The settings.
    pub settings: Settings,
}

/// A group of combinations without filters: those that have one of the listed values of each listed option.
#[derive(Clone, Debug)]
pub struct Exclusion {
    /// The place.
    pub span: Span,
    /// The values for each option, by index; an empty list means all.
    pub values: Vec<Vec<usize>>,
}

/// One combination: the index of a value for each option.
pub type Combination = Vec<usize>;

impl<T: PartialEq> PartialEq for Placed<T> {
    fn eq(&self, other: &Placed<T>) -> bool {
        self.value == other.value
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.value)
    }
}

impl OptionAxis {
    /// Whether it is a switch: its values are `false` and `true`.
    pub fn is_switch(&self) -> bool {
        let has = |name: &str| self.values.iter().any(|value| value.name.value == name);
        self.values.len() == 2 && has("false") && has("true")
    }
}

impl Matrix {
    /// All combinations, excluded ones too, in order: the last option changes fastest.
    pub fn combinations(&self) -> impl Iterator<Item = Combination> + '_ {
        (0..self.combinations_count()).map(|mut index| {
            let mut values = vec![0; self.options.len()];
            for (value, option) in values.iter_mut().zip(&self.options).rev() {
                *value = index % option.values.len();
                index /= option.values.len();
            }
            values
        })
    }

    /// The index of a combination among [`combinations`](Self::combinations).
    pub fn index_of(&self, values: &[usize]) -> usize {
        let digits = self.options.iter().zip(values);
        digits.fold(0, |index, (option, value)| {
            index * option.values.len() + value
        })
    }

    /// The number of combinations, including excluded ones; at most [`MAX_COMBINATIONS`].
    pub fn combinations_count(&self) -> usize {
        self.options
            .iter()
            .map(|option| option.values.len())
            .product()
    }

    /// Whether there is no filter for a combination.
    pub fn is_excluded(&self, values: &[usize]) -> bool {
        self.exclusions
            .iter()
            .any(|exclusion| exclusion.matches(values))
    }

    /// The name of a combination: `network=host debug=true`.
    pub fn title(&self, values: &[usize]) -> String {
        let named = self.options.iter().zip(values);
        let parts: Vec<String> = named
            .map(|(option, value)| format!("{}={}", option.name, option.values[*value].name))
            .collect();
        parts.join(" ")
    }
}

impl Exclusion {
    /// Whether it excludes a combination.
    pub fn matches(&self, values: &[usize]) -> bool {
        let mut listed = self.values.iter().zip(values);
        listed.all(|(excluded, value)| excluded.is_empty() || excluded.contains(value))
    }
}

/// Whether a text resembles a matrix, mistakes included.
pub fn recognises(text: &str) -> bool {
    let is_header = |line: &str| {
        let rest = line.strip_prefix("[option").map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with(['.', ']'])) || line.starts_with("[[exclude]]")
    };
    text.lines().map(str::trim).any(is_header)
}

/// Reads a matrix; `None` exactly if one of the diagnostics is an error.
///
/// ```
/// use tamis_policy::matrix;
/// let text = "policy = \"a.tamis\"\n[option.network]\nnone = {}\nhost = { include = \"net.tamis\" }\n";
/// let mut sources = tamis_diag::Sources::new();
/// let source = sources.add("a.toml", text);
/// let (matrix, diagnostics) = matrix::read(&sources, source, false);
/// let matrix = matrix.expect("no mistakes");
/// assert_eq!(matrix.title(&[1]), "network=host");
/// assert_eq!(matrix.policy_text(&[1]).as_deref(), Some("include \"net.tamis\"\ninclude \"a.tamis\"\n"));
/// # assert!(diagnostics.is_empty());
/// ```
pub fn read(
    sources: &Sources,
    source: SourceId,
    strict: bool,
) -> (Option<Matrix>, Vec<Diagnostic>) {
    let mut sink = Sink::new(strict);
    let matrix = reader::matrix(&sources.get(source).text, source, &mut sink);
    let has_failed = sink.has_failed();
    let mut diagnostics = sink.into_diagnostics();
    sort_by_place(&mut diagnostics);
    (matrix.filter(|_| !has_failed), diagnostics)
}
