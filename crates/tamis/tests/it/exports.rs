//! Exported policies have no findings that the original doesn't have.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tamis_testkit::corpus;

use crate::TAMIS;

fn tamis(arguments: &[&str]) -> Output {
    let output = Command::new(TAMIS).args(arguments).output();
    output.expect("it starts")
}

/// The codes and messages of the findings about an input.
fn findings(input: &str, language: &str) -> BTreeSet<String> {
    let output = tamis(&[
        "lint", input, "--from", language, "--arch", "x86_64", "--json",
    ]);
    let document: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let findings = document["findings"].as_array().expect("a list");
    let text = |finding: &serde_json::Value, key: &str| finding[key].as_str().map(str::to_owned);
    let finding = |finding| Some(text(finding, "code")? + " " + &text(finding, "message")?);
    findings
        .iter()
        .map(|one| finding(one).expect("a finding"))
        .collect()
}

/// Policies and their languages.
fn policies() -> Vec<(PathBuf, &'static str)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let own = ["container-default", "network-service", "pure-compute"];
    let own = own.map(|name| {
        (
            root.join(format!("crates/policy/policies/{name}.tamis")),
            "tamis",
        )
    });
    own.to_vec()
}

#[test]
fn exports_have_no_findings_that_the_policy_lacks() {
    no_findings_that_the_policy_lacks(&policies());
}

#[test]
fn exports_of_dockers_profile_have_no_findings_that_it_lacks() {
    let docker = corpus::path("docker/docker-default-x86_64.json");
    no_findings_that_the_policy_lacks(&[(docker, "oci")]);
}

fn no_findings_that_the_policy_lacks(policies: &[(PathBuf, &str)]) {
    for (policy, language) in policies {
        let policy = policy.to_str().expect("a path");
        let known = findings(policy, language);
        for to in ["oci", "systemd"] {
            let folder =
                Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("exports-{}", policies.len()));
            std::fs::create_dir_all(&folder).expect("a folder");
            let text = folder.join(to);
            let text = text.to_str().expect("a path");
            let convert = [
                "convert",
                policy,
                "--from",
                language,
                "--arch",
                "x86_64",
                "--to",
                to,
                "-o",
                text,
                "--allow-losses",
            ];
            let option = (to == "systemd").then_some("--systemd=252");
            let args: Vec<&str> = convert.into_iter().chain(option).collect();
            let output = tamis(&args);
            assert!(output.status.success(), "{policy}: {output:?}");
            let mut more = findings(text, to);
            more.retain(|finding| !known.contains(finding));
            // A unit denies calls that it can't allow for some arguments only; `convert` reports it and fails unless it
            // is permitted.
            let is_told = String::from_utf8_lossy(&output.stderr).contains("TM1311");
            more.retain(|finding| !is_told || !finding.contains("no dynamically linked program"));
            // Which systemd reads the text is a note, not a finding about it; systemd compares all 64 bits of the family.
            more.retain(|finding| !finding.starts_with("TM1108 "));
            more.retain(|finding| to != "systemd" || !finding.contains("`socket(family)`"));
            assert!(more.is_empty(), "{policy} to {to}: {more:#?}");
        }
    }
}
