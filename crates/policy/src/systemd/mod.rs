//! The directives of systemd units that are implemented by seccomp: `SystemCallFilter=` and related ones, and
//! switches such as `RestrictNamespaces=`.
//!
//! ```text
//! [Service]
//! SystemCallFilter=@system-service
//! SystemCallFilter=~@privileged chroot:EPERM
//! SystemCallErrorNumber=EPERM
//! SystemCallArchitectures=native
//! MemoryDenyWriteExecute=yes
//! ```
//!
//! systemd installs a filter for each directive and each architecture of the machine, over thirty for an ordinary
//! service; here they are one policy, and so one filter. The meaning is that of a release of systemd, which the caller
//! names ([`SystemdVersion`]); if a fact is uncertain, the stricter reading applies. The stages, one file each: `title`
//! finds the files in a text, `unit` finds assignments, `value` splits them into words, `settings` and `calls` apply
//! them one by one, `filters` derives the denials; `tables` has systemd's sets and names, `version` the differences
//! between its releases, `assumption` the choice of the release.

mod assumption;
mod calls;
pub mod code;
mod filters;
mod hostname;
mod settings;
mod tables;
mod title;
mod unit;
mod value;
mod version;

use std::collections::BTreeSet;

use tamis_abi::{Action, Arch, KernelVersion, syscall};
use tamis_diag::{Diagnostic, SourceId, Sources, Span};
use tamis_rules::{Rule, Ruleset, Section};

use crate::Parsed;
use crate::front_end::{self, FrontEnd};
use crate::limits::MAX_SOURCE_BYTES;
use crate::option::{LanguageOption, OptionForm};
use crate::sink::Sink;
use tables::Membership;

pub use assumption::{Assumed, Origin, Settings};
pub use filters::{local_arches, restricts_families};
pub use hostname::Hostname;
pub use settings::boolean;
pub use settings::{all_namespaces, arch_name, is_family, namespaces};
pub use version::{ParseSystemdVersionError, PointRelease, SystemdVersion};

/// The calls that every allow list may contain.
pub fn default_calls(version: SystemdVersion) -> BTreeSet<&'static str> {
    tables::calls_from("@default", version, Membership::Possible).collect()
}

/// The sets of a release, each with the calls that are in it for certain and in its nested sets.
///
/// ```
/// use tamis_policy::systemd::{self, SystemdVersion};
/// let has = |major| {
///     let mut sets = systemd::sets(SystemdVersion::branch(major)).into_iter();
///     sets.any(|(set, calls)| set == "@file-system" && calls.contains("setxattrat"))
/// };
/// assert!(has(258) && !has(252));
/// ```
pub fn sets(version: SystemdVersion) -> Vec<(&'static str, BTreeSet<&'static str>)> {
    let version = version.known();
    let calls = |set| tables::calls_from(set, version, Membership::Certain).collect();
    tables::set_names(version)
        .map(|set| (set, calls(set)))
        .collect()
}

/// The calls that get the action of an allow list for unlisted calls, on machines of these architectures; `None` for
/// all. Other calls get `ENOSYS`, because systemd doesn't know them there.
pub fn answered_calls(natives: &[Arch], version: SystemdVersion) -> Option<BTreeSet<&'static str>> {
    if !version.answers_unknown_calls_with_enosys() {
        return None;
    }
    let known = tables::own_calls_from("@known", version, Membership::Certain);
    let is_native = |call: &&str| {
        let mut natives = natives.iter();
        natives.all(|native| syscall::number(*native, call).is_some())
    };
    Some(known.filter(is_native).collect())
}

/// Whether a name is parsed as this errno.
pub fn is_errno(name: &str, number: u16, native: Arch) -> bool {
    calls::errno(name, native) == Some(number)
}

/// The language in the registry.
pub static FRONT_END: FrontEnd = FrontEnd {
    name: "systemd",
    title: "a systemd unit",
    plural: "systemd units",
    about: "A systemd unit or drop-in: SystemCallFilter= and the other directives that install filters",
    extensions: &["service", "socket", "mount", "swap"],
    codes: code::SYSTEMD,
    options: &[&VERSION],
    uses_kernel: true,
    has_separate_default: false,
    ignores_byte_order_mark: true,
    recognises: |text| unit::section(unit::first_line(text)).is_some(),
    parse: |sources, root, _, common| {
        let assumed = common.systemd.assumed();
        let options = SystemdOptions {
            arches: arches(common),
            strict: common.strict,
            version: assumed.version,
            kernel: common.kernel,
        };
        let mut parsed = parse(sources, root, &options);
        parsed.diagnostics.extend(assumed.diagnostic("read as by"));
        parsed.into()
    },
};

