//! The registry of policy languages: their names, their detection and their parsers.
//!
//! A caller that accepts policies in any language, such as the command line, uses this table and no front end by name.
//! To add a language, write its folder and add its [`FrontEnd`] to [`ALL`]. Options beyond the architectures are
//! members of [`ParseOptions`], and declared in [`FrontEnd::options`] for callers with names and texts only.

use std::path::Path;

use tamis_abi::{Arch, KernelVersion};
use tamis_diag::{Code, Diagnostic, SourceId, Sources, Span};

use crate::code;
use crate::installation::Installation;
use crate::loader::Loader;
use crate::option::LanguageOption;
use crate::selection::Selection;
use crate::{Parsed, tamis};
#[cfg(feature = "languages")]
use crate::{firecracker, kafel, lxc, minijail, nsjail, oci, snap, spo, systemd};

/// How many languages there are.
const COUNT: usize = if cfg!(feature = "languages") { 10 } else { 1 };

/// All languages. The first one has priority if a text resembles several, or if several share the extension and the
/// text resembles none.
pub static ALL: [&FrontEnd; COUNT] = [
    &tamis::FRONT_END,
    #[cfg(feature = "languages")]
    &systemd::FRONT_END,
    #[cfg(feature = "languages")]
    &oci::FRONT_END,
    #[cfg(feature = "languages")]
    &spo::FRONT_END,
    #[cfg(feature = "languages")]
    &firecracker::FRONT_END,
    #[cfg(feature = "languages")]
    &minijail::FRONT_END,
    #[cfg(feature = "languages")]
    &nsjail::FRONT_END,
    #[cfg(feature = "languages")]
    &kafel::FRONT_END,
    #[cfg(feature = "languages")]
    &lxc::FRONT_END,
    #[cfg(feature = "languages")]
    &snap::FRONT_END,
];

/// A policy language.
#[derive(Debug)]
pub struct FrontEnd {
    /// Its name for `--from`: lower case, one word.
    pub name: &'static str,
    /// A description of a policy with its article: `an OCI profile`.
    pub title: &'static str,
    /// The description in the plural: `OCI profiles`.
    pub plural: &'static str,
    /// A short description for a list of kinds.
    pub about: &'static str,
    /// The extensions of its files, without the dot.
    pub extensions: &'static [&'static str],
    /// The codes of its diagnostics.
    pub codes: &'static [Code],
    /// The options of the language, in the order of the help.
    pub options: &'static [&'static LanguageOption],
    /// Whether the meaning of a policy depends on [`ParseOptions::kernel`].
    pub uses_kernel: bool,
    /// Whether the rules of a policy mean the same without its default, so that other policies can contain them.
    pub has_separate_default: bool,
    /// Whether the programs that read the language ignore a byte order mark before the text.
    pub ignores_byte_order_mark: bool,
    /// Whether a text resembles the language, mistakes included.
    pub recognises: fn(&str) -> bool,
    /// Parses a policy: the source, and the files that it includes.
    pub parse: fn(&mut Sources, SourceId, &mut dyn Loader, &ParseOptions) -> ParsedPolicy,
}

impl PartialEq for FrontEnd {
    fn eq(&self, other: &FrontEnd) -> bool {
        self.name == other.name
    }
}

impl Eq for FrontEnd {}

impl FrontEnd {
    /// The language's option with this name.
    pub fn option(&self, name: &str) -> Option<&'static LanguageOption> {
        self.options
            .iter()
            .copied()
            .find(|option| option.name == name)
    }
}

