//! Units compared with the filters that systemd installs for them, and systemd's sets with its own list.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::Arch;
use tamis_bpf::Program;
use tamis_diag::{Sources, render};
use tamis_policy::systemd::{self, PointRelease, SystemdOptions, SystemdVersion};
use tamis_prover::{Answer, Limits, Subject, decide};
use tamis_rules::Ruleset;
use tamis_testkit::corpus;

/// The directives of the corpus's stack, in the order of its filters, with the number of filters of each.
const STACK: [(&str, usize); 14] = [
    ("RestrictAddressFamilies=none", 2),
    ("MemoryDenyWriteExecute=yes", 3),
    ("RestrictRealtime=yes", 3),
    ("RestrictSUIDSGID=yes", 3),
    ("RestrictNamespaces=yes", 3),
    ("ProtectHostname=yes", 3),
    ("ProtectKernelTunables=yes", 2),
    ("ProtectKernelModules=yes", 3),
    ("ProtectKernelLogs=yes", 3),
    ("ProtectClock=yes", 3),
    ("PrivateDevices=yes", 3),
    ("SystemCallArchitectures=native", 1),
    ("LockPersonality=yes", 1),
    (SERVICE, 1),
];
/// systemd's libseccomp did not know `uretprobe`, a member of `@default`.
const SERVICE: &str = "SystemCallFilter=@system-service\nSystemCallFilter=~uretprobe";

/// The systemd of the corpus.
fn options() -> SystemdOptions {
    SystemdOptions {
        version: SystemdVersion {
            major: 252,
            point: PointRelease::Number(38),
        },
        ..SystemdOptions::new(Arch::X86_64)
    }
}

fn read(text: &str) -> Ruleset {
    let mut sources = Sources::new();
    let source = sources.add("x.service", text);
    let parsed = systemd::parse(&sources, source, &options());
    let messages = render::render(&parsed.diagnostics, &sources, false);
    assert_eq!(messages, "", "{text}");
    parsed.ruleset.expect("there was no message")
}

fn unit<'d>(directives: impl IntoIterator<Item = &'d str>) -> Ruleset {
    let lines: Vec<&str> = directives.into_iter().collect();
    read(&format!(
        "[Service]\nSystemCallErrorNumber=EPERM\n{}\n",
        lines.join("\n")
    ))
}

fn stack() -> Vec<Program> {
    let names = (0..34).map(|number| format!("systemd/stack/stack-{number:02}.bpf"));
    names.map(|name| corpus::program(&name)).collect()
}

/// The prover's answer about a unit and a stack of programs.
fn compare(ruleset: &Ruleset, programs: &[Program]) -> Answer {
    let members = programs.iter().map(Subject::Program);
    let members: Vec<Subject> = members.collect();
    decide(
        &Subject::Ruleset(ruleset),
        &Subject::Stack(&members),
        &Limits::default(),
    )
}

#[test]
fn a_unit_is_the_stack_that_systemd_installs() {
    let programs = stack();
    let ruleset = unit(STACK.map(|(directive, _)| directive));
    let answer = compare(&ruleset, &programs);
    println!("{answer:x?}");
    assert!(matches!(answer, Answer::Equal(_)), "{answer:x?}");
}

#[test]
fn each_directive_is_the_filters_that_systemd_installs_for_it() {
    let programs = stack();
    let mut rest = programs.as_slice();
    for (directive, count) in STACK {
        let (filters, others) = rest.split_at(count);
        rest = others;
        // After SystemCallArchitectures=native systemd has no filters for other architectures.
        let is_alone = !["LockPersonality=yes", SERVICE].contains(&directive);
        let (ruleset, filters) = match is_alone {
            true => (unit([directive]), filters.to_vec()),
            false => {
                let native = programs[31].clone();
                let both = [&[native], filters].concat();
                (unit(["SystemCallArchitectures=native", directive]), both)
            }
        };
        let answer = compare(&ruleset, &filters);
        println!("{directive}: {answer:x?}");
        assert!(
            matches!(answer, Answer::Equal(_)),
            "{directive} {answer:x?}"
        );
    }
}

/// The number of filters of each directive, and of all together.
#[test]
fn filters_are_counted_as_systemd_installs_them() {
    let count = |directives: &[&str]| {
        let text = format!("[Service]\n{}\n", directives.join("\n"));
        let mut sources = Sources::new();
        let source = sources.add("x.service", text);
        systemd::count_filters(&sources, source, &options())
    };
    let late = ["LockPersonality=yes", SERVICE];
    for (directive, filters) in STACK {
        match late.contains(&directive) {
            true => assert_eq!(
                count(&["SystemCallArchitectures=native", directive]),
                filters + 1
            ),
            false => assert_eq!(count(&[directive]), filters, "{directive}"),
        }
    }
    let all = STACK.map(|(directive, _)| directive);
    let filters: usize = STACK.iter().map(|(_, filters)| filters).sum();
    assert_eq!(count(&all), filters);
    assert_eq!(count(&["Nice=5"]), 0);
    assert_eq!(count(&["SystemCallArchitectures=native x86 x32"]), 0);
}

/// The members of a set that systemd prints, with those of sets in it.
fn printed(all: &BTreeMap<&str, Vec<&str>>, set: &str) -> BTreeSet<String> {
    let mut members = BTreeSet::new();
    for member in &all[set] {
        match member.starts_with('@') {
            true => members.append(&mut printed(all, member)),
            false => drop(members.insert((*member).to_owned())),
        }
    }
    members
}

#[test]
fn sets_are_those_that_systemd_prints() {
    let text = corpus::text("systemd/systemd-252-syscall-sets.txt");
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut set = "";
    for line in text.lines() {
        match line.strip_prefix("    ") {
            Some(member) if !member.starts_with('#') => all.entry(set).or_default().push(member),
            Some(_) => {}
            None => set = line,
        }
    }
    let ours = systemd::sets(options().version);
    assert_eq!(ours.len(), all.len());
    for (set, calls) in ours {
        let calls: BTreeSet<String> = calls.into_iter().map(str::to_owned).collect();
        assert_eq!(calls, printed(&all, set), "{set}");
    }
}