static VERSION: LanguageOption = LanguageOption {
    name: "systemd",
    help: "The release whose sets, directives and rules count: `252`, `257.13`; without a point release, the newest known of \
           its branch",
    default: "this machine's, or the newest known",
    form: OptionForm::Text {
        placeholder: "VERSION",
        set: |options, text| {
            let version = text.parse::<SystemdVersion>();
            options.systemd.asked = Some(version.map_err(|error| error.to_string())?);
            Ok(())
        },
    },
};

/// A single architecture is that of the machine; several are those of the filter.
fn arches(common: &front_end::ParseOptions) -> Vec<Arch> {
    match common.asked_arches.as_slice() {
        [] | [_] => filters::local_arches(common.native()),
        several => several.to_vec(),
    }
}

/// An assignment of a unit, as systemd reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The section: `Service`.
    pub section: String,
    /// The text before the `=`.
    pub key: String,
    /// The text after it, trimmed; continued lines are joined.
    pub value: String,
}

/// All assignments of a unit, or of a unit and its drop-ins in the output of `systemctl cat`, in order. Diagnostics of
/// [`parse`] are omitted.
pub fn assignments(sources: &Sources, source: SourceId) -> Vec<Assignment> {
    let mut sink = Sink::new(false);
    let text = sources.get(source).text.as_ref();
    let titles = title::Titles::new(&sources.get(source).name, text);
    let unit = unit::parse(source, text, titles, unit::Retained::All, &mut sink);
    let all = unit.assignments.into_iter();
    all.map(|own| Assignment {
        section: own.section.into_owned(),
        key: own.key.text().to_owned(),
        value: own.value.text().to_owned(),
    })
    .collect()
}

/// The number of filters that systemd installs for a unit, or for a unit and its drop-ins in the output of `systemctl
/// cat`. Diagnostics of [`parse`] are omitted.
pub fn count_filters(sources: &Sources, source: SourceId, options: &SystemdOptions) -> usize {
    filters::count(&settings(sources, source, options), &options.arches)
}

/// Settings with filters and other effects: new namespaces, removed capabilities, hidden files.
pub const MIXED_SETTINGS: [&str; 7] = [
    "DynamicUser",
    "PrivateDevices",
    "ProtectClock",
    "ProtectHostname",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
];
/// Settings with a filter that also set a limit or an attribute of the process: `RLIMIT_RTPRIO` and, since systemd 253,
/// `PR_SET_MDWE`.
const WITH_ATTRIBUTES: [&str; 2] = ["MemoryDenyWriteExecute", "RestrictRealtime"];

/// The places of a unit's settings with effects besides filtering, in the form of a rule's origin.
pub fn settings_beyond_filters(sources: &Sources, source: SourceId) -> Vec<tamis_rules::Origin> {
    let mut sink = Sink::new(false);
    let text = sources.get(source).text.as_ref();
    let titles = title::Titles::new(&sources.get(source).name, text);
    let unit = unit::parse(source, text, titles, unit::Retained::All, &mut sink);
    let does_more = |key: &str| MIXED_SETTINGS.contains(&key) || WITH_ATTRIBUTES.contains(&key);
    let own = unit.assignments.iter();
    let own = own.filter(|own| does_more(own.key.text()));
    own.map(|own| crate::origin(sources, own.key.span()))
        .collect()
}

/// The words of a value that systemd splits without escapes of C, such as lists of paths and of capabilities: quotes
/// are removed, and a backslash escapes the next character. An unterminated last word is omitted.
///
/// ```
/// use tamis_policy::systemd::words;
/// assert_eq!(words(r#"-/a "/b c" \"d '/e"#), ["-/a", "/b c", "\"d"]);
/// ```
pub fn words(value: &str) -> Vec<String> {
    let mut sources = Sources::new();
    let value = value::Value::new(sources.add("", ""), 0, value);
    let words = value.words(value::Quotes::Removed).words.into_iter();
    words.map(|word| word.text).collect()
}

