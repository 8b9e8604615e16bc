//! Units against the filters that the machine's systemd installs for them.
//!
//! Random units are started by systemd in namespaces, and the filters of their processes are proved equal to the
//! ruleset of tamis, or stricter for a reason that is listed here. Calls unknown to the machine's libseccomp are
//! excluded: systemd ignores their names, and a newer libseccomp has them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use tamis_abi::{Action, Arch, Endian, syscall};
use tamis_bpf::Program;
use tamis_diag::{Diagnostic, Severity, Sources};
use tamis_export as export;
use tamis_export::convert::{Source, convert};
use tamis_policy::Parsed;
use tamis_policy::code;
use tamis_policy::systemd::{self, SystemdOptions, SystemdVersion};
use tamis_prover::{ComparisonResult, Limits, Report, Scope, Space, Subject, prove};
use tamis_rules::{IntervalSet, Predicate, Rule, Ruleset, Section};
use tamis_testkit::generate::plain::plain;
use tamis_testkit::generate::ruleset::{Size, ruleset};
use tamis_testkit::generate::unit::unit;
use tamis_testkit::libseccomp::Library;
use tamis_testkit::oracle::{Class, Classes, contradicts_its_rules};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip::{self, Judge, Need};
use tamis_testkit::systemd::{EXIT_SECCOMP, Loaded, Started, Systemd, Unit};

/// How long systemd may take for the units of one boot.
const LIMIT: Duration = Duration::from_secs(120);
/// With more, systemd takes longer for each.
const UNITS_IN_A_BOOT: usize = 300;
/// The filters killed the process before the program, and can't be read.
const KILLED: Class = Class::NotComparable("a filter kills the process before it can be read");
/// Where the machine's services are.
const SERVICES: &str = "/usr/lib/systemd/system";
/// Calls that systemd makes between the last filter and the start of the program.
const KEPT: &str = "fcntl close";
/// Calls that systemd makes from its first filter to the start of the program.
const STARTING: &str = "brk close execve fcntl mmap mprotect munmap prctl seccomp write";
/// Random units; only `.ci/run full` tries all.
const RANDOM: u64 = 1500;
const LOCAL: [Arch; 3] = [Arch::X86_64, Arch::X86, Arch::X32];

/// The installed systemd, by its own output: `systemd 252 (252.38-1~deb12u1)`.
fn installed() -> SystemdVersion {
    static INSTALLED: LazyLock<SystemdVersion> = LazyLock::new(|| {
        let text = Systemd::version().expect("it was found before");
        let inside = text.split(['(', ')']).nth(1).unwrap_or_default();
        inside.parse().expect("a version")
    });
    *INSTALLED
}

fn options() -> SystemdOptions {
    SystemdOptions {
        version: installed(),
        ..SystemdOptions::new(Arch::X86_64)
    }
}

/// Reads the text of `systemctl cat`: no name of a unit identifies it as a single file.
fn read(text: &str) -> Parsed {
    let mut sources = Sources::new();
    let source = sources.add("<stdin>", text);
    systemd::parse(&sources, source, &options())
}

/// The number of filters that tamis predicts.
fn count(text: &str) -> usize {
    let mut sources = Sources::new();
    let source = sources.add("<stdin>", text);
    systemd::count_filters(&sources, source, &options())
}

/// A filter that kills for the calls that libseccomp doesn't know: with it on both sides they are left out.
fn mask(library: &Library) -> Ruleset {
    let sections = LOCAL.map(|arch| {
        let has_number = |name: &str| library.resolve_on(arch, name).is_some_and(|nr| nr >= 0);
        let is_x86 = arch == Arch::X86;
        // On x86 it has numbers of the kernel's that are negative: those of calls that socketcall and ipc make.
        let is_known = |name: &str| has_number(name) || is_x86 && library.resolve(name).is_some();
        let unknown = syscall::all(arch).filter(|(_, name)| !is_known(name));
        let syscalls = IntervalSet::from_iter(unknown.map(|(nr, _)| nr.0..=nr.0));
        let rule = Rule {
            syscalls,
            when: Predicate::True,
            action: Action::KILL_PROCESS,
            origin: None,
        };
        Section {
            arch,
            rules: vec![rule],
            default: Action::ALLOW,
        }
    });
    Ruleset::new(sections.to_vec(), Action::ALLOW).expect("no architecture twice")
}

