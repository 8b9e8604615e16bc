//! Seccomp profiles of container runtimes and engines: the `linux.seccomp` object of the OCI runtime specification,
//! and the extended form from which Docker, containerd and Podman select a profile.
//!
//! The meaning is the deployed one: that of the program that runc or crun build with libseccomp, not that of the
//! specification. Where these differ (conditions that become alternatives, entries that replace each other,
//! arguments of `socketcall`), the ruleset follows libseccomp 2.6, and a warning reports it. The stages, each a
//! module:
//!
//! 1. `json`, `read`: text to a checked `model`, every error with its place;
//! 2. `select`: the engine's choice of architectures and entries;
//! 3. `clause`: entries to conjunctions of conditions;
//! 4. `lower`: names to numbers, clauses to [libseccomp's rules](tamis_scmp) or, on demand, to those of the text, these
//!    to sections; `looser` finds calls that libseccomp's grant and the entries do not;
//! 5. `enosys`: the action of unknown numbers.

mod clause;
pub mod code;
mod enosys;
mod flavour;
mod json;
mod looser;
mod lower;
mod model;
pub mod names;
mod read;
mod runtimes;
mod select;
mod text;

use tamis_abi::{Action, Arch, KernelVersion};
use tamis_diag::document::Object;
use tamis_diag::json::Reader;
use tamis_diag::{Diagnostic, SourceId, Sources, suggest};
use tamis_rules::Ruleset;

use crate::front_end::{self, FrontEnd, ParsedPolicy};
use crate::installation::Installation;
use crate::loader::Loader;
use crate::near::nearest_call;
use crate::option::{LanguageOption, OptionChoice, OptionForm};
use crate::selection::Selection;
use crate::{Parsed, firecracker, limits, spo};
pub(crate) use flavour::{Flavour, OPERATOR};
use model::{Entry, Profile};
pub use names::{CAPABILITIES, capability};

/// The language in the registry.
pub static FRONT_END: FrontEnd = FrontEnd {
    name: "oci",
    title: "an OCI profile",
    plural: "OCI profiles",
    about: "An OCI or Docker seccomp profile, or a runtime configuration that contains one",
    extensions: &["json"],
    codes: code::OCI,
    options: &[&CAP, &ENOSYS_TAIL, &NATIVE_ONLY, &TEXT],
    uses_kernel: true,
    has_separate_default: true,
    ignores_byte_order_mark: false,
    recognises,
    parse: parse_for_any,
};

static CAP: LanguageOption = LanguageOption {
    name: "cap",
    help: "A capability of the container, such as SYS_ADMIN or CAP_SYS_ADMIN; an empty text for none at all",
    default: "Docker's fourteen",
    form: OptionForm::List {
        placeholder: "CAP",
        add: |options, name| {
            match name {
                None => options.oci.capabilities = Some(Vec::new()),
                Some(name) => {
                    let capability = known_capability(name)?;
                    options
                        .oci
                        .capabilities
                        .get_or_insert_default()
                        .push(capability);
                }
            }
            Ok(())
        },
    },
};

/// Shared with the resources of Kubernetes.
pub(crate) static ENOSYS_TAIL: LanguageOption = LanguageOption {
    name: "enosys-tail",
    help: "Which unknown numbers get ENOSYS",
    default: "none",
    form: OptionForm::Choice(&[
        OptionChoice {
            name: "none",
            help: "None, as libseccomp",
            set: |options| options.oci.enosys_tail = EnosysTail::None,
        },
        OptionChoice {
            name: "runc",
            help: "Those above the largest number that the profile names, as runc",
            set: |options| options.oci.enosys_tail = EnosysTail::Runc,
        },
        OptionChoice {
            name: "table",
            help: "Those above the largest known number of the architecture",
            set: |options| options.oci.enosys_tail = EnosysTail::Table,
        },
    ]),
};

