//! Firecracker's filters: the JSON format of Firecracker and the seccompiler library.
//!
//! A file has a filter for each of several threads; one is chosen by name. The meaning is that of the programs that
//! the seccompiler library compiles. A warning reports where it differs from the apparent meaning of the file: a
//! rule without conditions that other rules disable, a constant cut to 32 bits. The stages:
//!
//! 1. `read`: text to a checked `model`, every error with its place;
//! 2. this file: selection of the thread;
//! 3. `lower`: names to numbers, rules to sections.

pub mod code;
mod lower;
mod model;
mod read;

use tamis_abi::{Action, Arch};
use tamis_diag::json::{Dialect, Reader};
use tamis_diag::{Diagnostic, Severity, SourceId, Sources, Span, suggest};
use tamis_rules::Ruleset;

use crate::front_end::{self, FrontEnd, ParsedPolicy};
use crate::loader::Loader;
use crate::option::{LanguageOption, OptionForm};
use crate::{Parsed, limits};
use model::Filter;

/// The language in the registry.
pub(crate) static FRONT_END: FrontEnd = FrontEnd {
    name: "firecracker",
    title: "a Firecracker filter",
    plural: "Firecracker filters",
    about: "Firecracker's JSON, the format of the seccompiler library",
    extensions: &["json"],
    codes: code::FIRECRACKER,
    options: &[&THREAD],
    uses_kernel: false,
    has_separate_default: true,
    ignores_byte_order_mark: false,
    recognises,
    parse: parse_for_any,
};

static THREAD: LanguageOption = LanguageOption {
    name: "thread",
    help: "The thread whose filter to use, if the file has several",
    default: "the only one",
    form: OptionForm::Text {
        placeholder: "NAME",
        set: |options, name| {
            options.firecracker.thread = Some(name.to_owned());
            Ok(())
        },
    },
};

static DIALECT: Dialect = Dialect {
    document: "a file of filters",
    max_bytes: limits::MAX_SOURCE_BYTES,
    max_depth: limits::MAX_NESTING,
    too_large: crate::code::FILE_TOO_LARGE,
    syntax: code::FIRECRACKER_JSON,
    nesting: code::FIRECRACKER_JSON,
    duplicate_key: code::FIRECRACKER_DUPLICATE,
    wrong_type: code::FIRECRACKER_TYPE,
    range: code::FIRECRACKER_RANGE,
    missing: code::FIRECRACKER_MEMBER,
    unknown_name: code::FIRECRACKER_NAME,
    unknown_member: code::FIRECRACKER_MEMBER,
    unknown_member_label: "the seccompiler library refuses this",
};

/// The options of the language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The thread of the selected filter; required if there are several.
    pub thread: Option<String>,
}

/// Options of parsing a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirecrackerOptions {
    /// The architectures of the filter. The library compiles for one, of `x86_64`, `aarch64` and `riscv64`; with
    /// several, each has the rules.
    pub arches: Vec<Arch>,
    /// The thread of the selected filter; required if there are several.
    pub thread: Option<String>,
    /// Treat warnings as errors.
    pub strict: bool,
}

impl FirecrackerOptions {
    /// The only filter of a file, for one architecture, not strict.
    pub fn new(arch: Arch) -> FirecrackerOptions {
        FirecrackerOptions {
            arches: vec![arch],
            thread: None,
            strict: false,
        }
    }
}

/// Whether a text resembles such a file: an object with the actions of a filter.
pub(crate) fn recognises(text: &str) -> bool {
    let is_object = text.trim_start().starts_with('{');
    let has = |key: &str| text.contains(key);
    let actions = [
        "\"mismatch_action\"",
        "\"match_action\"",
        "\"default_action\"",
        "\"filter_action\"",
    ];
    is_object && (actions.into_iter().any(has) || has("\"filter\"") && has("\"syscall\""))
}

fn parse_for_any(
    sources: &mut Sources,
    source: SourceId,
    _: &mut dyn Loader,
    common: &front_end::ParseOptions,
) -> ParsedPolicy {
    let options = FirecrackerOptions {
        arches: common.arches_one_by_one(),
        thread: common.firecracker.thread.clone(),
        strict: common.strict,
    };
    parse(sources, source, &options).into()
}