fn compare(ruleset: &Ruleset, filters: &[Program], mask: &Ruleset, scope: &Scope) -> Report {
    let mask = Subject::Ruleset(mask);
    let ours = [Subject::Ruleset(ruleset), mask];
    let mut theirs = Subject::programs(filters);
    theirs.push(mask);
    prove(
        &Subject::Stack(&ours),
        &Subject::Stack(&theirs),
        scope,
        &Limits::default(),
    )
}

/// Whether the only errors are of lines outside of a section, and a drop-in begins with such lines: systemd has files,
/// not the ambiguous titles.
fn is_unclear(unit: &Unit, diagnostics: &[Diagnostic]) -> bool {
    let mut drop_ins = unit.drop_ins.iter();
    let has_bare = drop_ins.any(|text| !text.starts_with('['));
    let mut errors = diagnostics
        .iter()
        .filter(|said| said.severity == Severity::Error);
    has_bare && errors.all(|error| error.code == code::SYSTEMD_SYNTAX)
}

fn judge(unit: &Unit, started: &Started, mask: &Ruleset) -> Class {
    let filters = match started {
        Started::Filters(filters) => Some(filters),
        Started::NotLoaded => None,
        Started::Failed { status, .. } if *status == EXIT_SECCOMP << 8 => None,
        Started::Failed { filters, .. } => match filters {
            // A later failure, such as of the execution of the program, occurs under all filters.
            Some(filters) => Some(filters),
            None => return KILLED,
        },
    };
    let parsed = read(&unit.cat());
    let (ruleset, filters) = match (parsed.ruleset, filters) {
        (None, None) => return Class::BothRefuse,
        (Some(_), None) => return Class::Wrong(format!("systemd refuses it: {started:?}")),
        (None, Some(_)) if is_unclear(unit, &parsed.diagnostics) => {
            return Class::Stricter("assignments after the title of a file are errors");
        }
        (None, Some(_)) => return Class::Wrong("systemd accepts it".to_owned()),
        (Some(ruleset), Some(filters)) => (ruleset, filters),
    };
    if filters.iter().any(contradicts_its_rules) {
        return Class::NotComparable("a program contradicts its rules");
    }
    let counted = count(&unit.cat());
    if counted != filters.len() {
        let message = format!("{counted} filters counted, {} installed", filters.len());
        return Class::Wrong(message);
    }
    let report = compare(&ruleset, filters, mask, &Scope::default());
    if report.result == Ok(ComparisonResult::Equal) {
        return Class::Equal;
    }
    let local = Scope {
        arches: LOCAL.to_vec(),
        ..Scope::default()
    };
    let is_local = compare(&ruleset, filters, mask, &local).result != Ok(ComparisonResult::Equal);
    if !is_local && report.result == Ok(ComparisonResult::Stricter) {
        return Class::Stricter("calls of architectures that the machine doesn't run");
    }
    Class::Wrong(format!("{report:x?}"))
}

/// systemd, and the calls of its libseccomp.
struct Oracle {
    systemd: Systemd,
    library: Library,
    mask: Ruleset,
}

impl Oracle {
    /// The machine's; the test ends without one.
    fn find() -> Oracle {
        skip::unless_live();
        skip::unless_asked(Judge::Systemd);
        let found = Systemd::find().and_then(|systemd| {
            if !cfg!(target_arch = "x86_64") {
                return Err("this machine is not x86_64".to_owned());
            }
            if !systemd.version.starts_with("systemd 252 ") {
                return Err(format!("this is {}", systemd.version));
            }
            let library = Library::open()?;
            let mask = mask(&library);
            Ok(Oracle {
                systemd,
                library,
                mask,
            })
        });
        found.unwrap_or_else(|reason| skip::because(Need::Systemd, reason))
    }

