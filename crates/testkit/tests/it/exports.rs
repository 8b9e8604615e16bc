//! Policies in other languages: those of the corpus are exported and read back, and pseudo filter code is read.

use std::collections::BTreeMap;

use tamis_abi::{Action, ActionKind, Arch, Endian, SeccompData, syscall};
use tamis_diag::Sources;
use tamis_export::convert::{Refusal, Source, convert, read_back};
use tamis_export::{self as export, Exporter, pfc};
use tamis_policy::embedded;
use tamis_policy::firecracker;
use tamis_policy::front_end::{self, ParseOptions};
use tamis_policy::loader::NoIncludes;
use tamis_policy::systemd::{self, SystemdVersion};
use tamis_policy::tamis::TamisOptions;
use tamis_prover::{ComparisonResult, Limits, Space};
use tamis_rules::Ruleset;
use tamis_testkit::corpus;
use tamis_testkit::generate::ruleset::{Size, call, ruleset};
use tamis_testkit::pseudo_code::PseudoCode;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

/// The policies of the corpus that need no other files, by directory, suffix and language.
const POLICIES: [(&str, &str, &str); 5] = [
    ("docker", ".json", "oci"),
    ("firecracker", ".json", "firecracker"),
    ("kafel", ".policy", "kafel"),
    ("minijail", ".policy", "minijail"),
    ("gvisor", ".json", ""),
];

/// The policies of the corpus that can be read by themselves, with their names, for a machine of the first of these
/// architectures that runs programs of the others, too.
fn policies(arches: &[Arch]) -> Vec<(String, Ruleset)> {
    let mut policies = Vec::new();
    for (folder, suffix, language) in POLICIES {
        for name in corpus::files(folder, suffix) {
            let read = match front_end::ALL.into_iter().find(|own| own.name == language) {
                Some(front_end) => {
                    let mut sources = Sources::new();
                    let source = sources.add(name.as_str(), corpus::text(&name));
                    let options = ParseOptions {
                        asked_arches: arches.to_vec(),
                        firecracker: firecracker::Settings {
                            thread: (language == "firecracker").then(|| "vmm".to_owned()),
                        },
                        ..ParseOptions::new(arches[0])
                    };
                    let parse = front_end.parse;
                    parse(&mut sources, source, &mut NoIncludes, &options)
                        .parsed
                        .ruleset
                }
                // The others are filters of x86_64 and a profile of calls.
                None if name.contains("profile") || arches != [Arch::X86_64] => continue,
                None => Some(corpus::gvisor::ruleset(&name)),
            };
            policies.extend(read.map(|ruleset| (name, ruleset)));
        }
    }
    policies
}

/// The result of an export, of a unit for this release of systemd.
fn outcome(
    exporter: &Exporter,
    name: &str,
    meant: &Ruleset,
    release: SystemdVersion,
) -> &'static str {
    let mut space = Space::new(Limits::default());
    let Ok(function) = space.ruleset(meant) else {
        return "gave up";
    };
    let sections = meant.sections().iter();
    let source = Source {
        arches: sections.map(|section| section.arch).collect(),
        systemd: systemd::Settings {
            asked: Some(release),
            installed: None,
        },
        ..Source::named(name)
    };
    let converted = match convert(&mut space, function, exporter, &source) {
        Ok(converted) => converted,
        Err(Refusal::Limit(_)) => return "gave up",
        Err(Refusal::Inexpressible(why)) if why.message.contains("`write`") => return "write",
        Err(error) => panic!("{name} as {}: {error}", exporter.name),
    };
    let native = converted.machines[0].native;
    let parsed =
        read_back(exporter, &converted.text, native, &source.systemd).expect("it was read before");
    let parsed = space.ruleset(&parsed).expect("it was read before");
    match (converted.losses.is_empty(), converted.comparison) {
        (true, result) => {
            assert_eq!(
                (result, parsed),
                (ComparisonResult::Equal, function),
                "{name}"
            );
            "the same"
        }
        (false, ComparisonResult::Equal) => "the same for its architectures",
        (false, ComparisonResult::SameActions | ComparisonResult::Stricter) => "stricter",
        (false, result) => panic!("{name} as {}: {result:?}", exporter.name),
    }
}

#[test]
fn policies_of_the_corpus_come_back_equal_or_stricter() {
    let policies = policies(&[Arch::X86_64]);
    let mut tally: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (name, meant) in policies.iter().step_by(seeds::every(3)) {
        for exporter in export::ALL {
            let outcome = outcome(exporter, name, meant, SystemdVersion::OLDEST);
            println!("{name} as {}: {outcome}", exporter.name);
            *tally.entry((exporter.name, outcome)).or_default() += 1;
            if exporter.name == "systemd" {
                assert_ne!(outcome, "write", "{name}");
                let newest = self::outcome(exporter, name, meant, SystemdVersion::newest());
                println!("{name} as the newest systemd: {newest}");
                *tally.entry(("newest systemd", newest)).or_default() += 1;
            }
        }
    }
    println!("{tally:#?}");
    assert!(
        tally.contains_key(&("newest systemd", "stricter")),
        "{tally:?}"
    );
    assert!(policies.len() > 20, "{}", policies.len());
    let same = |to, outcome| tally.get(&(to, outcome)).copied().unwrap_or(0);
    assert!(
        same("tamis", "the same") > 15 / seeds::every(3),
        "{tally:?}"
    );
    let as_oci = same("oci", "the same") + same("oci", "the same for its architectures");
    assert!(as_oci > 12 / seeds::every(3), "{tally:?}");
}

