//! Minijail's policies: one line per system call, with conditions on its arguments.
//!
//! ```text
//! @include ./common.policy
//! read: 1
//! ioctl: arg1 == TCGETS || arg1 in 0x3
//! {open, openat}: return ENOENT
//! ```
//!
//! Minijail has two parsers of the language: the compile tool `compile_seccomp_policy.py`, and the library behind
//! `minijail0 -S`, which supports less and gives one kind of line the opposite meaning. [`Dialect`] selects the
//! meaning. The stages, one file each: `lexer` and `parser` build the `ast`; `include` merges files; `library`
//! lists features missing from the older parser; `table` has the names that the caller supplies; `value` and
//! `lower` build the ruleset.

mod arch;
mod ast;
pub mod code;
mod include;
mod lexer;
mod library;
mod lower;
mod parser;
mod table;
mod value;

use std::str::FromStr;

use tamis_abi::{Action, ActionKind, Arch, errno};
use tamis_diag::{Diagnostic, SourceId, Sources, Span};
use tamis_rules::{Ruleset, Section};

use crate::Parsed;
use crate::front_end::{self, FrontEnd, ParsedPolicy};
use crate::literal::c_integer;
use crate::loader::Loader;
use crate::option::{LanguageOption, OptionChoice, OptionForm};
use crate::sink::Sink;
use ast::StatementKind;
use include::Expanded;
use table::Table;

/// The language in the registry.
pub(crate) static FRONT_END: FrontEnd = FrontEnd {
    name: "minijail",
    title: "a minijail policy",
    plural: "minijail policies",
    about: "A minijail policy",
    extensions: &["policy"],
    codes: code::MINIJAIL,
    options: &[
        &DIALECT,
        &DEFAULT_ACTION,
        &DENYLIST,
        &USE_KILL_PROCESS,
        &ARCH_JSON,
    ],
    uses_kernel: false,
    has_separate_default: true,
    ignores_byte_order_mark: false,
    recognises: |text| parser::recognises(front_end::first_line(text)),
    parse: |sources, root, loader, common| {
        let is_said = !common.asked_arches.is_empty() || common.minijail.arch_json.is_none();
        let options = MinijailOptions {
            arches: match is_said {
                true => common.arches_one_by_one(),
                false => Vec::new(),
            },
            settings: common.minijail.clone(),
            strict: common.strict,
        };
        parse(sources, root, loader, &options)
    },
};

static DIALECT: LanguageOption = LanguageOption {
    name: "dialect",
    help: "The dialect, which decides the meaning of lines such as `arg0 == 1; return EPERM`",
    default: "python, with a warning",
    form: OptionForm::Choice(&[
        OptionChoice {
            name: "c",
            help: "The library, `minijail0 -S`: calls that satisfy the condition are allowed, others get the \
                   error",
            set: |options| options.minijail.dialect = Some(Dialect::C),
        },
        OptionChoice {
            name: "python",
            help: "The tool compile_seccomp_policy.py: calls that satisfy the condition get the error",
            set: |options| options.minijail.dialect = Some(Dialect::Python),
        },
    ]),
};

static DEFAULT_ACTION: LanguageOption = LanguageOption {
    name: "default-action",
    help: "The action where no line applies, instead of the policy's: `log`, `return EPERM`",
    default: "that of the policy",
    form: OptionForm::Text {
        placeholder: "ACTION",
        set: |options, text| {
            options.minijail.default_action = Some(text.parse()?);
            Ok(())
        },
    },
};

static DENYLIST: LanguageOption = LanguageOption {
    name: "denylist",
    help: "The policy is a deny list with `@denylist`: calls that it does not name are allowed",
    default: "it is not",
    form: OptionForm::Flag(|options, is_on| options.minijail.denylist = is_on),
};

static USE_KILL_PROCESS: LanguageOption = LanguageOption {
    name: "use-kill-process",
    help: "`kill` kills the process, not only the thread",
    default: "the thread",
    form: OptionForm::Flag(|options, is_on| options.minijail.kill_process = is_on),
};

static ARCH_JSON: LanguageOption = LanguageOption {
    name: "arch-json",
    help: "The compile tool's table of calls, constants and groups, constants.json, instead of the kernel's; \
           it also sets the architecture",
    default: "the kernel's",
    form: OptionForm::File {
        placeholder: "FILE",
        set: |options, table| {
            options.minijail.arch_json = Some(ArchJson {
                name: table.name,
                text: table.text,
            });
        },
    },
};

/// The minijail parser that defines the meaning of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The library: `minijail0 -S`.
    C,
    /// The compile tool, `compile_seccomp_policy.py`.
    Python,
}

/// The options of minijail's parsers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The dialect; by default that of the compile tool, with a warning if the dialects differ.
    pub dialect: Option<Dialect>,
    /// The default action, instead of the policy's.
    pub default_action: Option<DefaultAction>,
    /// Whether `kill` ends the process instead of the thread.
    pub kill_process: bool,
    /// Whether the policy is a deny list. A policy with `@denylist` is an error unless this is set.
    pub denylist: bool,
    /// The table of calls, constants and groups for the compile tool, instead of the kernel's.
    pub arch_json: Option<ArchJson>,
}