/// Shared with the resources of Kubernetes.
pub(crate) static NATIVE_ONLY: LanguageOption = LanguageOption {
    name: "native-only",
    help: "Leave out the architectures that the profile adds to the native one; not with several `--arch`",
    default: "all of the profile's",
    form: OptionForm::Flag(|options, is_on| options.oci.is_native_only = is_on),
};

/// Shared with the resources of Kubernetes.
pub(crate) static TEXT: LanguageOption = LanguageOption {
    name: "text",
    help: "Take every entry as it is written: all its conditions, and the strictest of the entries that match",
    default: "what libseccomp makes of the entries",
    form: OptionForm::Flag(|options, is_on| {
        options.oci.reading = match is_on {
            true => Reading::Text,
            false => Reading::Libseccomp,
        };
    }),
};

/// The capability with this name, or an error with a similar name.
fn known_capability(name: &str) -> Result<String, String> {
    if let Some(known) = capability(name) {
        return Ok(known.to_owned());
    }
    let bare = |name: &'static str| name.strip_prefix("CAP_").unwrap_or(name);
    let upper = name.to_ascii_uppercase();
    let typed = upper.strip_prefix("CAP_").unwrap_or(&upper);
    Err(
        match suggest::nearest(typed, CAPABILITIES.into_iter().map(bare)) {
            Some(near) => format!("no such capability; did you mean `CAP_{near}`?"),
            None => "no such capability; `man 7 capabilities` lists them".to_owned(),
        },
    )
}

/// Whether a text resembles such a profile: JSON with a member that only profiles have. Case is ignored, so that the
/// parser can report the correct spelling.
fn recognises(text: &str) -> bool {
    let text = text.trim_start();
    let is_json = match text.split_at_checked(1) {
        Some(("{", inside)) => inside.trim_start().starts_with('"'),
        Some(("[", _)) => true,
        _ => false,
    };
    let members = [
        "\"defaultaction\"",
        "\"syscalls\"",
        "\"archmap\"",
        "\"architectures\"",
        "\"linux\"",
        "\"ociversion\"",
    ];
    is_json && !firecracker::recognises(text) && !spo::recognises(text) && {
        let text = text.to_ascii_lowercase();
        members.into_iter().any(|member| text.contains(member))
    }
}

fn parse_for_any(
    sources: &mut Sources,
    source: SourceId,
    _: &mut dyn Loader,
    common: &front_end::ParseOptions,
) -> ParsedPolicy {
    let profile = parse(sources, source, &OciOptions::from_common(common));
    profile.into()
}

impl From<ParsedProfile> for ParsedPolicy {
    fn from(profile: ParsedProfile) -> ParsedPolicy {
        ParsedPolicy {
            installation: profile.installation,
            selection: Some(profile.selection),
            ..profile.parsed.into()
        }
    }
}

/// The options of the language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The capabilities of the container, as `CAP_CHOWN`; `None` stands for Docker's.
    pub capabilities: Option<Vec<String>>,
    /// The numbers with `ENOSYS` instead of the default action.
    pub enosys_tail: EnosysTail,
    /// Whether the architectures that the profile adds to the native one are omitted.
    pub is_native_only: bool,
    /// The reading of the entries.
    pub reading: Reading,
    /// As [`OciOptions::keeps_default_entries`].
    pub keeps_default_entries: bool,
}

/// The inputs of a profile that the container engine supplies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciOptions {
    /// The architecture of the machine: always in the filter; `archMap`, `includes` and `excludes` select by it.
    pub native: Arch,
    /// The architectures of the filter in addition to the native one, instead of those of the profile.
    pub arches: Option<Vec<Arch>>,
    /// The capabilities of the container, as `CAP_CHOWN`.
    pub capabilities: Vec<String>,
    /// The kernel's version for `minKernel`; `None` satisfies every `minKernel`.
    pub kernel: Option<KernelVersion>,
    /// Treat unknown calls, members and capabilities, which engines silently ignore, as errors.
    pub strict: bool,
    /// The numbers with `ENOSYS` instead of the default action.
    pub enosys_tail: EnosysTail,
    /// The reading of the entries.
    pub reading: Reading,
    /// Whether entries with the default action, which no runtime passes to libseccomp, are rules, too: for a caller that
    /// takes the rules without the default. They come last, so no call gets another action.
    pub keeps_default_entries: bool,
}

