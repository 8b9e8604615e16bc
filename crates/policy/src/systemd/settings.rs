//! From assignments to a unit's seccomp restrictions.

use std::collections::BTreeSet;

use tamis_abi::{Arch, KernelVersion, consts};
use tamis_diag::{Diagnostic, Severity, Span, suggest};

use super::SystemdOptions;
use super::calls::{self, Answer, CallList, Reading, WriteDenied};
use super::hostname::{self, Hostname};
use super::tables;
use super::title;
use super::unit::{self, Assignment, FileIndex, Piece, Unit};
use super::value::Quotes;
use super::version::SystemdVersion;
use crate::code;
use crate::sink::Sink;

/// A directive that is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Switch {
    MemoryDenyWriteExecute,
    RestrictRealtime,
    RestrictSuidSgid,
    ProtectHostname,
    ProtectKernelTunables,
    ProtectKernelModules,
    ProtectKernelLogs,
    ProtectClock,
    PrivateDevices,
    LockPersonality,
    /// Implies [`Switch::RestrictSuidSgid`].
    DynamicUser,
}

const SWITCHES: [(&str, Switch); 11] = [
    ("MemoryDenyWriteExecute", Switch::MemoryDenyWriteExecute),
    ("RestrictRealtime", Switch::RestrictRealtime),
    ("RestrictSUIDSGID", Switch::RestrictSuidSgid),
    ("ProtectHostname", Switch::ProtectHostname),
    ("ProtectKernelTunables", Switch::ProtectKernelTunables),
    ("ProtectKernelModules", Switch::ProtectKernelModules),
    ("ProtectKernelLogs", Switch::ProtectKernelLogs),
    ("ProtectClock", Switch::ProtectClock),
    ("PrivateDevices", Switch::PrivateDevices),
    ("LockPersonality", Switch::LockPersonality),
    ("DynamicUser", Switch::DynamicUser),
];
const OTHERS: [&str; 7] = [
    "SystemCallFilter",
    "SystemCallErrorNumber",
    "SystemCallArchitectures",
    "SystemCallLog",
    "RestrictAddressFamilies",
    "RestrictNamespaces",
    "Personality",
];
/// The lists of calls.
const LISTS: [&str; 2] = ["SystemCallFilter", "SystemCallLog"];
/// The largest errno of systemd; libseccomp rejects it.
const LAST_ERRNO: u16 = 4095;

/// The kinds of namespaces and their flags.
const NAMESPACES: [(&str, u64); 8] = [
    ("cgroup", 0x0200_0000),
    ("ipc", 0x0800_0000),
    ("net", 0x4000_0000),
    ("mnt", 0x0002_0000),
    ("pid", 0x2000_0000),
    ("user", 0x1000_0000),
    ("uts", 0x0400_0000),
    ("time", 0x80),
];

/// systemd's names of architectures that differ from ours.
const ARCHES: [(&str, Arch); 7] = [
    ("x86-64", Arch::X86_64),
    ("arm64", Arch::Aarch64),
    ("ppc64-le", Arch::Ppc64le),
    ("mips-le", Arch::Mipsel),
    ("mips64-le", Arch::Mipsel64),
    ("mips64-n32", Arch::Mips64n32),
    ("mips64-le-n32", Arch::Mipsel64n32),
];

/// Allowed or denied address families of sockets.
#[derive(Clone, Debug)]
pub(super) struct Families {
    pub(super) is_allow_list: bool,
    pub(super) families: BTreeSet<u64>,
    pub(super) span: Span,
    /// Whether it is the list of `none`: another assignment then starts a new list.
    is_none: bool,
}

/// The restrictions of a unit.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The release of systemd that reads the unit.
    pub(super) version: SystemdVersion,
    pub(super) filter: Option<CallList>,
    pub(super) log: Option<CallList>,
    /// The action of `SystemCallFilter=`.
    pub(super) errno: Answer,
    /// The allowed architectures, including the native one.
    pub(super) arches: Option<(BTreeSet<Arch>, Span)>,
    pub(super) families: Option<Families>,
    /// The flags of the allowed namespaces, unless all are allowed.
    pub(super) namespaces: Option<(u64, Span)>,
    pub(super) personality: Option<Arch>,
    switches: Vec<(Switch, Span)>,
}

