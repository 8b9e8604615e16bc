//! The tamis language.
//!
//! ```text
//! arch x86_64, x86, x32
//! default errno(EPERM)
//! allow read, write, @basic-io
//! allow socket(family in {AF_UNIX, AF_INET}, type & SOCK_TYPE_MASK == SOCK_STREAM)
//! ```
//!
//! The grammar and the rules are in `docs/book/language.md`. The stages, one file each: [`parse()`] runs them;
//! `lexer` and `parser` build the [`ast`]; `include` merges files (`foreign` reads those of other languages) and selects blocks by `parameters`; `names` and `value` resolve words; `condition`
//! and `lower` build the ruleset.

pub mod ast;
pub mod code;
mod condition;
mod foreign;
pub mod include;
mod lexer;
mod lower;
mod names;
mod parameters;
pub mod parser;
pub mod print;
pub mod resolve;
mod sets;
mod value;
mod variables;

pub use parameters::Choice;

use parameters::Parameters;
use tamis_abi::Arch;
use tamis_diag::{Diagnostic, SourceId, Sources};

use crate::Parsed;
use crate::front_end::{self, FrontEnd, ParsedPolicy};
use crate::loader::Loader;
use crate::sink::Sink;
use crate::tamis::ast::{Statement, StatementKind};

/// The language in the registry.
pub static FRONT_END: FrontEnd = FrontEnd {
    name: "tamis",
    title: "a policy in the tamis language",
    plural: "policies in the tamis language",
    about: "A policy in the tamis language",
    extensions: &["tamis"],
    codes: code::TAMIS,
    options: &[&parameters::SET],
    uses_kernel: false,
    has_separate_default: true,
    ignores_byte_order_mark: true,
    recognises: parser::recognises,
    parse: parse_for_any,
};

/// Whether a text of an unknown kind may be a policy in this language, possibly with a mistake in its first words.
pub fn is_conceivable(text: &str) -> bool {
    parser::is_conceivable(text)
}

fn parse_for_any(
    sources: &mut Sources,
    root: SourceId,
    loader: &mut dyn Loader,
    common: &front_end::ParseOptions,
) -> ParsedPolicy {
    let arches = match common.asked_arches.as_slice() {
        [] => Arches::UnlessStated(vec![common.native_arch]),
        asked if common.stated_arches_win => Arches::UnlessStated(asked.to_vec()),
        asked => Arches::Exactly(asked.to_vec()),
    };
    let options = TamisOptions {
        arches,
        strict: common.strict,
        choices: common.tamis.choices.clone(),
    };
    let (parsed, statements) = parse_expanded(sources, root, loader, &options);
    let is_arch = |statement: &Statement| matches!(statement.kind, StatementKind::Arch(_));
    let known_until = |statement: &Statement| match statement.kind {
        StatementKind::KnownUntil(version) => Some(version),
        _ => None,
    };
    ParsedPolicy {
        states_arches: statements.iter().any(is_arch) || !common.asked_arches.is_empty(),
        known_until: statements.iter().find_map(known_until),
        ..parsed.into()
    }
}

/// The options of the language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The values of parameters; those without one have their default.
    pub choices: Vec<Choice>,
}

/// Options of parsing a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TamisOptions {
    /// The architectures of the filter.
    pub arches: Arches,
    /// Treat warnings as errors.
    pub strict: bool,
    /// The values of parameters; those without one have their default.
    pub choices: Vec<Choice>,
}

/// The architectures of a policy: its own choice or the caller's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arches {
    /// These, unless the policy has an `arch` statement.
    UnlessStated(Vec<Arch>),
    /// These, regardless of `arch` statements.
    Exactly(Vec<Arch>),
}

impl TamisOptions {
    /// Not strict, for these architectures unless the policy has an `arch` statement.
    pub fn new(arches: Vec<Arch>) -> TamisOptions {
        TamisOptions {
            arches: Arches::UnlessStated(arches),
            strict: false,
            choices: Vec::new(),
        }
    }
}

/// The calls of a built-in set, `@` included in its name, sorted; `None` if there is no such set.
///
/// ```
/// let calls: Vec<&str> = tamis_policy::tamis::built_in_set("@swap").unwrap().collect();
/// assert_eq!(calls, ["swapoff", "swapon"]);
/// ```
pub fn built_in_set(name: &str) -> Option<impl Iterator<Item = &'static str>> {
    Some(sets::built_in(name)?.iter().map(AsRef::as_ref))
}

/// Parses a policy: `root`, already in the sources, and the files that it includes, which are added to them.
///
/// ```
/// use tamis_abi::{Action, Arch, SeccompData};
/// use tamis_policy::{loader::NoIncludes, tamis};
/// let mut sources = tamis_diag::Sources::new();
/// let root = sources.add("a.tamis", "default errno(EPERM)\nallow write(fd == 1)\n");
/// let options = tamis::TamisOptions::new(vec![Arch::X86_64]);
/// let parsed = tamis::parse(&mut sources, root, &mut NoIncludes, &options);
/// let ruleset = parsed.ruleset.expect("no errors");
/// let call = SeccompData { nr: 1, arch: Arch::X86_64.audit(), args: [1; 6], ..Default::default() };
/// assert_eq!(ruleset.decide(&call).action, Action::ALLOW);
/// ```
pub fn parse(
    sources: &mut Sources,
    root: SourceId,
    loader: &mut dyn Loader,
    options: &TamisOptions,
) -> Parsed {
    parse_expanded(sources, root, loader, options).0
}

/// The result, and the statements of all files.
fn parse_expanded(
    sources: &mut Sources,
    root: SourceId,
    loader: &mut dyn Loader,
    options: &TamisOptions,
) -> (Parsed, Vec<Statement>) {
    let mut sink = Sink::new(options.strict);
    let mut parameters = Parameters::new(&options.choices);
    let mut place = |statement, sink: &mut Sink| parameters.place(statement, sink);
    let expanded = include::expand(
        &include::POLICIES,
        sources,
        root,
        loader,
        &mut place,
        &mut sink,
    );
    if !sink.has_failed() {
        parameters.finish(&mut sink);
    }
    let statements = expanded.statements;
    let arches = lower::arches(&statements, options);
    let foreign = foreign::read(&expanded.foreign, &arches, sources, loader, &mut sink);
    let ruleset = lower::ruleset(&statements, &foreign, options, sources, &mut sink);
    (Parsed::new(ruleset, sink.into_diagnostics()), statements)
}

/// Parses the syntax of one file without resolving names or includes, for tools that print policies.
///
/// Statements with errors are omitted and reported.
pub fn parse_syntax(sources: &Sources, source: SourceId) -> (ast::Policy, Vec<Diagnostic>) {
    let mut sink = Sink::new(false);
    let policy = parser::parse(source, &sources.get(source).text, &mut sink);
    (policy, sink.into_diagnostics())
}