/// The reading of the entries of a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// That of runtimes: the program that libseccomp generates from the entries.
    #[default]
    Libseccomp,
    /// That of the text: an entry applies if all its conditions hold, and the strictest of the applicable entries
    /// decides, even if it has the default action. The order is irrelevant, and no entry replaces another.
    Text,
}

/// Numbers with `ENOSYS` instead of the default action. There are none if the default action is to allow, log or
/// trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnosysTail {
    /// None: exactly the meaning of libseccomp's program.
    #[default]
    None,
    /// All above the largest number that the profile names, as in runc.
    Runc,
    /// All above the largest number of the architecture in tamis's tables.
    Table,
}

impl OciOptions {
    /// The caller's options, with Docker's defaults.
    pub(crate) fn from_common(common: &front_end::ParseOptions) -> OciOptions {
        let mut options = OciOptions::docker(common.native());
        // A single architecture is the native one: the profile adds others.
        options.arches = match common.asked_arches.as_slice() {
            [_, others @ ..] if !others.is_empty() => Some(others.to_vec()),
            _ if common.oci.is_native_only => Some(Vec::new()),
            _ => None,
        };
        if let Some(capabilities) = &common.oci.capabilities {
            options.capabilities.clone_from(capabilities);
        }
        options.kernel = common.kernel;
        options.strict = common.strict;
        options.enosys_tail = common.oci.enosys_tail;
        options.reading = common.oci.reading;
        options.keeps_default_entries = common.oci.keeps_default_entries;
        options
    }

    /// Docker's behaviour on this architecture for a container started without options: its fourteen default
    /// capabilities and a new kernel.
    pub fn docker(native: Arch) -> OciOptions {
        OciOptions {
            native,
            arches: None,
            capabilities: names::DOCKER_CAPABILITIES.map(str::to_owned).to_vec(),
            kernel: None,
            strict: false,
            enosys_tail: EnosysTail::None,
            reading: Reading::Libseccomp,
            keeps_default_entries: false,
        }
    }
}

/// A parsed profile: the meaning, and the members that affect only the installation of the filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedProfile {
    /// The ruleset and the diagnostics.
    pub parsed: Parsed,
    /// `flags`, `listenerPath` and `listenerMetadata` as written: the runtime installs the filter with these flags,
    /// and sends the descriptor for notifications and the metadata to that socket.
    pub installation: Installation,
    /// The external conditions that select entries.
    pub selection: Selection,
}

/// Parses a profile: a seccomp object of either flavour, or a container's `config.json` that contains one.
///
/// ```
/// use tamis_abi::{Action, Arch};
/// use tamis_diag::Sources;
/// use tamis_policy::oci;
///
/// let mut sources = Sources::new();
/// let text = r#"{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
///     {"names": ["read", "write"], "action": "SCMP_ACT_ALLOW"}]}"#;
/// let source = sources.add("profile.json", text);
/// let profile = oci::parse(&sources, source, &oci::OciOptions::docker(Arch::X86_64));
/// let ruleset = profile.parsed.ruleset.expect("it is a profile");
/// assert_eq!(ruleset.sections()[0].default, Action::errno(1));
/// assert_eq!(ruleset.sections()[0].rules.len(), 1);
/// ```
pub fn parse(sources: &Sources, source: SourceId, options: &OciOptions) -> ParsedProfile {
    let text = &sources.get(source).text;
    let mut reader = Reader::new(&json::DIALECT, source, options.strict);
    let document = reader.parse(text);
    let profile = document
        .as_ref()
        .and_then(|document| read::profile(&mut reader, document.root()));
    lowered(sources, reader, profile, options)
}