/// Parses the filter of one thread. As in the library, errors in the filters of other threads are errors too.
///
/// ```
/// use tamis_abi::{Action, Arch};
/// use tamis_policy::firecracker;
///
/// let mut sources = tamis_diag::Sources::new();
/// let text = r#"{"vmm": {"mismatch_action": "trap", "match_action": "allow", "filter": [
///     {"syscall": "read"},
///     {"syscall": "ioctl", "args": [{"index": 1, "type": "dword", "op": "eq", "val": 44672}]}]}}"#;
/// let source = sources.add("vmm.json", text);
/// let parsed = firecracker::parse(&sources, source, &firecracker::FirecrackerOptions::new(Arch::X86_64));
/// let ruleset = parsed.ruleset.expect("it has no mistakes");
/// assert_eq!(ruleset.sections()[0].default.ret(), 0x30000);
/// ```
#[expect(
    clippy::missing_panics_doc,
    reason = "architectures are collected without repetition"
)]
pub fn parse(sources: &Sources, source: SourceId, options: &FirecrackerOptions) -> Parsed {
    let text = &sources.get(source).text;
    // Input that the library rejects is an error, strict or not.
    let mut reader = Reader::new(&DIALECT, source, true);
    let Some(document) = reader.parse(text) else {
        return Parsed::new(None, reader.diagnostics);
    };
    let filters = read::filters(&mut reader, document.root(), &options.arches);
    let mut diagnostics = reader.diagnostics;
    if !diagnostics.is_empty() {
        return finish(None, diagnostics, options.strict);
    }
    let start = Span::new(source, 0, 0);
    let chosen = chosen(&filters, options.thread.as_deref(), start);
    let filter = chosen
        .map_err(|diagnostic| diagnostics.push(*diagnostic))
        .ok();
    let filter = filter.filter(|filter| {
        let count = filter.rules.len() * options.arches.len();
        if count > limits::MAX_RULES {
            let message = format!(
                "the filter has {count} rules, more than {}",
                limits::MAX_RULES
            );
            let diagnostic = Diagnostic::error(code::FIRECRACKER_LIMIT, message);
            diagnostics.push(diagnostic.label(start, "in this file"));
        }
        count <= limits::MAX_RULES
    });
    let ruleset = filter.map(|filter| {
        let sections = lower::sections(filter, &options.arches, sources, &mut diagnostics);
        Ruleset::new(sections, Action::KILL_PROCESS).expect("no architecture twice")
    });
    finish(ruleset, diagnostics, options.strict)
}

/// The filter of the selected thread, or the error.
fn chosen<'f, 't>(
    filters: &'f [Filter<'t>],
    thread: Option<&str>,
    start: Span,
) -> Result<&'f Filter<'t>, Box<Diagnostic>> {
    let names: Vec<&str> = filters.iter().map(|filter| filter.thread).collect();
    let listed = names.join(", ");
    let thread_error = |message| Diagnostic::error(code::FIRECRACKER_THREAD, message);
    let diagnostic = match thread {
        _ if names.is_empty() => thread_error("the file has no filter".to_owned())
            .label(start, "expected an object with a member for each thread"),
        None if names.len() == 1 => return Ok(&filters[0]),
        None => thread_error(format!("the file has filters for {} threads", names.len()))
            .label(start, format!("they are {listed}"))
            .help(format!("choose one, such as `--thread {}`", names[0])),
        Some(wanted) => {
            if let Some(found) = filters.iter().find(|filter| filter.thread == wanted) {
                return Ok(found);
            }
            let near = suggest::nearest(wanted, names.iter().copied());
            thread_error(format!("the file has no filter for a thread `{wanted}`"))
                .label(start, format!("the threads are {listed}"))
                .help(match near {
                    Some(near) => format!("did you mean `--thread {near}`?"),
                    None => "choose one of these".to_owned(),
                })
        }
    };
    Err(Box::new(diagnostic))
}

/// Errors first, so that the limit doesn't cut them off.
fn finish(ruleset: Option<Ruleset>, mut diagnostics: Vec<Diagnostic>, strict: bool) -> Parsed {
    for diagnostic in &mut diagnostics {
        if strict {
            diagnostic.severity = Severity::Error;
        }
    }
    diagnostics.sort_by_key(|diagnostic| !diagnostic.is_error());
    diagnostics.truncate(limits::MAX_DIAGNOSTICS);
    Parsed::new(ruleset, diagnostics)
}