    /// Starts units and counts their classes; prints each wrong one.
    fn classes(&self, units: &[Unit]) -> Classes {
        let mut classes = Classes::default();
        for units in units.chunks(UNITS_IN_A_BOOT) {
            let loaded = self.systemd.start(units, LIMIT).expect("it can be booted");
            let loaded = loaded.unwrap_or_else(|| panic!("systemd took longer than {LIMIT:?}"));
            for (unit, loaded) in units.iter().zip(&loaded) {
                let class = match self.is_silent(unit, loaded) {
                    true => Class::Wrong(format!("not all said: {:?}", loaded.messages)),
                    false => judge(unit, &loaded.started, &self.mask),
                };
                classes.add(class, &format!("{unit:?}"));
            }
        }
        classes
    }

    /// Whether systemd complains about more lines of a unit than there are diagnostics. tamis has more names of calls.
    fn is_silent(&self, unit: &Unit, loaded: &Loaded) -> bool {
        let is_newer = |message: &str| {
            let name = message.rsplit_once("Failed to parse system call, ignoring: ");
            name.is_some_and(|(_, name)| {
                self.library.resolve(name).is_none() && syscall::is_known(name)
            })
        };
        let messages = loaded.messages.iter().filter(|message| !is_newer(message));
        // `FILE:LINE: …`
        let lines = messages.map(|message| message.splitn(3, ':').take(2).collect::<Vec<_>>());
        let lines: BTreeSet<Vec<&str>> = lines.collect();
        let parsed = read(&unit.cat());
        let said = parsed.diagnostics.iter();
        lines.len() > said.filter(|said| said.code != code::SYSTEMD_EMPTY).count()
    }
}

/// Units that were read otherwise once, and other directives alone, which install nothing or change nothing.
const FIXED: [&str; 63] = [
    // Once looser.
    "MemoryDenyWriteExecute=yes\nMemoryDenyWriteExecute=",
    "LockPersonality=yes\nLockPersonality=",
    "Personality=x86\nPersonality=\nPersonality=x86-64\nPersonality=arm64\nLockPersonality=yes",
    "SystemCallFilter=\"@system-service\"",
    "SystemCallFilter='~ptrace'",
    "RestrictAddressFamilies=\"~AF_UNIX\"",
    "SystemCallFilter=~ptrace:eperm",
    "SystemCallFilter=~mount:0x1",
    "SystemCallErrorNumber=\"EPERM\"\nSystemCallFilter=~ptrace",
    "SystemCallErrorNumber=010\nSystemCallFilter=~ptrace",
    "SystemCallFilter=~ptrace\rSystemCallFilter=~mount",
    "RestrictAddressFamilies=none\nRestrictAddressFamilies=~AF_UNIX",
    // Once stricter.
    "MemoryDenyWriteExecute=\"yes\"",
    "RestrictNamespaces=\"yes\"",
    "ProtectClock=\"yes\"",
    "SystemCallLog=~",
    "SystemCallFilter=~ptrace:ECHO",
    "SystemCallArchitectures=x86_64",
    "RestrictAddressFamilies=af_unix",
    "SystemCallFilter=~sendto:1 socketcall:2",
    "SystemCallFilter=@system-service\nSystemCallFilter=~msgrcv:5",
    "\u{a0}ProtectClock=yes",
    // Once accepted.
    "[Service",
    "['Service']",
    "DynamicUser=",
    "DynamicUser=maybe",
    "SystemCallFilter=@system-service\nSystemCallFilter=~ptrace:kill",
    "SystemCallFilter=@system-service\nSystemCallErrorNumber=1\nSystemCallFilter=~ptrace:EPERM",
    "SystemCallFilter=~ptrace:4095",
    "SystemCallErrorNumber=4095\nSystemCallFilter=~ptrace",
    "SystemCallErrorNumber=4095\nSystemCallFilter=@system-service",
    "SystemCallErrorNumber=4095\nSystemCallFilter=~ptrace:1",
    "SystemCallErrorNumber=4095",
    // Errnos.
    "SystemCallErrorNumber=0b 11\nSystemCallFilter=~ptrace",
    "SystemCallErrorNumber= +0x 1\nSystemCallFilter=~ptrace",
    "SystemCallErrorNumber=0o+7\nSystemCallFilter=~ptrace",
    "SystemCallErrorNumber=-0\nSystemCallFilter=~ptrace:-0",
    "SystemCallErrorNumber=4294967297\nSystemCallFilter=~ptrace:2147483648",
    "SystemCallErrorNumber=EPERM\nSystemCallErrorNumber=\nSystemCallFilter=~ptrace",
    // Lines.
    "SystemCallFilter=~ptrace\\",
    "SystemCallFilter=~ptrace \\\n[Service]\nProtectClock=yes",
    "SystemCallFilter\\\n=~ptrace",
    "X-A=b \\\n\u{feff}# no comment\nProtectClock=yes",
    // Other directives.
    "NoNewPrivileges=yes",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "ProtectControlGroups=yes",
    "ProtectProc=invisible",
    "PrivateNetwork=yes",
    "PrivateTmp=yes",
    "PrivateUsers=yes",
    "PrivateIPC=yes",
    "CapabilityBoundingSet=",
    "AmbientCapabilities=CAP_KILL",
    "KeyringMode=private",
    "UMask=0777",
    "User=65534",
    "User=65534\nSystemCallFilter=@system-service",
    "User=65534\nAmbientCapabilities=CAP_KILL\nSystemCallFilter=@system-service",
    "Type=simple\nSystemCallFilter=@system-service",
    "Type=exec\nSystemCallFilter=~ptrace",
    "Type=exec\nSystemCallFilter=getpid",
    "SecureBits=noroot",
];