/// Parses an object as a profile of this flavour.
pub(crate) fn parse_object(
    sources: &Sources,
    mut reader: Reader,
    object: Object<'_>,
    flavour: &Flavour,
    options: &OciOptions,
) -> ParsedProfile {
    let profile = read::read_profile(&mut reader, flavour, object);
    lowered(sources, reader, profile, options)
}

/// The ruleset of a profile; `None` after an error.
fn lowered(
    sources: &Sources,
    mut reader: Reader,
    profile: Option<Profile>,
    options: &OciOptions,
) -> ParsedProfile {
    let Some(profile) = profile else {
        return finish(None, None, reader.diagnostics);
    };
    warn_about_names(&mut reader, &profile);
    let arches = select::arches(&profile, options);
    let endian = options.native.endian();
    if let Some(other) = arches.iter().find(|arch| arch.endian() != endian) {
        let message = format!("{} and {other} have different byte orders", options.native);
        let diagnostic = Diagnostic::error(code::OCI_BYTE_ORDER, message)
            .help("write one profile for each byte order");
        reader.push(diagnostic);
    }
    let selected = profile.entries.iter();
    let selected = selected.filter(|entry| select::is_selected(entry, options));
    let (entries, without_effect): (Vec<&Entry>, Vec<&Entry>) =
        selected.partition(|entry| select::has_effect(entry, &profile, options));
    let mut lowering = lower::Lowering::new(sources, entries, options.reading);
    let mut sections: Vec<_> = arches
        .iter()
        .map(|arch| lowering.section(*arch, profile.default))
        .collect();
    if options.keeps_default_entries {
        let mut separate = lower::Lowering::new(sources, without_effect, options.reading);
        for section in &mut sections {
            let rules = separate.separate_rules(section.arch, profile.default);
            section.rules.extend(rules);
        }
        reader.diagnostics.extend(separate.diagnostics);
    }
    let has_x32 = arches.contains(&Arch::X32);
    for section in &mut sections {
        enosys::prepend(section, options.enosys_tail, &profile, has_x32);
    }
    reader.diagnostics.extend(lowering.diagnostics);
    let rules: usize = sections.iter().map(|section| section.rules.len()).sum();
    if rules > limits::MAX_RULES {
        let message = format!(
            "the profile has {rules} rules, more than {}",
            limits::MAX_RULES
        );
        reader.push(Diagnostic::error(code::OCI_TOO_COMPLEX, message));
    }
    let ruleset = Ruleset::new(sections, Action::KILL_THREAD).expect("no architecture twice");
    finish(Some(ruleset), Some(profile), reader.diagnostics)
}

fn finish(
    ruleset: Option<Ruleset>,
    profile: Option<Profile>,
    mut diagnostics: Vec<Diagnostic>,
) -> ParsedProfile {
    // Errors first, so that the limit doesn't cut them off.
    diagnostics.sort_by_key(|diagnostic| !diagnostic.is_error());
    diagnostics.truncate(limits::MAX_DIAGNOSTICS);
    let selection = profile.as_ref().map(select::selection);
    let installation = profile.map(|profile| Installation {
        flags: profile.flags,
        listener_path: profile.listener_path,
        listener_metadata: profile.listener_metadata,
    });
    ParsedProfile {
        parsed: Parsed::new(ruleset, diagnostics),
        installation: installation.unwrap_or_default(),
        selection: selection.unwrap_or_default(),
    }
}

/// Warns about names that no architecture has.
fn warn_about_names(reader: &mut Reader, profile: &Profile) {
    let names = profile.entries.iter().flat_map(|entry| &entry.names);
    for name in names.filter(|name| name.known.is_none()) {
        if reader.has_enough_ignored() {
            return;
        }
        let message = format!("unknown system call `{}`", name.text);
        let mut diagnostic = Diagnostic::warning(code::OCI_UNKNOWN_SYSCALL, message)
            .label(name.span, "container engines ignore this");
        if reader.diagnostics.len() < limits::MAX_DIAGNOSTICS
            && let Some(near) = nearest_call(name.text)
        {
            diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
        }
        reader.ignored(diagnostic);
    }
}
