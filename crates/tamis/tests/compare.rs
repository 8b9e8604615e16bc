//! `tamis prove` and `tamis diff` on real policies and programs; texts are in `tests/golden`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tamis_testkit::corpus::{self, pol_json};

fn tamis(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tamis"))
        .args(args)
        .output()
        .unwrap()
}

/// The exit code and the JSON document.
fn document(args: &[&str]) -> (i32, Value) {
    let output = tamis(args);
    let document = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{args:?}: {error}: {output:?}"));
    (output.status.code().unwrap(), document)
}

/// An empty folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("compare")
        .join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn text_of(path: &Path) -> &str {
    path.to_str().unwrap()
}

const DOCKER: &str = "docker/docker-default-x86_64.json";

/// The programs of other compilers for one policy, and the policy as a file of rules.
fn peers(prefix: &str, policy: &str, folder: &Path) -> Option<(PathBuf, Vec<String>)> {
    let ruleset = pol_json::ruleset(policy)?;
    let rules = folder.join("policy.rules");
    fs::write(&rules, ruleset.to_string()).unwrap();
    let files = corpus::files("peers", ".bpf")?;
    let of_policy = files.into_iter().filter(|file| {
        let name = file.rsplit('/').next().unwrap();
        name.starts_with(prefix) && !name.contains("1action")
    });
    Some((rules, of_policy.collect()))
}

#[test]
fn one_changed_rule_of_dockers_profile_is_one_change() {
    let Some(old) = corpus::path(DOCKER) else {
        return;
    };
    let profile = fs::read_to_string(&old).unwrap();
    let changed = profile.replacen("\"value\": 40,", "\"value\": 39,", 1);
    assert_ne!(profile, changed, "the profile allows families above 40");
    let new = folder("changed-rule").join("new.json");
    fs::write(&new, changed).unwrap();
    let (old, new) = (text_of(&old), text_of(&new));

    let (code, document) = document(&["diff", old, new, "--json", "--arch", "x86_64"]);
    assert_eq!(code, 1);
    let changes = document["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0]["kind"], "newly_allowed");
    assert_eq!(changes[0]["calls"], serde_json::json!(["socket"]));
    assert_eq!(changes[0]["example"], "x86_64 socket(family=AF_VSOCK)");

    let code = |args: &[&str]| tamis(args).status.code().unwrap();
    assert_eq!(code(&["diff", old, new, "--fail-on-looser"]), 1);
    assert_eq!(code(&["diff", new, old, "--fail-on-looser"]), 0);
    assert_eq!(code(&["diff", new, old, "--only-looser"]), 0);
    assert_eq!(code(&["diff", new, old]), 1);
    assert_eq!(code(&["diff", old, old]), 0);
    assert_eq!(code(&["prove", old, new]), 1);
    assert_eq!(code(&["prove", old, new, "--stricter"]), 0);
    assert_eq!(code(&["prove", new, old, "--stricter"]), 1);
}

#[test]
fn libseccomps_two_layouts_of_dockers_profile_mean_the_profile() {
    let names = [
        "docker/docker-libseccomp-opt1.bpf",
        "docker/docker-libseccomp-opt2.bpf",
        DOCKER,
    ];
    let paths: Option<Vec<PathBuf>> = names.into_iter().map(corpus::path).collect();
    let Some(paths) = paths else {
        return;
    };
    for pair in paths.windows(2) {
        let output = tamis(&["prove", text_of(&pair[0]), text_of(&pair[1])]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
}

#[test]
fn programs_of_other_compilers_are_compared_with_their_policy() {
    let policies = [
        ("docker", "docker-", "peers/docker.pol.json"),
        ("gappy", "gappy302-", "peers/gappy302.pol.json"),
        ("firecracker", "firecracker-", "peers/fc-vmm.pol.json"),
    ];
    for (name, prefix, policy) in policies {
        let folder = folder(name);
        let Some((rules, programs)) = peers(prefix, policy, &folder) else {
            return;
        };
        assert!(programs.len() > 5, "{programs:?}");
        for program in programs {
            let program = corpus::path(&program).unwrap();
            let (rules, program) = (text_of(&rules), text_of(&program));
            let args = [
                "prove",
                rules,
                program,
                "--json",
                "--arch",
                "x86_64",
                "--actions-only",
            ];
            let (code, document) = document(&args);
            let witnesses = document["witnesses"].as_array().unwrap();
            assert_eq!(code == 0, witnesses.is_empty(), "{program}: {document}");
            for witness in witnesses {
                let call = witness["call"].as_str().unwrap();
                let answer = tamis(&["eval", program, call, "--json"]);
                let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
                assert_eq!(
                    answer["results"][0]["ret"], witness["right_ret"],
                    "{program}: {call}"
                );
            }
            println!("{program}: {} {witnesses:?}", document["answer"]);
        }
    }
}

#[test]
fn a_folder_is_a_stack_in_the_order_of_names() {
    let Some(stack) = corpus::path("systemd/stack") else {
        return;
    };
    let mut files: Vec<String> = fs::read_dir(&stack)
        .unwrap()
        .map(|entry| text_of(&entry.unwrap().path()).to_owned())
        .filter(|path| path.ends_with(".bpf"))
        .collect();
    files.sort();
    let output = tamis(&["prove", text_of(&stack), &files.join(",")]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // A stack is at least as strict as each of its filters.
    let output = tamis(&["prove", text_of(&stack), &files[7], "--stricter"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn what_the_prover_cannot_hold_is_no_answer() {
    let folder = folder("limit");
    let program = |name: &str, value: u32| {
        let path = folder.join(name);
        let text = format!(
            "ld [16]\ntax\nld [24]\nmul x\njeq #{value}, yes\nret #0\nyes: ret #0x7fff0000\n"
        );
        fs::write(&path, text).unwrap();
        path
    };
    let (left, right) = (program("left.asm", 12345), program("right.asm", 12346));
    for command in ["prove", "diff"] {
        let output = tamis(&[command, text_of(&left), text_of(&right)]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

#[test]
fn sides_that_cannot_be_read_are_the_users_mistake() {
    let empty = folder("empty");
    let cases = [
        vec!["prove", "pure-compute", "no-such-file"],
        vec!["prove", "pure-compute", text_of(&empty)],
        vec!["prove", "pure-compute,no-such-file", "pure-compute"],
        vec!["diff", "pure-compute", "no-such-file"],
        vec![
            "diff",
            "pure-compute",
            "pure-compute",
            "--json",
            "--markdown",
        ],
    ];
    for args in cases {
        let output = tamis(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{args:?}: {output:?}");
    }
}

#[test]
fn colour_is_for_those_who_see_it() {
    let plain = tamis(&["diff", "container-default", "pure-compute"]).stdout;
    assert!(!plain.contains(&0x1b));
    let coloured = tamis(&[
        "diff",
        "container-default",
        "pure-compute",
        "--color",
        "always",
    ])
    .stdout;
    assert!(coloured.contains(&0x1b));
}
