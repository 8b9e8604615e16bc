//! Kafel's policies: blocks of calls with an action and conditions on named arguments.
//!
//! ```text
//! #define STDERR 2
//! POLICY output { ALLOW { write { fd <= STDERR }, exit_group } }
//! USE output
//! DEFAULT ERRNO(1)
//! ```
//!
//! The meaning is that of the programs that kafel compiles. In particular, an argument has the width of its C type and
//! is compared on 32 bits unless another part of the comparison has 64. The stages, one file each: `lexer` merges
//! files, `parser` builds the `ast`, `lower` builds the ruleset, with `fold` for the width of a comparison and
//! `compare` for comparisons that rules cannot express directly.

mod ast;
mod calls;
pub mod code;
mod compare;
mod fold;
mod levels;
mod lexer;
mod lower;
mod parser;

use tamis_abi::{Action, Arch};
use tamis_diag::{Diagnostic, SourceId, Sources, Span};
use tamis_rules::{Ruleset, Section};

use self::lexer::Beginning;
use crate::Parsed;
use crate::front_end::FrontEnd;
use crate::loader::Loader;
use crate::sink::Sink;

/// The language in the registry.
pub(crate) static FRONT_END: FrontEnd = FrontEnd {
    name: "kafel",
    title: "a kafel policy",
    plural: "kafel policies",
    about: "A kafel policy, the format of nsjail",
    extensions: &["policy", "kafel"],
    codes: code::KAFEL,
    options: &[],
    uses_kernel: false,
    has_separate_default: true,
    ignores_byte_order_mark: false,
    recognises,
    parse: |sources, root, loader, common| {
        let options = KafelOptions {
            arches: common.arches_one_by_one(),
            strict: common.strict,
        };
        parse(sources, root, loader, &options).into()
    },
};

/// Options of parsing a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafelOptions {
    /// The architectures of the filter; each gets its rules.
    pub arches: Vec<Arch>,
    /// Treat warnings as errors.
    pub strict: bool,
}

impl KafelOptions {
    /// For one architecture, not strict.
    pub fn new(arch: Arch) -> KafelOptions {
        KafelOptions {
            arches: vec![arch],
            strict: false,
        }
    }
}

/// Whether a text resembles a policy: the first word after comments, includes and constants begins a statement, or
/// there are only includes.
fn recognises(text: &str) -> bool {
    let Beginning {
        has_include,
        statement,
    } = lexer::beginning(text);
    if statement.is_empty() {
        return has_include;
    }
    let end = statement
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(statement.len());
    parser::begins_statement(&statement[..end])
}

/// Parses a policy: `root`, already in the sources, and the files that it includes, which are added to them.
///
/// ```
/// use tamis_abi::{Action, Arch, SeccompData};
/// use tamis_policy::{kafel, loader::NoIncludes};
/// let mut sources = tamis_diag::Sources::new();
/// let root = sources.add("a.kafel", "ALLOW { write { fd == 1 || fd == 2 } } DEFAULT ERRNO(1)");
/// let options = kafel::KafelOptions::new(Arch::X86_64);
/// let parsed = kafel::parse(&mut sources, root, &mut NoIncludes, &options);
/// let ruleset = parsed.ruleset.expect("no errors");
/// let call = SeccompData { nr: 1, arch: Arch::X86_64.audit(), args: [2; 6], ..Default::default() };
/// assert_eq!(ruleset.decide(&call).action, Action::ALLOW);
/// ```
#[expect(
    clippy::missing_panics_doc,
    reason = "architectures are collected without repetition"
)]
pub fn parse(
    sources: &mut Sources,
    root: SourceId,
    loader: &mut dyn Loader,
    options: &KafelOptions,
) -> Parsed {
    let mut sink = Sink::new(options.strict);
    let tokens = lexer::tokens(sources, root, loader, &mut sink);
    if tokens.is_empty() && !sink.has_failed() {
        let start = Span::new(root, 0, 0);
        let diagnostic = Diagnostic::error(code::KAFEL_SYNTAX, "the policy has no statement")
            .label(start, "kafel needs one")
            .help("`DEFAULT ALLOW` is a policy");
        sink.report(diagnostic);
    }
    let program = parser::parse(sources, &tokens, &mut sink);
    let mut lowering = lower::Lowering {
        sources,
        program: &program,
        sink: &mut sink,
        bit_tests: 0,
    };
    let mut sections: Vec<Section> = Vec::new();
    for arch in &options.arches {
        if sections.iter().all(|section| section.arch != *arch) {
            sections.push(lowering.section(*arch));
        }
    }
    let says_nothing = program.main.is_empty() && program.default.is_none();
    if says_nothing && !sink.has_failed() {
        let start = Span::new(root, 0, 0);
        let diagnostic = Diagnostic::warning(code::KAFEL_EMPTY, "the policy has no rules")
            .label(start, "every call is killed")
            .help("named policies have an effect only where they are used: `USE name`");
        sink.report(diagnostic);
    }
    add_x32(&mut sections);
    // For other architectures kafel kills the thread, regardless of the default.
    let ruleset = Ruleset::new(sections, Action::KILL_THREAD).expect("no architecture twice");
    Parsed::new(Some(ruleset), sink.into_diagnostics())
}

/// Adds a section for x32 unless the caller selected it: kafel checks only the audit value, which x32 shares with
/// x86_64, and compares numbers.
fn add_x32(sections: &mut Vec<Section>) {
    let has = |arch| {
        sections
            .iter()
            .find(|section: &&Section| section.arch == arch)
    };
    if let Some(native) = has(Arch::X86_64)
        && has(Arch::X32).is_none()
    {
        let in_x32 = |rule: &&tamis_rules::Rule| {
            let domain = Section::domain(Arch::X32);
            !rule.syscalls.intersection(&domain).is_empty()
        };
        let rules = native.rules.iter().filter(in_x32).cloned().collect();
        let default = native.default;
        sections.push(Section {
            arch: Arch::X32,
            rules,
            default,
        });
    }
}