impl Settings {
    fn new(version: SystemdVersion) -> Settings {
        Settings {
            version,
            filter: None,
            log: None,
            errno: Answer::default(),
            arches: None,
            families: None,
            namespaces: None,
            personality: None,
            switches: Vec::new(),
        }
    }

    /// The span of the assignment that turns a switch on.
    pub(super) fn switch(&self, switch: Switch) -> Option<Span> {
        let mut on = self.switches.iter().filter(|(on, _)| *on == switch);
        on.next().map(|(_, span)| *span)
    }

    /// The settings with filters before that of `SystemCallArchitectures=`, which are installed for all architectures
    /// of the machine.
    pub(super) fn early(&self) -> Settings {
        let mut early = Settings {
            filter: None,
            log: None,
            ..self.clone()
        };
        early
            .switches
            .retain(|(switch, _)| *switch != Switch::LockPersonality);
        // A deny list without calls yields no filter.
        early
            .families
            .take_if(|list| !list.is_allow_list && list.families.is_empty());
        early
    }

    /// The number of settings with filters after that: one for each remaining architecture, even without denials.
    pub(super) fn late_count(&self) -> usize {
        let has_filter = self.filter.as_ref().is_some_and(CallList::is_installed);
        // An empty list of logged calls yields no filter.
        let has_log = self.log.as_ref().is_some_and(|list| !list.calls.is_empty());
        let is_locked = self.switch(Switch::LockPersonality).is_some();
        [has_filter, has_log, is_locked]
            .into_iter()
            .map(usize::from)
            .sum()
    }

    /// Whether nothing is restricted.
    pub(super) fn is_empty(&self) -> bool {
        let mut lists = [&self.filter, &self.log].into_iter().flatten();
        let has_list = lists.any(CallList::is_installed) || self.arches.is_some();
        let mut families = self.families.iter();
        let has_families = families.any(|list| list.is_allow_list || !list.families.is_empty());
        let all = all_namespaces(self.version);
        let has_namespaces = self.namespaces.is_some_and(|(stay, _)| stay & all != all);
        !has_list && !has_families && !has_namespaces && self.switches.is_empty()
    }
}

/// The flags that systemd treats as all: those of `NAMESPACES`, in older releases except the one for time, which is
/// then allowed only by name.
pub fn all_namespaces(version: SystemdVersion) -> u64 {
    let all = NAMESPACES
        .iter()
        .filter(|(name, _)| *name != "time" || version.restricts_time());
    all.map(|(_, flag)| flag).sum()
}

/// The kinds with their flags.
pub fn namespaces() -> impl Iterator<Item = (&'static str, u64)> {
    NAMESPACES.into_iter()
}

/// The directives that affect filters.
fn names() -> impl Iterator<Item = &'static str> {
    SWITCHES.iter().map(|(name, _)| *name).chain(OTHERS)
}

/// Whether a directive affects filters.
pub(super) fn is_setting(key: &str) -> bool {
    names().any(|name| name == key)
}

