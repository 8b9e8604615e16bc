//! The registry of policy languages: what each is called, how it is recognised, how it is read.
//!
//! A caller that takes a policy in any language - the command line - knows this table and no front end
//! by name. To add a language, write its folder and add its [`FrontEnd`] to [`ALL`]. What it needs to
//! be told beyond the architectures is a member of [`ParseOptions`], and declared in [`FrontEnd::options`] for callers
//! that know names and texts only.

use std::path::Path;

use tamis_abi::{Arch, KernelVersion};
use tamis_diag::{Diagnostic, SourceId, Sources, Span, code};

use crate::installation::Installation;
use crate::loader::Loader;
use crate::option::LanguageOption;
use crate::selection::Selection;
use crate::{Parsed, firecracker, kafel, minijail, oci, spo, systemd, tamis};

/// All languages. Where a text looks like several, or a file could be in several and looks like none,
/// the first counts.
pub static ALL: [&FrontEnd; 7] = [
    &tamis::FRONT_END,
    &systemd::FRONT_END,
    &oci::FRONT_END,
    &spo::FRONT_END,
    &firecracker::FRONT_END,
    &minijail::FRONT_END,
    &kafel::FRONT_END,
];

/// A policy language.
#[derive(Debug)]
pub struct FrontEnd {
    /// Its name for `--from`: lower case, one word.
    pub name: &'static str,
    /// What a policy in it is called, with its article: `an OCI profile`.
    pub title: &'static str,
    /// The same for several: `OCI profiles`.
    pub plural: &'static str,
    /// What it is, in a few words, for a list of kinds.
    pub about: &'static str,
    /// The extensions of its files, without the dot.
    pub extensions: &'static [&'static str],
    /// The options of the language, in the order of a help.
    pub options: &'static [&'static LanguageOption],
    /// Whether the meaning of a policy depends on [`ParseOptions::kernel`].
    pub uses_kernel: bool,
    /// Whether the programs that read the language ignore a byte order mark before the text.
    pub ignores_byte_order_mark: bool,
    /// Whether a text looks as if it were written in it. Mistakes in the text should not matter.
    pub recognises: fn(&str) -> bool,
    /// Reads a policy: the source, and what it includes by the loader.
    pub parse: fn(&mut Sources, SourceId, &mut dyn Loader, &ParseOptions) -> ParsedPolicy,
}

impl PartialEq for FrontEnd {
    fn eq(&self, other: &FrontEnd) -> bool {
        self.name == other.name
    }
}

impl Eq for FrontEnd {}

impl FrontEnd {
    /// The language's option of this name.
    pub fn option(&self, name: &str) -> Option<&'static LanguageOption> {
        self.options
            .iter()
            .copied()
            .find(|option| option.name == name)
    }
}

/// What a caller may say about a policy in any language; each front end takes what concerns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseOptions {
    /// The architectures that were asked for, the native one first; none if the policy is to say.
    pub asked_arches: Vec<Arch>,
    /// The architecture of the machine.
    pub native_arch: Arch,
    /// Whether a policy that states its architectures is read for those, whatever was asked for.
    pub stated_arches_win: bool,
    /// Whether warnings about the meaning are errors.
    pub strict: bool,
    /// The kernel's version; `None` stands for a new one.
    pub kernel: Option<KernelVersion>,
    /// The options of profiles of container runtimes.
    pub oci: oci::Settings,
    /// The options of Firecracker's filters.
    pub firecracker: firecracker::Settings,
    /// The options of minijail's parsers.
    pub minijail: minijail::Settings,
    /// The release of systemd.
    pub systemd: systemd::Settings,
}

impl ParseOptions {
    /// The defaults for a machine of this architecture.
    pub fn new(native_arch: Arch) -> ParseOptions {
        ParseOptions {
            asked_arches: Vec::new(),
            native_arch,
            stated_arches_win: false,
            strict: false,
            kernel: None,
            oci: oci::Settings::default(),
            firecracker: firecracker::Settings::default(),
            minijail: minijail::Settings::default(),
            systemd: systemd::Settings::default(),
        }
    }

    /// The architecture that a policy is for if it is for one: the first that was asked for, else the
    /// native one.
    pub fn native(&self) -> Arch {
        self.asked_arches
            .first()
            .copied()
            .unwrap_or(self.native_arch)
    }

    /// The architectures of a policy in a language that is about one at a time: those that were asked
    /// for, else the native one.
    pub fn arches_one_by_one(&self) -> Vec<Arch> {
        match self.asked_arches.as_slice() {
            [] => vec![self.native()],
            asked => asked.to_vec(),
        }
    }
}

/// What a front end made of a policy, with what concerns others than the ruleset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedPolicy {
    /// The ruleset and the diagnostics.
    pub parsed: Parsed,
    /// What it wants of whoever installs its filter.
    pub installation: Installation,
    /// The texts that say how often calls are made; they are among the sources.
    pub frequencies: Vec<SourceId>,
    /// Whether its architectures follow from the text, the language or the caller; if not, it is for the machine's.
    pub states_arches: bool,
    /// What its entries depend on beside the text; `None` if on nothing.
    pub selection: Option<Selection>,
}

impl From<Parsed> for ParsedPolicy {
    fn from(parsed: Parsed) -> ParsedPolicy {
        ParsedPolicy {
            parsed,
            installation: Installation::default(),
            frequencies: Vec::new(),
            states_arches: true,
            selection: None,
        }
    }
}

/// The language of a file by its extension, if that is one of ours. If several languages share the
/// extension, the looks of the text decide.
pub fn of_file(name: &str, text: &str) -> Option<&'static FrontEnd> {
    let extension = Path::new(name).extension()?.to_str()?;
    let owners = || {
        let has_extension = |front_end: &&FrontEnd| front_end.extensions.contains(&extension);
        ALL.into_iter().filter(has_extension)
    };
    let recognised = owners().find(|front_end| (front_end.recognises)(text));
    recognised.or_else(|| owners().next())
}

/// What to say of a text that was read as something else than it is.
pub fn mistaken(source: SourceId, given_as: &str, is: &str, help: &str) -> Diagnostic {
    let start = Span::new(source, 0, 0);
    Diagnostic::error(code::WRONG_KIND, format!("this is not {given_as}"))
        .label(start, format!("it looks like {is}"))
        .help(help)
}

/// The first word of a text behind comments after `#` and blank lines.
pub fn first_word(text: &str) -> &str {
    let line = first_line(text);
    line.split(char::is_whitespace).next().unwrap_or("")
}

/// The first line of a text that is neither blank nor a comment after `#`, without the blanks around it.
pub(crate) fn first_line(text: &str) -> &str {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'))
        .unwrap_or("")
}