/// The table of one architecture: `constants.json`, the argument of the compile tool's `--arch-json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchJson {
    /// The name in diagnostics.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// An action that replaces the default of a policy; unlike in `@default`, every action is allowed.
///
/// ```
/// use tamis_abi::Action;
/// use tamis_policy::minijail::DefaultAction;
/// assert_eq!("log".parse(), Ok(DefaultAction::Plain(Action::from_ret(0x7ffc_0000))));
/// assert_eq!("return EPERM".parse(), Ok(DefaultAction::Errno("EPERM".to_owned())));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultAction {
    /// The action of `kill`, as [`Settings::kill_process`] selects.
    Kill,
    /// This action.
    Plain(Action),
    /// The errno with this name; its number depends on the architecture.
    Errno(String),
}

impl DefaultAction {
    /// Whether no call runs, even with a tracer or supervisor.
    fn always_denies(&self) -> bool {
        match self {
            DefaultAction::Kill | DefaultAction::Errno(_) => true,
            DefaultAction::Plain(action) => matches!(
                action.kind,
                ActionKind::KillProcess
                    | ActionKind::KillThread
                    | ActionKind::Trap
                    | ActionKind::Errno
            ),
        }
    }
}

impl FromStr for DefaultAction {
    type Err = String;

    fn from_str(text: &str) -> Result<DefaultAction, String> {
        let plain = |kind| DefaultAction::Plain(Action::new(kind, 0));
        if let Some(value) = text.strip_prefix("return ") {
            let value = value.trim();
            return match c_integer(value) {
                Ok(number) => u16::try_from(number)
                    .map(|number| DefaultAction::Plain(Action::errno(number)))
                    .map_err(|_| "an errno has 16 bits".to_owned()),
                Err(_) if errno::is_name(value) => Ok(DefaultAction::Errno(value.to_owned())),
                Err(_) => Err("no such errno".to_owned()),
            };
        }
        Ok(match text {
            "allow" => plain(ActionKind::Allow),
            "kill" => DefaultAction::Kill,
            "kill-process" => plain(ActionKind::KillProcess),
            "kill-thread" => plain(ActionKind::KillThread),
            "trap" => plain(ActionKind::Trap),
            "trace" => plain(ActionKind::Trace),
            "log" => plain(ActionKind::Log),
            "user-notify" => plain(ActionKind::Notify),
            _ => {
                let known = "allow, kill, kill-process, kill-thread, trap, trace, log, \
                             user-notify, or `return EPERM`";
                return Err(format!("no such action; there are {known}"));
            }
        })
    }
}

/// Options of parsing a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinijailOptions {
    /// The architectures of the filter. Minijail compiles for one; with several, each has the rules that apply to
    /// it. With a table the architecture is that of the table and may be omitted here.
    pub arches: Vec<Arch>,
    /// The options of minijail's parsers.
    pub settings: Settings,
    /// Treat warnings as errors.
    pub strict: bool,
}

impl MinijailOptions {
    /// The compile tool's defaults, for one architecture, not strict.
    pub fn new(arch: Arch) -> MinijailOptions {
        MinijailOptions {
            arches: vec![arch],
            settings: Settings::default(),
            strict: false,
        }
    }
}

/// Parses a policy: `root`, already in the sources, and the files that it includes, which are added to them.
///
/// ```
/// use tamis_abi::{Action, Arch, SeccompData};
/// use tamis_policy::{loader::NoIncludes, minijail};
/// let mut sources = tamis_diag::Sources::new();
/// let root = sources.add("a.policy", "read: 1\nwrite: arg0 == 1 || arg0 == 2\n");
/// let options = minijail::MinijailOptions::new(Arch::X86_64);
/// let policy = minijail::parse(&mut sources, root, &mut NoIncludes, &options);
/// let ruleset = policy.parsed.ruleset.expect("no errors");
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
    options: &MinijailOptions,
) -> ParsedPolicy {
    let mut sink = Sink::new(options.strict);
    let dialect = options.settings.dialect.unwrap_or(Dialect::Python);
    let Ok(table) = given_table(sources, options, &mut sink) else {
        return Parsed::new(None, sink.into_diagnostics()).into();
    };
    let of_table = table.as_ref().map(|table| [table.arch]);
    let arches = of_table
        .as_ref()
        .map_or(options.arches.as_slice(), |arch| arch);
    let policy = include::expand(sources, root, loader, dialect, &mut sink);
    check_denylist(root, &policy, &options.settings, &mut sink);
    check_dialect(&policy, &options.settings, &mut sink);
    let mut lowering = lower::Lowering {
        sources,
        root,
        policy: &policy,
        dialect,
        settings: &options.settings,
        table: table.as_ref(),
        sink: &mut sink,
    };
    let mut sections: Vec<Section> = Vec::new();
    for arch in arches {
        if sections.iter().all(|section| section.arch != *arch) {
            sections.push(lowering.section(*arch));
        }
    }
    // In a deny list, the compile tool's `kill` is EPERM.
    let bad_arch = match policy.denylist {
        Some(_) => Action::errno(1),
        None => lowering.kill(),
    };
    // Minijail checks only the audit value, which x32 shares with x86_64, and compares numbers.
    let has = |arch| sections.iter().find(|section| section.arch == arch);
    if let Some(native) = has(Arch::X86_64)
        && has(Arch::X32).is_none()
    {
        let default = native.default;
        sections.push(Section {
            arch: Arch::X32,
            rules: Vec::new(),
            default,
        });
    }
    let ruleset = Ruleset::new(sections, bad_arch).expect("no architecture twice");
    ParsedPolicy {
        frequencies: policy.frequencies,
        ..Parsed::new(Some(ruleset), sink.into_diagnostics()).into()
    }
}

