//! From assignments to a unit's seccomp restrictions.

use std::collections::BTreeSet;

use tamis_abi::{Arch, consts};
use tamis_diag::{Diagnostic, Span, code, suggest};

use super::calls::{self, Answer, CallList, Reading, without_tilde};
use super::tables;
use super::unit::{Assignment, Word};
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
/// The sections of units that run programs.
const SECTIONS: [&str; 4] = ["Service", "Socket", "Mount", "Swap"];

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
}

/// The restrictions of a unit.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) filter: Option<CallList>,
    pub(super) log: Option<CallList>,
    /// The action of `SystemCallFilter=`, unless it kills.
    pub(super) errno: Option<Answer>,
    /// The allowed architectures, including the native one.
    pub(super) arches: Option<(BTreeSet<Arch>, Span)>,
    pub(super) families: Option<Families>,
    /// The flags of the allowed namespaces, unless all are allowed.
    pub(super) namespaces: Option<(u64, Span)>,
    pub(super) personality: Option<Arch>,
    switches: Vec<(Switch, Span)>,
}

impl Settings {
    /// The span that turns a switch on, if it is on.
    pub(super) fn switch(&self, switch: Switch) -> Option<Span> {
        let mut on = self.switches.iter().filter(|(on, _)| *on == switch);
        on.next().map(|(_, span)| *span)
    }

    /// Whether nothing is restricted.
    pub(super) fn is_empty(&self) -> bool {
        let has_list = self.filter.is_some() || self.log.is_some() || self.arches.is_some();
        let restricts = self.families.is_some() || self.namespaces.is_some();
        !has_list && !restricts && self.switches.is_empty()
    }
}

/// The flags that systemd 252 treats as all: those of [`NAMESPACES`] except the one for time, which is allowed only
/// by name.
pub(super) fn all_namespaces() -> u64 {
    let all = NAMESPACES.iter().filter(|(name, _)| *name != "time");
    all.map(|(_, flag)| flag).sum()
}

/// The flags one by one.
pub(super) fn namespace_flags() -> impl Iterator<Item = u64> {
    NAMESPACES.iter().map(|(_, flag)| *flag)
}

/// Applies all assignments of a unit.
pub(super) fn read(assignments: &[Assignment], native: Arch, sink: &mut Sink) -> Settings {
    let mut reader = Reader {
        native,
        sink,
        settings: Settings::default(),
    };
    for assignment in assignments {
        if reader.sink.is_finished() {
            break;
        }
        if reader.is_ours(assignment) {
            reader.assign(assignment);
        }
    }
    reader.settings
}

struct Reader<'a> {
    native: Arch,
    sink: &'a mut Sink,
    settings: Settings,
}