/// The value of `SystemCallArchitectures=` that restricts no architecture of a machine.
pub fn all_architectures(native: Arch) -> String {
    let names = filters::local_arches(native).into_iter();
    let names: Vec<&str> = names.filter_map(settings::arch_name).collect();
    names.join(" ")
}

/// Whether `SystemCallFilter=` lets a process change its capabilities, according to systemd 255 and newer
/// (`seccomp_allows_drop_privileges` in `exec-invoke.c`): by the names in the list, regardless of their actions.
pub fn lets_capabilities_change(
    sources: &Sources,
    source: SourceId,
    options: &SystemdOptions,
) -> bool {
    const CALLS: [&str; 3] = ["capget", "capset", "prctl"];
    let Some(list) = settings(sources, source, options).filter else {
        return true;
    };
    let mut calls = CALLS.into_iter();
    match list.is_allow_list {
        true => calls.all(|call| list.calls.contains_key(call)),
        false => !calls.any(|call| list.calls.contains_key(call)),
    }
}

/// The answer of an allow list of `SystemCallFilter=` for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// This word contains the call, directly or in a set.
    Named(Span),
    /// The call is in `@default`, which every allow list contains.
    Implied,
    /// systemd makes the call itself after installing the filter, so it adds the call to every list.
    Needed,
    /// The list, which begins here, lacks the call.
    Missing(Span),
}

/// The allow list of a unit, merged from all its lines.
#[derive(Clone, Debug)]
pub struct AllowList(calls::CallList);

/// The allow list of a unit, if it has one.
///
/// ```
/// use tamis_abi::Arch;
/// use tamis_policy::systemd::{self, Listing};
/// let mut sources = tamis_diag::Sources::new();
/// let source = sources.add("a.service", "[Service]\nSystemCallFilter=@basic-io\n");
/// let options = systemd::SystemdOptions::new(Arch::X86_64);
/// let list = systemd::allow_list(&sources, source, &options).unwrap();
/// let Some(Listing::Named(word)) = list.listing(Some("read")) else { panic!() };
/// assert_eq!(sources.snippet(word), "@basic-io");
/// assert_eq!(list.listing(Some("exit_group")), Some(Listing::Implied));
/// assert!(matches!(list.listing(Some("mount")), Some(Listing::Missing(_))));
/// ```
pub fn allow_list(
    sources: &Sources,
    source: SourceId,
    options: &SystemdOptions,
) -> Option<AllowList> {
    let filter = settings(sources, source, options).filter;
    filter.filter(|list| list.is_allow_list).map(AllowList)
}

impl AllowList {
    /// The answer of the list for a call, or for one without a name; `None` if a word denies the call.
    pub fn listing(&self, call: Option<&str>) -> Option<Listing> {
        let list = &self.0;
        let call = call.unwrap_or_default();
        match list.calls.get(call) {
            Some(entry) if entry.answer.is_some() => None,
            Some(entry) if entry.span == list.span => Some(match call {
                calls::WRITE => Listing::Needed,
                _ => Listing::Implied,
            }),
            Some(entry) => Some(Listing::Named(entry.span)),
            None if list.removed.contains_key(call) => None,
            None => Some(Listing::Missing(list.span)),
        }
    }
}

/// The settings of a unit, without diagnostics.
fn settings(sources: &Sources, source: SourceId, options: &SystemdOptions) -> settings::Settings {
    let mut sink = Sink::new(false);
    let text = sources.get(source).text.as_ref();
    let titles = title::Titles::new(&sources.get(source).name, text);
    let unit = unit::parse(source, text, titles, unit::Retained::Settings, &mut sink);
    settings::read(titles.section(), &unit, options, &mut sink)
}

/// Options of parsing a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemdOptions {
    /// The architectures that the machine runs, the native one first.
    pub arches: Vec<Arch>,
    /// Treat warnings as errors.
    pub strict: bool,
    /// The release of systemd; an unknown one is replaced by the nearest.
    pub version: SystemdVersion,
    /// The oldest kernel that runs the filter; `None` includes old ones.
    pub kernel: Option<KernelVersion>,
}