/// Applies all assignments of a unit. If its name doesn't determine the section, the first section that runs programs
/// applies.
pub(super) fn read(
    section: Option<&'static str>,
    unit: &Unit,
    options: &SystemdOptions,
    sink: &mut Sink,
) -> Settings {
    let of_text = || {
        let mut names = unit.sections.iter();
        names.find_map(|(name, _)| title::SECTIONS.into_iter().find(|section| name == section))
    };
    let mut reader = Reader {
        native: options.native(),
        kernel: options.kernel,
        section: section.or_else(of_text).unwrap_or("Service"),
        sink,
        settings: Settings::new(options.version.known()),
        sets: calls::Sets::new(),
        ended: None,
    };
    // Lists are applied last, because they may depend on the errno.
    let mut lists = Vec::new();
    for (name, span) in &unit.sections {
        reader.header(name, *span);
    }
    for assignment in &unit.assignments {
        if reader.sink.is_finished() {
            break;
        }
        if reader.ended != Some(assignment.file) && reader.is_ours(assignment) {
            match LISTS.contains(&assignment.key.text()) {
                true => lists.push(assignment),
                false => reader.assign(assignment),
            }
        }
    }
    for assignment in lists {
        if reader.sink.is_finished() {
            break;
        }
        reader.list(assignment);
    }
    reader.allow_write();
    reader.check_answers();
    reader.check_mappings();
    reader.settings
}

struct Reader<'a> {
    native: Arch,
    kernel: Option<KernelVersion>,
    /// The section with directives that install filters.
    section: &'static str,
    sink: &'a mut Sink,
    settings: Settings,
    sets: calls::Sets,
    /// The file with a syntax error; systemd ignores its rest.
    ended: Option<FileIndex>,
}