/// The architectures of machines on which calls are made through `socketcall` or `ipc`, too.
const WITH_MULTIPLEXERS: [&[Arch]; 5] = [
    &[Arch::X86],
    &[Arch::S390x],
    &[Arch::Ppc64le],
    &[Arch::X86_64, Arch::X86],
    &[Arch::X86_64, Arch::X86, Arch::X32],
];

/// The exporters of profiles, for libseccomp.
fn exporters_of_profiles() -> impl Iterator<Item = &'static Exporter> {
    let all = export::ALL.into_iter();
    all.filter(|exporter| ["oci", "spo"].contains(&exporter.name))
}

/// A multiplexer has the rules of all its calls, without their conditions on argument 0.
#[test]
fn policies_of_the_corpus_become_profiles_where_calls_are_multiplexed() {
    for arches in WITH_MULTIPLEXERS {
        let policies = policies(arches);
        let mut tally: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for (name, meant) in policies.iter().step_by(seeds::every(3)) {
            for exporter in exporters_of_profiles() {
                let outcome = outcome(exporter, name, meant, SystemdVersion::OLDEST);
                *tally.entry((exporter.name, outcome)).or_default() += 1;
            }
        }
        println!("{arches:?}: {tally:#?}");
        assert!(policies.len() > 10, "{arches:?}: {}", policies.len());
    }
}

/// A policy with a few rules for multiplexers and their calls.
fn policy_of_multiplexed_calls(rng: &mut Rng) -> String {
    let calls = ["socket", "bind", "socketcall", "msgrcv", "semget", "ipc"];
    let actions = ["allow", "errno(EACCES)", "errno(ENOSYS)", "log", "kill"];
    let comparisons = ["==", "!=", "<=", ">="];
    let mut text = format!("default {}\n", rng.choose(&actions));
    for _ in 0..rng.range(2..=6) {
        let tests: Vec<String> = (0..rng.range(0..=2))
            .map(|_| {
                let (arg, comparison) = (rng.range(0..=2), rng.choose(&comparisons));
                format!("arg[{arg}] {comparison} {}", rng.range(0..=3))
            })
            .collect();
        let (action, call) = (rng.choose(&actions), rng.choose(&calls));
        let condition = match tests.as_slice() {
            [] => String::new(),
            tests => format!("({})", tests.join(" && ")),
        };
        text.push_str(&format!("{action} {call}{condition}\n"));
    }
    text
}

#[test]
fn rules_for_multiplexed_calls_become_profiles() {
    let mut converted = 0;
    for seed in seeds::selected(0..150) {
        let text = policy_of_multiplexed_calls(&mut Rng::new(seed));
        let arches = WITH_MULTIPLEXERS[seed as usize % WITH_MULTIPLEXERS.len()];
        let mut sources = Sources::new();
        let source = sources.add("random.tamis", text.as_str());
        let options = TamisOptions::new(arches.to_vec());
        let parsed = tamis_policy::tamis::parse(&mut sources, source, &mut NoIncludes, &options);
        let Some(meant) = parsed.ruleset else {
            continue;
        };
        for exporter in exporters_of_profiles() {
            outcome(exporter, &text, &meant, SystemdVersion::OLDEST);
        }
        converted += 1;
    }
    assert!(converted > seeds::least(100), "{converted}");
}

#[test]
fn embedded_policies_become_profiles_on_all_architectures() {
    let single = Arch::all().map(|arch| vec![arch]);
    let several = WITH_MULTIPLEXERS.map(<[Arch]>::to_vec);
    for arches in single.chain(several) {
        for policy in embedded::ALL {
            let mut sources = Sources::new();
            let source = sources.add(policy.name, policy.text);
            let options = TamisOptions::new(arches.to_vec());
            let parsed =
                tamis_policy::tamis::parse(&mut sources, source, &mut NoIncludes, &options);
            let meant = parsed.ruleset.expect("it comes with tamis");
            for exporter in exporters_of_profiles() {
                let mut space = Space::new(Limits::default());
                let function = space.ruleset(&meant).expect("within the limits");
                let source = Source {
                    arches: arches.to_vec(),
                    ..Source::named(policy.name)
                };
                let name = (policy.name, exporter.name, &arches);
                match convert(&mut space, function, exporter, &source) {
                    Ok(converted) => {
                        let result = converted.comparison;
                        let is_looser = [ComparisonResult::Looser, ComparisonResult::Incomparable]
                            .contains(&result);
                        assert!(!is_looser, "{name:?}: {result:?}");
                    }
                    Err(Refusal::Inexpressible(_)) => println!("{name:?}: inexpressible"),
                    Err(error) => panic!("{name:?}: {error}"),
                }
            }
        }
    }
}

