//! Parameters: the embedded policies with every value, and the option that selects values.

use tamis_abi::{Action, Arch, SeccompData};
use tamis_diag::Sources;
use tamis_policy::embedded;
use tamis_policy::loader::NoIncludes;
use tamis_policy::tamis::{self, Choice, TamisOptions};
use tamis_rules::Ruleset;

use crate::call;

const POLICIES: [&str; 3] = ["agent", "build", "service"];
const NETWORKS: [&str; 4] = ["none", "unix", "proxy", "full"];
const SWITCH: [&str; 2] = ["no", "yes"];
const ARCHES: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];
const EAFNOSUPPORT: Action = Action::errno(97);

/// The ruleset of an embedded policy with these values, without a diagnostic.
fn policy(name: &str, arches: &[Arch], choices: &[(&str, &str)]) -> Ruleset {
    let mut sources = Sources::new();
    let root = sources.add(name, embedded(name).expect("it is embedded").text);
    let choice = |(parameter, value): &(&str, &str)| Choice {
        parameter: (*parameter).to_owned(),
        value: (*value).to_owned(),
    };
    let options = TamisOptions {
        choices: choices.iter().map(choice).collect(),
        ..TamisOptions::new(arches.to_vec())
    };
    let parsed = tamis::parse(&mut sources, root, &mut NoIncludes, &options);
    let told = tamis_diag::render::render(&parsed.diagnostics, &sources, false);
    assert!(told.is_empty(), "{name} with {choices:?}:\n{told}");
    parsed.ruleset.expect("no errors")
}

fn every_setting(mut visit: impl FnMut(&str, [(&str, &str); 3])) {
    for name in POLICIES {
        for network in NETWORKS {
            for nested in SWITCH {
                for debug in SWITCH {
                    let set = [("network", network), ("nested", nested), ("debug", debug)];
                    visit(name, set);
                }
            }
        }
    }
}

#[test]
fn every_value_makes_a_policy_on_every_machine() {
    let all: Vec<Arch> = Arch::all().collect();
    every_setting(|name, set| drop(policy(name, &all, &set)));
}

/// The ten most frequent calls of the profile of ordinary programs.
const HOTTEST: [&str; 10] = [
    "futex",
    "newfstatat",
    "close",
    "read",
    "openat",
    "mmap",
    "fcntl",
    "rt_sigaction",
    "lseek",
    "readlinkat",
];

#[test]
fn the_hottest_calls_depend_on_no_argument() {
    every_setting(|name, set| {
        let rules = policy(name, &ARCHES, &set);
        for arch in ARCHES {
            let section = rules.section(arch).expect("it was selected");
            for hot in HOTTEST {
                let nr = call(arch, hot, &[]).nr;
                let tested = section.rules.iter().any(|rule| rule.syscalls.contains(nr));
                assert!(
                    !tested && section.default == Action::ALLOW,
                    "{name}: {hot} on {arch}"
                );
            }
        }
    });
}

#[test]
fn no_setting_has_the_families_types_and_protocols_of_others() {
    let inet = |family: u64| matches!(family, 2 | 10);
    every_setting(|name, set| {
        let rules = policy(name, &ARCHES, &set);
        for arch in ARCHES {
            for family in 0..=64 {
                for kind in [0, 1, 2, 3, 4, 5, 6, 10, 15] {
                    for protocol in [0, 1, 6, 9, 17, 58, 132, 255, 262] {
                        let allowed = match set[0].1 {
                            "none" => false,
                            _ if family == 1 => true,
                            "unix" => false,
                            "proxy" => inet(family) && kind == 1 && matches!(protocol, 0 | 6),
                            _ if family == 16 => protocol == 0,
                            _ => inet(family) && kind <= 2 && protocol <= 17,
                        };
                        let expected = if allowed { Action::ALLOW } else { EAFNOSUPPORT };
                        for (flags, high) in [(0, 0), (0o2_004_000, 0), (0, 1_u64 << 32)] {
                            let args = [high | family, high | kind | flags, high | protocol];
                            let action = rules.decide(&call(arch, "socket", &args)).action;
                            assert_eq!(action, expected, "{name} {set:?} {arch} {args:x?}");
                        }
                    }
                }
            }
        }
    });
}

#[test]
fn calls_of_other_architectures_and_later_kernels_get_enosys() {
    every_setting(|name, set| {
        for arch in ARCHES {
            let rules = policy(name, &[arch], &set);
            let of = |nr, arch: Arch| {
                let data = SeccompData {
                    nr,
                    arch: arch.audit(),
                    ..SeccompData::default()
                };
                rules.decide(&data).action
            };
            let enosys = Action::errno(38);
            for nr in [
                0x4000_0000,
                0x4000_0027,
                0x4000_0209,
                1000,
                0xffff_fffe,
                0xffff_ffff,
            ] {
                assert_eq!(of(nr, arch), enosys, "{name} {arch} {nr:#x}");
            }
            assert_eq!(of(20, Arch::X86), enosys, "{name} {arch}");
            assert_eq!(of(20, Arch::Arm), enosys, "{name} {arch}");
        }
    });
}