impl Reader<'_> {
    /// Whether an assignment affects the filter; warns of unknown ones.
    fn is_ours(&mut self, assignment: &Assignment) -> bool {
        let key = assignment.key;
        let ours = || SWITCHES.iter().map(|(name, _)| *name).chain(OTHERS);
        let runs_programs = SECTIONS.contains(&assignment.section);
        if ours().any(|name| name == key.text) {
            if !runs_programs {
                let message = format!("`{}` has no effect in [{}]", key.text, assignment.section);
                self.sink.report(
                    Diagnostic::warning(code::SYSTEMD_DIRECTIVE, message)
                        .label(key.span, "systemd ignores this")
                        .help("move it to `[Service]`"),
                );
            }
            return runs_programs;
        }
        let is_private = key.text.starts_with("X-") || assignment.section.starts_with("X-");
        let mut known = tables::directives(assignment.section).into_iter().flatten();
        if is_private || known.any(|directive| directive == key.text) {
            return false;
        }
        let elsewhere = tables::sections().find(|section| {
            let mut directives = tables::directives(section).into_iter().flatten();
            directives.any(|directive| directive == key.text)
        });
        let message = format!("unknown directive `{}`", key.text);
        let diagnostic = Diagnostic::warning(code::SYSTEMD_DIRECTIVE, message)
            .label(key.span, "systemd ignores this");
        let known = tables::directives(assignment.section).into_iter().flatten();
        let near = suggest::nearest(key.text, ours()).or_else(|| suggest::nearest(key.text, known));
        self.sink.report(match (elsewhere, near) {
            (Some(section), _) => diagnostic.help(format!("it belongs to `[{section}]`")),
            (None, Some(near)) => diagnostic.help(format!("did you mean `{near}`?")),
            (None, None) => diagnostic.help("it may belong to a systemd newer than 252"),
        });
        false
    }

    fn assign(&mut self, assignment: &Assignment) {
        let key = assignment.key;
        if let Some((_, switch)) = SWITCHES.iter().find(|(name, _)| *name == key.text) {
            return self.switch(*switch, assignment);
        }
        match key.text {
            "SystemCallFilter" | "SystemCallLog" => {
                let is_filter = key.text == "SystemCallFilter";
                let list = match is_filter {
                    true => &mut self.settings.filter,
                    false => &mut self.settings.log,
                };
                let mut reading = Reading {
                    native: self.native,
                    is_filter,
                    sink: self.sink,
                };
                reading.assign(list, assignment);
            }
            "SystemCallErrorNumber" => self.errno(assignment),
            "SystemCallArchitectures" => self.arches(assignment),
            "RestrictAddressFamilies" => self.families(assignment),
            "RestrictNamespaces" => self.namespaces(assignment),
            _ => self.personality(assignment),
        }
    }

    fn switch(&mut self, switch: Switch, assignment: &Assignment) {
        let is_on = match assignment.words.as_slice() {
            [] => Some(false),
            [word] => boolean(word.text),
            _ => None,
        };
        let Some(is_on) = is_on else {
            let message = format!("`{}=` takes a boolean", assignment.key.text);
            let mut words = assignment.words.iter().map(|word| word.span);
            let first = words.next().unwrap_or(assignment.key.span);
            let value = words.fold(first, Span::to);
            return self.sink.report(
                Diagnostic::warning(code::SYSTEMD_VALUE, message)
                    .label(value, "systemd ignores this")
                    .help("write `yes` or `no`"),
            );
        };
        let switches = &mut self.settings.switches;
        switches.retain(|(on, _)| *on != switch);
        if is_on {
            switches.push((switch, assignment.key.span));
        }
    }

    fn errno(&mut self, assignment: &Assignment) {
        self.settings.errno = match assignment.words.as_slice() {
            [] => None,
            [word, ..] => match calls::parse_answer(word.text, self.native) {
                Some(answer) => Some(answer),
                None => {
                    let diagnostic = calls::bad_answer(word.text, word.span);
                    return self.sink.report(diagnostic);
                }
            },
        };
    }

    fn arches(&mut self, assignment: &Assignment) {
        if assignment.words.is_empty() {
            self.settings.arches = None;
        }
        for word in &assignment.words {
            let arch = match word.text {
                "native" => Some(self.native),
                name => arch(name),
            };
            let Some(arch) = arch else {
                let known = ARCHES.iter().map(|(name, _)| *name);
                let known = known.chain(Arch::all().map(Arch::name)).chain(["native"]);
                let help = match suggest::nearest(word.text, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`native` is this machine's architecture".to_owned(),
                };
                self.ignored(*word, "architecture", &help);
                continue;
            };
            let initial = (BTreeSet::from([self.native]), assignment.key.span);
            let (arches, _) = self.settings.arches.get_or_insert(initial);
            arches.insert(arch);
        }
    }

    fn families(&mut self, assignment: &Assignment) {
        let span = assignment.key.span;
        let (words, is_inverted) = match assignment.words.as_slice() {
            [] => {
                self.settings.families = None;
                return;
            }
            [word] if word.text == "none" => {
                self.settings.families = Some(Families {
                    is_allow_list: true,
                    families: BTreeSet::new(),
                    span,
                });
                return;
            }
            words => without_tilde(words),
        };
        let native = self.native;
        let list = self.settings.families.get_or_insert(Families {
            is_allow_list: !is_inverted,
            families: BTreeSet::new(),
            span,
        });
        let mut unknown = Vec::new();
        for word in words {
            let is_family = word.text.starts_with("AF_");
            match consts::value(native, word.text).filter(|_| is_family) {
                None => unknown.push(word),
                Some(family) if is_inverted == list.is_allow_list => {
                    list.families.remove(&family);
                }
                Some(family) => drop(list.families.insert(family)),
            }
        }
        for word in unknown {
            let known = consts::names(native).filter(|name| name.starts_with("AF_"));
            let help = match suggest::nearest(word.text, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`tamis tables constants AF_` lists them".to_owned(),
            };
            self.ignored(word, "address family", &help);
        }
    }

    fn namespaces(&mut self, assignment: &Assignment) {
        let span = assignment.key.span;
        let all = all_namespaces();
        match assignment.words.as_slice() {
            [] => {
                self.settings.namespaces = None;
                return;
            }
            [word] => match boolean(word.text) {
                Some(true) => {
                    self.settings.namespaces = Some((0, span));
                    return;
                }
                Some(false) => {
                    self.settings.namespaces = Some((all, span));
                    return;
                }
                None => {}
            },
            _ => {}
        }
        let (words, is_inverted) = without_tilde(&assignment.words);
        let mut flags = 0;
        for word in words {
            match NAMESPACES.iter().find(|(name, _)| *name == word.text) {
                Some((_, flag)) => flags |= flag,
                None => {
                    let names = NAMESPACES.map(|(name, _)| name);
                    let help = format!("there are {}", names.join(", "));
                    self.ignored(word, "kind of namespaces", &help);
                    return;
                }
            }
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
        self.settings.personality = None;
        if let [word, ..] = assignment.words.as_slice() {
            match arch(word.text) {
                Some(arch) => self.settings.personality = Some(arch),
                None => self.ignored(*word, "architecture", "write `x86` or `x86-64`"),
            }
        }
    }

    /// Warns of an unknown name, which systemd ignores.
    fn ignored(&mut self, word: Word, what: &str, help: &str) {
        let message = format!("unknown {what} `{}`", word.text);
        self.sink.report(
            Diagnostic::warning(code::SYSTEMD_VALUE, message)
                .label(word.span, "systemd ignores this")
                .help(help),
        );
    }
}

fn arch(name: &str) -> Option<Arch> {
    let theirs = ARCHES.iter().find(|(theirs, _)| *theirs == name);
    theirs
        .map(|(_, arch)| *arch)
        .or_else(|| Arch::from_name(name))
}

/// systemd's name of an architecture, if it has one.
pub(crate) fn arch_name(arch: Arch) -> Option<&'static str> {
    let theirs = ARCHES.iter().find(|(_, ours)| *ours == arch);
    let is_unknown = matches!(arch, Arch::M68k | Arch::Sh | Arch::Sheb | Arch::Riscv32);
    let ours = Some(arch.name()).filter(|_| !is_unknown);
    theirs.map(|(name, _)| *name).or(ours)
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "y" | "true" | "t" | "on" => Some(true),
        "0" | "no" | "n" | "false" | "f" | "off" => Some(false),
        _ => None,
    }
}