impl Reader<'_> {
    /// Whether systemd reads a section with this name in the unit.
    fn knows(&self, section: &str) -> bool {
        ["Unit", "Install", self.section].contains(&section) || section.starts_with("X-")
    }

    /// Warns about a section that systemd ignores.
    fn header(&mut self, name: &str, span: Span) {
        if !self.knows(name) {
            let message = format!("unknown section `[{name}]`");
            self.sink.report(
                Diagnostic::warning(code::SYSTEMD_DIRECTIVE, message)
                    .label(span, "systemd ignores all of it")
                    .help(format!(
                        "the directives of this unit are in `[{}]`",
                        self.section
                    )),
            );
        }
    }

    /// Whether an assignment affects the filter; warns about unknown ones.
    fn is_ours(&mut self, assignment: &Assignment) -> bool {
        let key = assignment.key.piece();
        let section = assignment.section.as_ref();
        let runs_programs = section == self.section;
        if is_setting(key.text) {
            if !runs_programs {
                let message = format!("`{}` has no effect in [{section}]", key.text);
                self.sink.report(
                    Diagnostic::warning(code::SYSTEMD_DIRECTIVE, message)
                        .label(key.span, "systemd ignores this")
                        .help(format!("move it to `[{}]`", self.section)),
                );
            }
            return runs_programs;
        }
        // The rest only warns.
        if !self.sink.wants_more() {
            return false;
        }
        let is_ignored = section.starts_with("X-") || !self.knows(section);
        if !is_ignored && !key.text.starts_with("X-") {
            self.others(section, key);
        }
        false
    }

    /// Warns about a directive without a filter that this release of systemd ignores in its section.
    fn others(&mut self, section: &str, key: Piece) {
        let version = self.settings.version;
        let warning = |message| Diagnostic::warning(code::SYSTEMD_DIRECTIVE, message);
        let name = key.text;
        let diagnostic = match tables::directive(section, name, version) {
            Some(tables::Reading::Obeyed) => return,
            Some(tables::Reading::Newer(first)) => warning(format!(
                "`{name}` is a directive of systemd {first} and later"
            ))
            .label(key.span, format!("systemd {version} ignores this"))
            .help(format!(
                "`-O systemd={first}` reads the unit as systemd {first} does"
            )),
            Some(tables::Reading::Ignored(since)) => {
                let verb = match version.major < *since.end() {
                    true => "may ignore",
                    false => "ignores",
                };
                warning(format!("`{name}` is accepted without effect"))
                    .label(key.span, format!("systemd {version} {verb} this"))
                    .help("remove it")
            }
            None => {
                let unknown = warning(format!("unknown directive `{name}`"))
                    .label(key.span, "systemd ignores this");
                unknown.help(self.help_for_unknown(section, name))
            }
        };
        self.sink.report(diagnostic);
    }

    fn help_for_unknown(&self, section: &str, name: &str) -> String {
        let version = self.settings.version;
        let mut others = tables::sections();
        if let Some(other) = others.find(|own| tables::directive(own, name, version).is_some()) {
            return format!("it belongs to `[{other}]`");
        }
        let ours = SWITCHES.iter().map(|(own, _)| *own).chain(OTHERS);
        let near = suggest::nearest(name, ours);
        match near.or_else(|| suggest::nearest(name, tables::directives(section, version))) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let newest = SystemdVersion::newest();
                format!("it may belong to a systemd newer than {newest}")
            }
        }
    }

    fn assign(&mut self, assignment: &Assignment) {
        let key = assignment.key.text();
        if let Some((_, switch)) = SWITCHES.iter().find(|(name, _)| *name == key) {
            return self.switch(*switch, assignment);
        }
        match key {
            "SystemCallErrorNumber" => self.errno(assignment),
            "SystemCallArchitectures" => self.arches(assignment),
            "RestrictAddressFamilies" => self.families(assignment),
            "RestrictNamespaces" => self.namespaces(assignment),
            _ => self.personality(assignment),
        }
    }

    fn list(&mut self, assignment: &Assignment) {
        let is_filter = assignment.key.text() == "SystemCallFilter";
        let list = match is_filter {
            true => &mut self.settings.filter,
            false => &mut self.settings.log,
        };
        let mut reading = Reading {
            native: self.native,
            version: self.settings.version,
            usual: self.settings.errno,
            is_filter,
            sets: &mut self.sets,
            sink: self.sink,
        };
        reading.assign(list, assignment);
    }

    /// Allows `write` if systemd does, and reports a word that denies it.
    fn allow_write(&mut self) {
        let version = self.settings.version;
        let list = self.settings.filter.as_mut();
        let Some(list) = list.filter(|_| version.always_allows_write()) else {
            return;
        };
        match list.allow_write() {
            None => {}
            Some(WriteDenied::Ignored(span)) => self.sink.report(
                Diagnostic::warning(code::SYSTEMD_ELSEWHERE, "`write` stays allowed")
                    .label(
                        span,
                        format!("systemd {version} lets services call `write`"),
                    )
                    .note("since 257 systemd itself calls it behind the filter"),
            ),
            Some(WriteDenied::Refused(span)) => {
                let message = "an errno for `write`, which systemd adds to the list";
                let diagnostic = unit::not_started(message, span);
                self.sink.report(diagnostic.help("remove `write`"));
            }
        }
    }

    /// Omits the filter of `MemoryDenyWriteExecute=` if the kernel replaces it, and reports this.
    fn check_mappings(&mut self) {
        let version = self.settings.version;
        let span = self.settings.switch(Switch::MemoryDenyWriteExecute);
        let Some(span) = span.filter(|_| version.may_have_mdwe()) else {
            return;
        };
        let diagnostic = match self.kernel {
            Some(_) if version.has_mdwe(self.kernel) => {
                let switches = &mut self.settings.switches;
                switches.retain(|(on, _)| *on != Switch::MemoryDenyWriteExecute);
                let message = "`MemoryDenyWriteExecute=` is no part of the filter";
                Diagnostic::warning(code::SYSTEMD_BY_KERNEL, message)
                    .label(
                        span,
                        format!("systemd {version} sets PR_SET_MDWE on this kernel"),
                    )
                    .help("a program that installs the filter without systemd sets it too")
            }
            Some(_) => return,
            None => {
                let message = "`MemoryDenyWriteExecute=` is no filter on Linux 6.3 and later";
                Diagnostic::new(Severity::Note, code::SYSTEMD_BY_KERNEL, message)
                    .label(span, format!("systemd {version} sets PR_SET_MDWE there"))
                    .help("`--kernel 6.3` leaves it out of the filter")
            }
        };
        self.sink.advise(diagnostic);
    }

    fn hostname(&mut self, assignment: &Assignment) {
        let version = self.settings.version;
        let found = Hostname::parse(assignment.value.text(), version);
        let Some(found) = found else {
            let values = hostname::values(version);
            let message = format!("`ProtectHostname=` takes {values}");
            let help = match assignment.value.text() {
                "" => "write `no`: an empty value resets lists, not booleans",
                _ => "write `yes` or `no`",
            };
            return self.sink.report(
                Diagnostic::warning(code::SYSTEMD_VALUE, message)
                    .label(value_span(assignment), "systemd ignores this")
                    .help(help),
            );
        };
        // If a specifier expands to an empty name, systemd ignores the line, and the previous value remains.
        if found == Hostname::Fixed || !assignment.value.text().contains('%') {
            self.turn(
                Switch::ProtectHostname,
                assignment,
                found == Hostname::Fixed,
            );
        }
    }

    fn turn(&mut self, switch: Switch, assignment: &Assignment, is_on: bool) {
        let switches = &mut self.settings.switches;
        switches.retain(|(on, _)| *on != switch);
        if is_on {
            switches.push((switch, assignment.key.span()));
        }
    }

    fn switch(&mut self, switch: Switch, assignment: &Assignment) {
        if switch == Switch::ProtectHostname && self.settings.version.has_private_hostname() {
            return self.hostname(assignment);
        }
        let value = &assignment.value;
        let Some(is_on) = boolean(value.text()) else {
            let message = format!("`{}=` takes a boolean", assignment.key.text());
            // systemd checks only this one strictly.
            if switch == Switch::DynamicUser {
                let (place, file) = (value_span(assignment), assignment.file);
                self.ended = Some(file);
                let diagnostic = unit::refused(&message, place, "write `yes` or `no`", file);
                return self.sink.report(diagnostic);
            }
            let help = match value.text() {
                "" => "write `no`: an empty value resets lists, not booleans",
                text if text.starts_with(['"', '\'']) => "write `yes` or `no`, without quotes",
                _ => "write `yes` or `no`",
            };
            return self.sink.report(
                Diagnostic::warning(code::SYSTEMD_VALUE, message)
                    .label(value_span(assignment), "systemd ignores this")
                    .help(help),
            );
        };
        self.turn(switch, assignment, is_on);
    }

    fn errno(&mut self, assignment: &Assignment) {
        let text = assignment.value.text();
        match calls::usual_answer(text, self.native) {
            Some(answer) => self.settings.errno = answer,
            None => {
                let help = match text.starts_with(['"', '\'']) {
                    true => "remove the quotes, which systemd keeps here",
                    false => "write a name such as `EPERM`, a number from 1 to 4094, or `kill`",
                };
                let diagnostic = calls::bad_answer(text, value_span(assignment));
                self.sink.report(diagnostic.help(help));
            }
        }
    }

    /// Reports actions that systemd accepts and libseccomp rejects, so that the service fails to start: a rule of an
    /// allow list with the default action of the filter, and the errno 4095.
    fn check_answers(&mut self) {
        let Some(list) = &self.settings.filter else {
            return;
        };
        let usual = self.settings.errno;
        let default = filter_default(usual, self.settings.version, self.native);
        let mut refuse = |message: &str, span, help: &str| {
            let diagnostic = unit::not_started(message, span);
            self.sink.report(diagnostic.help(help));
        };
        let is_last = |answer| answer == Answer::Errno(LAST_ERRNO);
        let last = format!("libseccomp doesn't take the errno {LAST_ERRNO}");
        let below = format!("write a number below {LAST_ERRNO}");
        if list.is_allow_list && is_last(usual) {
            refuse(&last, list.span, &below);
        }
        for (call, entry) in &list.calls {
            let answer = match (entry.answer, list.is_allow_list) {
                // It is allowed.
                (None, true) => continue,
                (answer, _) => answer.unwrap_or(usual),
            };
            if is_last(answer) {
                refuse(&last, entry.span, &below);
            } else if list.is_allow_list && answer == default {
                let (message, help) = match default == usual {
                    true => (
                        format!("`{call}` has the action of calls that aren't listed"),
                        "write it without an action, which removes it from the list",
                    ),
                    false => (
                        format!("`{call}` has the action of calls that systemd doesn't know"),
                        "write another errno, or none",
                    ),
                };
                refuse(&message, entry.span, help);
            }
        }
    }

    fn arches(&mut self, assignment: &Assignment) {
        if assignment.value.text().is_empty() {
            self.settings.arches = None;
        }
        let words = assignment.value.words(Quotes::Removed);
        for word in &words.words {
            let arch = match word.text.as_str() {
                "native" => Some(self.native),
                name => arch(name),
            };
            let Some(arch) = arch else {
                if !self.sink.wants_more() {
                    continue;
                }
                let known = Arch::all().filter_map(arch_name).chain(["native"]);
                let help = match suggest::nearest(&word.text, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`native` is this machine's architecture".to_owned(),
                };
                self.ignored(word.piece(), "architecture", &help);
                continue;
            };
            let initial = (BTreeSet::from([self.native]), assignment.key.span());
            let (arches, _) = self.settings.arches.get_or_insert(initial);
            arches.insert(arch);
        }
        self.unfinished(words.unfinished);
    }

    fn families(&mut self, assignment: &Assignment) {
        let span = assignment.key.span();
        match assignment.value.text() {
            "" => {
                self.settings.families = None;
                return;
            }
            "none" => {
                self.settings.families = Some(Families {
                    is_allow_list: true,
                    families: BTreeSet::new(),
                    span,
                    is_none: true,
                });
                return;
            }
            _ => {}
        }
        let (is_inverted, value) = assignment.value.without_tilde();
        let native = self.native;
        self.settings.families.take_if(|list| list.is_none);
        let list = self.settings.families.get_or_insert(Families {
            is_allow_list: !is_inverted,
            families: BTreeSet::new(),
            span,
            is_none: false,
        });
        let version = self.settings.version;
        let ends_line = version.unknown_family_ends_line(is_inverted != list.is_allow_list);
        let mut unknown = Vec::new();
        let words = value.words(Quotes::Removed);
        for word in &words.words {
            let name = word.text.to_ascii_uppercase();
            let is_family = is_family(&name);
            match consts::value(native, &name).filter(|_| is_family) {
                None => unknown.push(word),
                Some(_) if ends_line && !unknown.is_empty() => {}
                Some(family) if is_inverted == list.is_allow_list => {
                    list.families.remove(&family);
                }
                Some(family) => drop(list.families.insert(family)),
            }
        }
        for word in unknown {
            if !self.sink.wants_more() {
                break;
            }
            let known = consts::names(native).filter(|name| is_family(name));
            let help = match suggest::nearest(&word.text, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`tamis tables constants AF_` lists them".to_owned(),
            };
            match ends_line {
                true => {
                    let message = format!("unknown address family `{}`", word.text);
                    let label = format!("systemd {version} ignores this and what follows");
                    let warning = Diagnostic::warning(code::SYSTEMD_VALUE, message);
                    self.sink.report(warning.label(word.span, label).help(help));
                }
                false => self.ignored(word.piece(), "address family", &help),
            }
        }
        self.unfinished(words.unfinished);
    }

    fn namespaces(&mut self, assignment: &Assignment) {
        let span = assignment.key.span();
        let all = all_namespaces(self.settings.version);
        let text = assignment.value.text();
        if text.is_empty() {
            self.settings.namespaces = None;
            return;
        }
        if let Some(is_on) = boolean(text) {
            let stay = if is_on { 0 } else { all };
            self.settings.namespaces = Some((stay, span));
            return;
        }
        let (is_inverted, value) = assignment.value.without_tilde();
        let words = value.words(Quotes::Kept);
        let mut flags = 0;
        for word in &words.words {
            match NAMESPACES.iter().find(|(name, _)| *name == word.text) {
                Some((_, flag)) => flags |= flag,
                None => {
                    let names = NAMESPACES.map(|(name, _)| name);
                    let help = format!("there are {}", names.join(", "));
                    let message = format!("unknown kind of namespaces `{}`", word.text);
                    let diagnostic = Diagnostic::warning(code::SYSTEMD_VALUE, message)
                        .label(word.span, "systemd ignores the whole line");
                    return self.sink.report(diagnostic.help(help));
                }
            }
        }
        if let Some(rest) = words.unfinished {
            return self.unfinished(Some(rest));
        }
        let stay = match (self.settings.namespaces, is_inverted) {
            (None, true) => all & !flags,
            (None, false) => flags,
            (Some((earlier, _)), true) => earlier & !flags,
            (Some((earlier, _)), false) => earlier | flags,
        };
        self.settings.namespaces = Some((stay, span));
    }

    fn personality(&mut self, assignment: &Assignment) {
        let value = assignment.value.piece();
        self.settings.personality = match value.text {
            "" => None,
            name => match arch(name).filter(|arch| runs(self.native, *arch)) {
                Some(arch) => Some(arch),
                None => return self.ignored(value, "architecture", "write `x86` or `x86-64`"),
            },
        };
    }

    fn unfinished(&mut self, rest: Option<Span>) {
        if let Some(rest) = rest {
            self.sink.report(calls::unfinished(rest));
        }
    }

    /// Warns about an unknown name, which systemd ignores.
    fn ignored(&mut self, word: Piece, what: &str, help: &str) {
        let message = format!("unknown {what} `{}`", word.text);
        self.sink.report(
            Diagnostic::warning(code::SYSTEMD_VALUE, message)
                .label(word.span, "systemd ignores this")
                .help(help),
        );
    }
}