/// Lines around systemd's limit of 1 MiB.
fn long_lines() -> Vec<Unit> {
    const LIMIT: usize = 1 << 20;
    let line = |length: usize, end: &str| {
        let start = "X-A=";
        format!("{start}{}{end}\n", "a".repeat(length - start.len()))
    };
    let alone = (LIMIT - 2..=LIMIT + 2).map(|length| line(length, ""));
    let joined = (LIMIT - 4..=LIMIT).map(|length| format!("{}b", line(length, "\\")));
    let commented = [format!("# {}", line(LIMIT + 10, ""))].into_iter();
    let texts = alone.chain(joined).chain(commented);
    let unit = |text: String| Unit {
        text: format!("ProtectClock=yes\n{text}\nProtectHostname=yes\n"),
        drop_ins: Vec::new(),
    };
    texts.map(unit).collect()
}

/// The names of all calls, each denied with an errno of its own, a few in a unit; and all sets.
fn listings() -> Vec<Unit> {
    const NAMES_IN_A_UNIT: usize = 8;
    let names: Vec<&str> = syscall::names().filter(|name| *name != "execve").collect();
    let text = |names: &[&str]| {
        let words = names.iter().zip(11..);
        let words: Vec<String> = words
            .map(|(name, errno)| format!("{name}:{errno}"))
            .collect();
        format!("SystemCallFilter=~{}\n", words.join(" "))
    };
    let names = names.chunks(NAMES_IN_A_UNIT).map(text);
    let sets = systemd::sets(installed()).into_iter().map(|(set, _)| set);
    let sets = sets.map(|set| format!("SystemCallFilter=~{set}\nSystemCallFilter=execve {KEPT}\n"));
    let unit = |text| Unit {
        text,
        drop_ins: Vec::new(),
    };
    let fixed = FIXED.iter().map(|text| format!("{text}\n"));
    names.chain(sets).chain(fixed).map(unit).collect()
}

#[test]
fn every_call_is_the_filter_that_systemd_installs_for_it() {
    let oracle = Oracle::find();
    oracle.classes(&listings()).check();
}

/// The directives of the services that the machine has which install filters.
fn services_of_the_machine() -> Vec<Unit> {
    const STARTS: [&str; 8] = [
        "SystemCall",
        "Restrict",
        "MemoryDeny",
        "Protect",
        "PrivateDevices",
        "LockPersonality",
        "Personality",
        "DynamicUser",
    ];
    let folder = fs::read_dir(SERVICES).into_iter();
    let files = folder
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()));
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "service"));
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    let texts = files
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok());
    let texts = texts.map(|text| {
        let lines = text
            .lines()
            .filter(|line| STARTS.iter().any(|start| line.starts_with(start)));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    });
    let unit = |text| Unit {
        text,
        drop_ins: Vec::new(),
    };
    texts.filter(|text| !text.is_empty()).map(unit).collect()
}

