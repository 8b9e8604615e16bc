//! Minijail's policies: one line per system call, with conditions on its arguments.
//!
//! ```text
//! @include ./common.policy
//! read: 1
//! ioctl: arg1 == TCGETS || arg1 in 0x3
//! {open, openat}: return ENOENT
//! ```
//!
//! Minijail has two readers of the language: the compile tool `compile_seccomp_policy.py`, and the
//! library behind `minijail0 -S`, which knows less and gives one kind of line the opposite meaning.
//! [`Dialect`] says whose meaning counts. The stages, one file each: `lexer` and `parser` make the
//! `ast`; `include` puts files together; `library` knows what the older reader lacks; `value` and
//! `lower` make the ruleset.

mod arch;
mod ast;
mod include;
mod lexer;
mod library;
mod lower;
mod parser;
mod value;

use std::str::FromStr;

use tamis_abi::{Action, ActionKind, Arch, errno};
use tamis_diag::{Diagnostic, SourceId, Sources, code};
use tamis_rules::{Ruleset, Section};

use crate::Parsed;
use crate::front_end::{self, FrontEnd, ParsedPolicy};
use crate::literal::c_integer;
use crate::loader::Loader;
use crate::sink::Sink;
use ast::StatementKind;
use include::Expanded;

/// The language in the registry.
pub(crate) static FRONT_END: FrontEnd = FrontEnd {
    name: "minijail",
    title: "a minijail policy",
    plural: "minijail policies",
    about: "A minijail policy",
    extensions: &["policy"],
    options: &["--dialect", "--default-action", "--use-kill-process"],
    recognises: |text| parser::recognises(front_end::first_line(text)),
    parse: |sources, root, loader, wishes| {
        let options = Options {
            arches: wishes.arches_one_by_one(),
            settings: wishes.minijail.clone(),
            strict: wishes.strict,
        };
        parse(sources, root, loader, &options)
    },
};

/// Which of minijail's readers decides what a policy means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The library: `minijail0 -S`.
    C,
    /// The compile tool, `compile_seccomp_policy.py`.
    Python,
}

/// What minijail's readers are told beside the policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The dialect; unless given, that of the compile tool, with a warning where it matters.
    pub dialect: Option<Dialect>,
    /// The answer where no line applies, instead of the policy's.
    pub default_action: Option<DefaultAction>,
    /// Whether `kill` ends the process and not only the thread.
    pub kill_process: bool,
}

/// An action that replaces the default of a policy; unlike `@default` it may be any.
///
/// ```
/// use tamis_abi::Action;
/// use tamis_policy::minijail::DefaultAction;
/// assert_eq!("log".parse(), Ok(DefaultAction::Plain(Action::from_ret(0x7ffc_0000))));
/// assert_eq!("return EPERM".parse(), Ok(DefaultAction::Errno("EPERM".to_owned())));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultAction {
    /// What [`Settings::kill_process`] says.
    Kill,
    /// This.
    Plain(Action),
    /// The errno with this name, whose number depends on the architecture.
    Errno(String),
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

/// How to read a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The architectures of the filter. Minijail makes filters for one; several have the rules that the
    /// policy has for each.
    pub arches: Vec<Arch>,
    /// What minijail is told beside the policy.
    pub settings: Settings,
    /// Whether warnings are errors.
    pub strict: bool,
}

impl Options {
    /// As the compile tool is run without options, for one architecture, not strict.
    pub fn new(arch: Arch) -> Options {
        Options {
            arches: vec![arch],
            settings: Settings::default(),
            strict: false,
        }
    }
}

/// Reads a policy: `root`, which is among the sources, and the files that it includes, which are added.
///
/// ```
/// use tamis_abi::{Action, Arch, SeccompData};
/// use tamis_policy::{loader::NoIncludes, minijail};
/// let mut sources = tamis_diag::Sources::new();
/// let root = sources.add("a.policy", "read: 1\nwrite: arg0 == 1 || arg0 == 2\n");
/// let options = minijail::Options::new(Arch::X86_64);
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
    options: &Options,
) -> ParsedPolicy {
    let mut sink = Sink::new(options.strict);
    let dialect = options.settings.dialect.unwrap_or(Dialect::Python);
    let policy = include::expand(sources, root, loader, dialect, &mut sink);
    if options.settings.dialect.is_none() {
        warn_of_dialect(&policy, &mut sink);
    }
    let mut lowering = lower::Lowering {
        sources,
        root,
        policy: &policy,
        dialect,
        settings: &options.settings,
        sink: &mut sink,
    };
    let mut sections: Vec<Section> = Vec::new();
    for arch in &options.arches {
        if sections.iter().all(|section| section.arch != *arch) {
            sections.push(lowering.section(*arch));
        }
    }
    let bad_arch = lowering.kill();
    // Minijail checks the audit value alone, which x32 shares, and compares numbers.
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

/// Warns of lines that the two readers take for opposites, unless only one of them can read the policy.
fn warn_of_dialect(policy: &Expanded, sink: &mut Sink) {
    if !policy.is_for_library {
        return;
    }
    for statement in &policy.statements {
        let StatementKind::Filters { filters, .. } = &statement.kind else {
            continue;
        };
        let both = filters.list.iter().find_map(|filter| {
            let action = filter.action.as_ref()?;
            filter
                .condition
                .is_some()
                .then_some((filter.span, action.span))
        });
        if let Some((filter, action)) = both {
            let diagnostic = Diagnostic::warning(
                code::MINIJAIL_DIALECT,
                "minijail's two readers take this line for opposites",
            )
            .label(
                filter,
                "read here as: calls that meet the condition get this answer",
            )
            .label(
                action,
                "to minijail's library it is the answer to all others",
            )
            .help("say which is meant: `--dialect python` or `--dialect c`");
            sink.report(diagnostic);
        }
    }
}