/// The action for unlisted calls that systemd passes to libseccomp for an allow list.
fn filter_default(usual: Answer, version: SystemdVersion, native: Arch) -> Answer {
    match version.answers_unknown_calls_with_enosys() {
        true => calls::errno("ENOSYS", native).map_or(usual, Answer::Errno),
        false => usual,
    }
}

/// The place of a value, or of the key if the value is empty.
fn value_span(assignment: &Assignment) -> Span {
    match assignment.value.text().is_empty() {
        true => assignment.key.span(),
        false => assignment.value.span(),
    }
}

/// Whether systemd knows the name of an address family.
pub fn is_family(name: &str) -> bool {
    name.starts_with("AF_") && !["AF_UNSPEC", "AF_MAX"].contains(&name)
}

/// Whether systemd can set the personality of an architecture: the native one, or its 32-bit predecessor.
fn runs(native: Arch, arch: Arch) -> bool {
    let predecessor = match native {
        Arch::X86_64 => Some(Arch::X86),
        Arch::Aarch64 => Some(Arch::Arm),
        Arch::Mips64 => Some(Arch::Mips),
        Arch::Mipsel64 => Some(Arch::Mipsel),
        Arch::Ppc64 => Some(Arch::Ppc),
        Arch::S390x => Some(Arch::S390),
        _ => None,
    };
    arch == native || predecessor == Some(arch)
}

/// The architecture with this name in systemd.
fn arch(name: &str) -> Option<Arch> {
    Arch::all().find(|arch| arch_name(*arch) == Some(name))
}

/// systemd's name of an architecture, if it has one.
pub fn arch_name(arch: Arch) -> Option<&'static str> {
    let theirs = ARCHES.iter().find(|(_, ours)| *ours == arch);
    let is_unknown = matches!(arch, Arch::M68k | Arch::Sh | Arch::Sheb | Arch::Riscv32);
    let ours = Some(arch.name()).filter(|_| !is_unknown);
    theirs.map(|(name, _)| *name).or(ours)
}

/// The value of a switch; `None` if systemd ignores the text.
pub fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "y" | "true" | "t" | "on" => Some(true),
        "0" | "no" | "n" | "false" | "f" | "off" => Some(false),
        _ => None,
    }
}