/// The ruleset without denials of systemd's own calls from its first filter to the start of the program: most processes
/// get there, and the filters can be read. `None` if it denies the whole architecture. A drop-in names calls for all
/// architectures at once.
fn kept_alive(ruleset: &Ruleset) -> Option<Ruleset> {
    ruleset.section(Arch::X86_64)?;
    let mut sections = ruleset.sections().to_vec();
    for section in &mut sections {
        let calls = STARTING.split(' ');
        let numbers = calls.filter_map(|name| syscall::number(section.arch, name));
        let allowed = Rule {
            syscalls: IntervalSet::from_iter(numbers.map(|nr| nr.0..=nr.0)),
            when: Predicate::True,
            action: Action::ALLOW,
            origin: None,
        };
        section.rules.insert(0, allowed);
    }
    Some(Ruleset::new(sections, ruleset.bad_arch).expect("no architecture twice"))
}

/// Drop-ins exported from random rulesets.
fn exported() -> Vec<Unit> {
    let exporter = export::ALL.into_iter().find(|own| own.name == "systemd");
    let exporter = exporter.expect("an exporter");
    let texts = seeds::selected(0..400).filter_map(|seed| {
        let rng = &mut Rng::new(seed);
        let meant = match rng.chance(1, 2) {
            true => plain(rng),
            false => ruleset(rng, Size::SMALL, Endian::Little),
        };
        let mut space = Space::new(Limits::default());
        let function = space.ruleset(&kept_alive(&meant)?).ok()?;
        let source = Source {
            systemd: systemd::Settings {
                asked: Some(installed()),
                installed: None,
            },
            ..Source::named("own")
        };
        let converted = convert(&mut space, function, exporter, &source).ok()?;
        let is_ours = converted.machines[0].native == Arch::X86_64;
        is_ours.then_some(converted.text)
    });
    let unit = |text| Unit {
        text: String::new(),
        drop_ins: vec![text],
    };
    texts.map(unit).collect()
}

#[test]
fn services_of_the_machine_are_the_filters_that_systemd_installs() {
    let oracle = Oracle::find();
    let units = services_of_the_machine();
    if units.is_empty() {
        let reason = format!("{SERVICES} has no service with directives that install filters");
        skip::because(Need::Systemd, reason);
    }
    let classes = oracle.classes(&units);
    classes.check();
    assert_eq!(classes.count(|class| *class == Class::BothRefuse), 0);
}

#[test]
fn systemd_reads_what_is_exported() {
    let oracle = Oracle::find();
    let units = exported();
    assert!(units.len() > seeds::least(100), "{}", units.len());
    let classes = oracle.classes(&units);
    classes.check();
    let is_right =
        |class: &Class| matches!(class, Class::Equal | Class::Stricter(_)) || *class == KILLED;
    assert_eq!(classes.count(|class| !is_right(class)), 0);
}

#[test]
fn a_boot_beyond_its_limit_is_ended() {
    let oracle = Oracle::find();
    let started = oracle.systemd.start(&listings(), Duration::ZERO);
    assert_eq!(started.expect("it can be booted"), None);
}

#[test]
fn lines_are_as_long_as_systemd_lets_them_be() {
    let oracle = Oracle::find();
    oracle.classes(&long_lines()).check();
}

#[test]
fn random_units_are_the_filters_that_systemd_installs() {
    let oracle = Oracle::find();
    println!("{}", oracle.systemd.version);
    let seeds = seeds::selected(0..RANDOM);
    let units: Vec<Unit> = seeds.map(|seed| unit(&mut Rng::new(seed))).collect();
    let classes = oracle.classes(&units);
    classes.check();
    // Whether a filter lets a process live until its program depends on the C library.
    classes.check_row("systemd", "systemd 252", 10);
}
