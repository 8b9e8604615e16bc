//! What the policies promise, proved: `tamis test` with each value of the parameters, for both machines.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use tamis_testkit::scratch::Scratch;
use tamis_testkit::toolchains::stderr_text;

use super::{NETWORKS, POLICIES};
use crate::TAMIS;

const ARCHES: [&str; 2] = ["x86_64", "aarch64"];
const SWITCH: [&str; 2] = ["no", "yes"];

/// The checks for values of parameters: those of these names, if they exist.
fn names(policy: &str, network: &str, nested: &str, debug: &str) -> Vec<String> {
    let network = format!("network-{network}");
    let mut names = vec![policy.to_owned(), "other-abis".to_owned(), network];
    for (parameter, value) in [("nested", nested), ("debug", debug)] {
        if value == "no" {
            names.push(format!("{parameter}-no"));
        }
    }
    names
}

#[test]
fn every_value_keeps_what_its_checks_demand() {
    for arch in ARCHES {
        for policy in POLICIES {
            for network in NETWORKS {
                for nested in SWITCH {
                    for debug in SWITCH {
                        let set = format!("network={network},nested={nested},debug={debug}");
                        let mut tamis = Command::new(TAMIS);
                        tamis
                            .arg("test")
                            .args(names(policy, network, nested, debug));
                        tamis.args(["--policy", policy, "--set", &set, "--arch", arch]);
                        let output = tamis.output().expect("it starts");
                        assert!(
                            output.status.success(),
                            "{policy} {set} {arch}: {}{}",
                            String::from_utf8_lossy(&output.stdout),
                            stderr_text(&output),
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn checks_of_a_value_fail_with_another() {
    let fails = |checks: &str, set: &str| {
        let mut tamis = Command::new(TAMIS);
        tamis.args(["test", checks, "--policy", "agent", "--set", set]);
        let output = tamis
            .args(["--arch", "aarch64"])
            .output()
            .expect("it starts");
        output.status.code() == Some(1)
    };
    for network in NETWORKS {
        for other in NETWORKS.into_iter().filter(|other| *other != network) {
            let (checks, set) = (format!("network-{network}"), format!("network={other}"));
            assert!(fails(&checks, &set), "{checks} {set}");
        }
    }
    assert!(fails("nested-no", "nested=yes"));
    assert!(fails("debug-no", "debug=yes"));
}

/// The instructions of a policy whose calls with tested arguments have one action instead of the tests.
fn insns_without_tests(folder: &Path, policy: &str, set: &str, arch: &str) -> u64 {
    let embedded = tamis_policy::embedded(policy).expect("it is embedded").text;
    let is_parameter = |line: &&str| line.starts_with("param ");
    let (parameters, rest): (Vec<&str>, Vec<&str>) = embedded.lines().partition(is_parameter);
    let tested = match policy {
        "agent" => "trap(1) socket, socketpair, ioctl",
        _ => "trap(1) socket, socketpair",
    };
    let text = [parameters.join("\n"), tested.to_owned(), rest.join("\n")].join("\n");
    let source = folder.join("by-number.tamis");
    std::fs::write(&source, text).expect("a file");
    let filter = folder.join("by-number.bpf");
    let mut tamis = Command::new(TAMIS);
    tamis.arg("compile").arg(&source).args(["-q", "--set", set]);
    tamis.args(["--arch", arch, "--objective", "length", "-o"]);
    let output = tamis.arg(&filter).output().expect("it starts");
    assert!(output.status.success(), "{}", stderr_text(&output));
    std::fs::metadata(&filter).expect("it was written").len() / 8
}

#[test]
fn without_tests_of_arguments_a_filter_has_at_most_thirty_two_instructions() {
    let folder = Scratch::new("by-number").expect("a folder");
    let mut lengths = BTreeSet::new();
    for arch in ARCHES {
        for policy in POLICIES {
            for network in NETWORKS {
                for debug in SWITCH {
                    let set = format!("network={network},nested=yes,debug={debug}");
                    let length = insns_without_tests(folder.path(), policy, &set, arch);
                    assert!(length <= 32, "{policy} {set} {arch}: {length}");
                    lengths.insert(length);
                }
            }
        }
    }
    assert!(
        lengths.first().is_some_and(|least| *least > 10),
        "{lengths:?}"
    );
}