/// Options of parsing a policy in any language; each front end uses the relevant ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseOptions {
    /// The requested architectures, the native one first; empty to use those of the policy.
    pub asked_arches: Vec<Arch>,
    /// The architecture of the machine.
    pub native_arch: Arch,
    /// Whether the architectures that a policy states override the requested ones.
    pub stated_arches_win: bool,
    /// Whether warnings about the meaning are errors.
    pub strict: bool,
    /// The kernel's version; `None` means a new one.
    pub kernel: Option<KernelVersion>,
    /// The options of policies in the tamis language.
    pub tamis: tamis::Settings,
    /// The options of profiles of container runtimes.
    #[cfg(feature = "languages")]
    pub oci: oci::Settings,
    /// The options of Firecracker's filters.
    #[cfg(feature = "languages")]
    pub firecracker: firecracker::Settings,
    /// The options of minijail's parsers.
    #[cfg(feature = "languages")]
    pub minijail: minijail::Settings,
    /// The options of SeccompProfile resources.
    #[cfg(feature = "languages")]
    pub spo: spo::Settings,
    /// The release of systemd.
    #[cfg(feature = "languages")]
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
            tamis: tamis::Settings::default(),
            #[cfg(feature = "languages")]
            oci: oci::Settings::default(),
            #[cfg(feature = "languages")]
            firecracker: firecracker::Settings::default(),
            #[cfg(feature = "languages")]
            minijail: minijail::Settings::default(),
            #[cfg(feature = "languages")]
            spo: spo::Settings::default(),
            #[cfg(feature = "languages")]
            systemd: systemd::Settings::default(),
        }
    }

    /// These options for a caller that takes the [explicit rules](crate::explicit) alone: they include those with the
    /// default action.
    pub fn for_explicit_rules(self) -> ParseOptions {
        ParseOptions {
            #[cfg(feature = "languages")]
            oci: oci::Settings {
                keeps_default_entries: true,
                ..self.oci
            },
            ..self
        }
    }

    /// The architecture of a policy for a single one: the first requested, otherwise the native one.
    pub fn native(&self) -> Arch {
        self.asked_arches
            .first()
            .copied()
            .unwrap_or(self.native_arch)
    }

    /// The architectures of a policy in a language for single architectures: the requested ones, otherwise the native
    /// one.
    pub fn arches_one_by_one(&self) -> Vec<Arch> {
        match self.asked_arches.as_slice() {
            [] => vec![self.native()],
            asked => asked.to_vec(),
        }
    }
}

/// The result of a front end: the parsed policy, with data besides the ruleset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedPolicy {
    /// The ruleset and the diagnostics.
    pub parsed: Parsed,
    /// The requirements on the installer of the filter.
    pub installation: Installation,
    /// The texts with counts of calls; they are among the sources.
    pub frequencies: Vec<SourceId>,
    /// Whether the text, the language or the caller state the architectures; otherwise the policy is for the native
    /// one.
    pub states_arches: bool,
    /// The kernel whose calls the policy has considered, if it states one.
    pub known_until: Option<KernelVersion>,
    /// External conditions that select entries; `None` without any.
    pub selection: Option<Selection>,
}

impl From<Parsed> for ParsedPolicy {
    fn from(parsed: Parsed) -> ParsedPolicy {
        ParsedPolicy {
            parsed,
            installation: Installation::default(),
            frequencies: Vec::new(),
            states_arches: true,
            known_until: None,
            selection: None,
        }
    }
}

/// The language of a file with one of our extensions. If several languages share the extension, the content decides.
pub fn of_file(name: &str, text: &str) -> Option<&'static FrontEnd> {
    let extension = Path::new(name).extension()?.to_str()?;
    let owners = || {
        let has_extension = |front_end: &&FrontEnd| front_end.extensions.contains(&extension);
        ALL.into_iter().filter(has_extension)
    };
    let recognised = owners().find(|front_end| (front_end.recognises)(text));
    recognised.or_else(|| owners().next())
}

/// The error for a text that was parsed as another kind.
pub fn mistaken(source: SourceId, given_as: &str, is: &str, help: &str) -> Diagnostic {
    let start = Span::new(source, 0, 0);
    Diagnostic::error(code::WRONG_KIND, format!("this is not {given_as}"))
        .label(start, format!("it looks like {is}"))
        .help(help)
}

/// The first word of a text after comments with `#` and blank lines.
pub fn first_word(text: &str) -> &str {
    let line = first_line(text);
    line.split(char::is_whitespace).next().unwrap_or("")
}

/// The first line of a text that is neither blank nor a comment with `#`, trimmed.
pub(crate) fn first_line(text: &str) -> &str {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'))
        .unwrap_or("")
}