/// As a drop-in the text follows the lines of a unit, and must have the same meaning as alone.
#[test]
fn what_is_written_for_systemd_takes_back_what_a_unit_says() {
    let unit = export::ALL.into_iter().find(|own| own.name == "systemd");
    let systemd = unit.expect("an exporter");
    let units = [
        "Personality=x86\n",
        "SystemCallFilter=~@mount\n",
        "SystemCallFilter=@system-service\nSystemCallErrorNumber=ENOSYS\n",
        "SystemCallLog=@clock\nSystemCallArchitectures=native\n",
    ];
    let mut written = 0;
    for seed in seeds::selected(0..60) {
        let meant = ruleset(&mut Rng::new(seed), Size::SMALL, Endian::Little);
        let mut space = Space::new(Limits::default());
        let function = space.ruleset(&meant).expect("a small ruleset");
        let source = Source::named("own");
        let Ok(converted) = convert(&mut space, function, systemd, &source) else {
            continue;
        };
        let native = converted.machines[0].native;
        let mut meaning = |text: &str| {
            let parsed = read_back(systemd, text, native, &source.systemd).expect("a unit");
            space.ruleset(&parsed).expect("a small ruleset")
        };
        let alone = meaning(&converted.text);
        for unit in units {
            let behind = format!("[Service]\n{unit}{}", converted.text);
            assert_eq!(meaning(&behind), alone, "{behind}");
        }
        written += 1;
    }
    assert!(written > seeds::least(20), "{written}");
}

/// `LockPersonality=` locks to the value of `Personality=`, before or after it.
#[test]
fn a_locked_personality_is_0_whatever_the_unit_starts_with() {
    let unit = export::ALL.into_iter().find(|own| own.name == "systemd");
    let systemd = unit.expect("an exporter");
    let policy = "default errno(EPERM)\nbad-arch kill-thread\nallow read, write, personality(full(personality) == 0)\n";
    for arches in [&[Arch::X86_64][..], &[Arch::Aarch64, Arch::X86_64]] {
        let mut sources = Sources::new();
        let source = sources.add("policy", policy);
        let options = TamisOptions::new(arches.to_vec());
        let parsed = tamis_policy::tamis::parse(&mut sources, source, &mut NoIncludes, &options);
        let meant = parsed.ruleset.expect("a policy");
        let mut space = Space::new(Limits::default());
        let function = space.ruleset(&meant).expect("a small ruleset");
        let source = Source::named("own");
        let converted = convert(&mut space, function, systemd, &source);
        let converted = converted.expect("it can be said");
        assert!(
            converted.text.contains("\nLockPersonality=yes\n"),
            "{}",
            converted.text
        );
        assert_eq!(converted.machines.len(), arches.len());
        for machine in &converted.machines {
            let native = machine.native;
            let foreign = ["x86", "arm", "arm64", "x86-64"];
            let foreign = foreign.map(|name| format!("Personality={name}\n"));
            let locked = foreign
                .iter()
                .map(|line| format!("{line}LockPersonality=yes\n"));
            for unit in foreign.iter().cloned().chain(locked) {
                let behind = format!("[Service]\n{unit}{}", converted.text);
                let read = read_back(systemd, &behind, native, &source.systemd).expect("a unit");
                let of = |persona: u64| {
                    let nr = syscall::number(native, "personality").expect("a call");
                    let data = SeccompData {
                        arch: native.audit(),
                        nr: nr.0,
                        args: [persona, 0, 0, 0, 0, 0],
                        ..SeccompData::default()
                    };
                    (read.decide(&data).action, meant.decide(&data).action)
                };
                for persona in [0, 8, 0x10_0000, u64::MAX] {
                    let (unit, policy) = of(persona);
                    assert_eq!(unit, policy, "{native} personality({persona}): {behind}");
                }
            }
        }
    }
}

/// An action without data that the kernel ignores.
fn without_idle_data(action: Action) -> Action {
    match action.kind {
        ActionKind::Errno | ActionKind::Trap | ActionKind::Trace => action,
        kind => Action::new(kind, 0),
    }
}

#[test]
fn pseudo_filter_code_means_what_the_ruleset_means() {
    let (mut read, mut refused) = (0, BTreeMap::<String, usize>::new());
    for seed in seeds::selected(0..400) {
        let mut rng = Rng::new(seed);
        let endian = match seed % 4 {
            0 => Endian::Big,
            _ => Endian::Little,
        };
        let meant = ruleset(&mut rng, Size::SMALL, endian);
        let text = match pfc::text(&meant) {
            Ok(text) => text,
            Err(error) => {
                *refused.entry(error.to_string()).or_default() += 1;
                continue;
            }
        };
        let code = PseudoCode::parse(&text);
        for _ in 0..200 {
            let data = call(&mut rng, &meant);
            let expected = without_idle_data(meant.decide(&data).action);
            let actual = code.decide(&data);
            assert_eq!(actual, expected, "{data:x?}\n{meant}\n{text}");
        }
        read += 1;
    }
    println!("{read} read, refused: {refused:#?}");
    assert!(read > seeds::least(40), "{refused:?}");
}