impl SystemdOptions {
    /// For a machine of this architecture, not strict, with the newest known systemd.
    pub fn new(native: Arch) -> SystemdOptions {
        SystemdOptions {
            arches: filters::local_arches(native),
            strict: false,
            version: SystemdVersion::newest(),
            kernel: None,
        }
    }

    /// The architecture of the machine.
    fn native(&self) -> Arch {
        self.arches.first().copied().unwrap_or(Arch::X86_64)
    }
}

/// Parses a unit, or a unit and its drop-ins as `systemctl cat` prints them.
///
/// The name of the source determines whether it is a drop-in (`x.service.d/10.conf`) and which section applies; the
/// text of a source with the name of a unit or a drop-in is one file, never the output of `systemctl cat`.
///
/// ```
/// use tamis_abi::{Action, Arch, SeccompData};
/// use tamis_policy::systemd;
/// let mut sources = tamis_diag::Sources::new();
/// let source = sources.add("a.service", "[Service]\nSystemCallFilter=~@mount\n");
/// let parsed = systemd::parse(&sources, source, &systemd::SystemdOptions::new(Arch::X86_64));
/// let ruleset = parsed.ruleset.expect("no errors");
/// let mount = SeccompData { nr: 165, arch: Arch::X86_64.audit(), ..Default::default() };
/// assert_eq!(ruleset.decide(&mount).action, Action::KILL_PROCESS);
/// ```
#[expect(
    clippy::missing_panics_doc,
    reason = "architectures are collected without repetition"
)]
pub fn parse(sources: &Sources, source: SourceId, options: &SystemdOptions) -> Parsed {
    let mut sink = Sink::new(options.strict);
    let text = sources.get(source).text.as_ref();
    let start = Span::new(source, 0, 0);
    if text.len() > MAX_SOURCE_BYTES {
        let message = format!("a unit of more than {} MiB", MAX_SOURCE_BYTES >> 20);
        sink.stop(Diagnostic::error(crate::code::FILE_TOO_LARGE, message).label(start, ""));
        return Parsed::new(None, sink.into_diagnostics());
    }
    let native = options.native();
    let titles = title::Titles::new(&sources.get(source).name, text);
    if titles.looks_printed() {
        let message = "this looks like the text of `systemctl cat`, and is read as one file";
        sink.report(
            Diagnostic::warning(code::SYSTEMD_PRINTED, message)
                .label(start, "its name is that of a unit or drop-in")
                .help("give it on standard input, or rename it: then each file in it is read by itself"),
        );
    }
    let unit = unit::parse(source, text, titles, unit::Retained::Settings, &mut sink);
    let settings = settings::read(titles.section(), &unit, options, &mut sink);
    if settings.is_empty() && !sink.has_failed() {
        let message = "the unit has no directive that installs a filter";
        sink.report(
            Diagnostic::warning(code::SYSTEMD_EMPTY, message)
                .label(start, "every call is allowed")
                .help("add `SystemCallFilter=` to `[Service]`"),
        );
    }
    let stays = |arch: Arch| match &settings.arches {
        Some((arches, _)) => arch == native || arches.contains(&arch),
        None => true,
    };
    let mut sections: Vec<Section> = Vec::new();
    for arch in options.arches.iter().copied().filter(|arch| stays(*arch)) {
        if sections.iter().any(|section| section.arch == arch) {
            continue;
        }
        let denials = filters::denials(&settings, native, arch);
        let rules = denials.into_iter().map(|denial| Rule {
            syscalls: denial.syscalls,
            when: denial.when,
            action: denial.action,
            origin: Some(crate::origin(sources, denial.span)),
        });
        sections.push(Section {
            arch,
            rules: rules.collect(),
            default: Action::ALLOW,
        });
    }
    // Filters allow all calls of other architectures, except that of `SystemCallArchitectures=`. systemd doesn't
    // install that one if the list has all architectures of the machine, which then executes no calls of others.
    let bad_arch = match settings.arches {
        Some(_) => Action::KILL_THREAD,
        None => Action::ALLOW,
    };
    let ruleset = Ruleset::new(sections, bad_arch).expect("no architecture twice");
    Parsed::new(Some(ruleset), sink.into_diagnostics())
}