/// The table of the options, if any. Errors are reported to the sink.
fn given_table(
    sources: &mut Sources,
    options: &MinijailOptions,
    sink: &mut Sink,
) -> Result<Option<Table>, ()> {
    let Some(given) = &options.settings.arch_json else {
        return Ok(None);
    };
    let source = sources.add(given.name.as_str(), given.text.as_str());
    let start = Span::new(source, 0, 0);
    if options.settings.dialect == Some(Dialect::C) {
        let message = "minijail's library does not use a table";
        let diagnostic = Diagnostic::error(code::MINIJAIL_NOT_IN_DIALECT, message)
            .note("it has the numbers of its build machine")
            .help("omit `--arch-json`, or use `--dialect python`");
        sink.report(diagnostic);
        return Err(());
    }
    let (table, diagnostics) = table::read(sources, source);
    for diagnostic in diagnostics {
        sink.report(diagnostic);
    }
    let table = table.ok_or(())?;
    if let Some(other) = options.arches.iter().find(|arch| **arch != table.arch) {
        let message = format!("the table is for {}, not for {other}", table.arch);
        let diagnostic = Diagnostic::error(code::MINIJAIL_TABLE, message)
            .label(start, "this table")
            .help("omit `--arch`, or give the table of that architecture");
        sink.report(diagnostic);
        return Err(());
    }
    Ok(Some(table))
}

/// Reports a deny list without `--denylist`, or the option without a deny list: the compile tool's option and the
/// policy must agree. Other errors have priority, because the error may be in the `@denylist` line, or the dialect may
/// lack it.
fn check_denylist(root: SourceId, policy: &Expanded, settings: &Settings, sink: &mut Sink) {
    let diagnostic = match (policy.denylist, settings.denylist) {
        _ if sink.has_failed() => return,
        (Some(denylist), false) => {
            Diagnostic::error(code::MINIJAIL_DENYLIST, "a deny list without `--denylist`")
                .label(denylist, "it allows every call that it does not name")
                .help("use `--denylist` if this is intended")
        }
        (None, true) => {
            let start = Span::new(root, 0, 0);
            Diagnostic::error(code::MINIJAIL_DENYLIST, "the policy is not a deny list")
                .label(start, "it has no `@denylist`")
                .help("omit `--denylist`")
        }
        _ => return,
    };
    sink.report(diagnostic);
}

/// Reports policies with an ambiguous dialect, and features that the selected dialect lacks.
fn check_dialect(policy: &Expanded, settings: &Settings, sink: &mut Sink) {
    match (settings.dialect, &settings.default_action) {
        (Some(Dialect::C), Some(_)) => {
            let message = "minijail's library has no default action";
            let diagnostic = Diagnostic::error(code::MINIJAIL_NOT_IN_DIALECT, message)
                .note("it always kills calls without a line")
                .help("omit `--default-action`, or use `--dialect python`");
            sink.report(diagnostic);
        }
        (None, default) if policy.is_for_library => {
            let is_safe = default.as_ref().is_none_or(DefaultAction::always_denies);
            report_opposites(policy, is_safe, sink);
        }
        _ => {}
    }
}

/// Reports lines with opposite meanings in the two dialects. The compile tool's meaning is safe if the default
/// denies: the line then allows nothing.
fn report_opposites(policy: &Expanded, is_safe: bool, sink: &mut Sink) {
    for statement in &policy.statements {
        let StatementKind::Filters { filters, .. } = &statement.kind else {
            continue;
        };
        let both = filters.list.iter().find_map(|filter| {
            let action = filter.action.as_ref()?;
            let has_both = filter.condition.is_some();
            has_both.then_some((filter.span, action.span))
        });
        let Some((filter, action)) = both else {
            continue;
        };
        let message = "this line has opposite meanings in minijail's two dialects";
        let diagnostic = match is_safe {
            true => Diagnostic::warning(code::MINIJAIL_DIALECT, message),
            false => Diagnostic::error(code::MINIJAIL_DIALECT, message)
                .note("the default action executes calls, so neither meaning is the safe one"),
        };
        let diagnostic = diagnostic
            .label(
                filter,
                "parsed here as: calls that satisfy the condition get this action",
            )
            .label(
                action,
                "in minijail's library all other calls get this action",
            )
            .help("select the meaning: `--dialect python` or `--dialect c`");
        sink.report(diagnostic);
    }
}
