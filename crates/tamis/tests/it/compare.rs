//! `tamis prove` and `tamis diff` on real policies and programs; texts are in `tests/golden`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tamis_testkit::corpus::{self, pol_json};

fn tamis(args: &[&str]) -> Output {
    Command::new(crate::TAMIS).args(args).output().unwrap()
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
fn peers(prefix: &str, policy: &str, folder: &Path) -> (PathBuf, Vec<String>) {
    let ruleset = pol_json::ruleset(policy);
    let rules = folder.join("policy.rules");
    fs::write(&rules, ruleset.to_string()).unwrap();
    let files = corpus::files("peers", ".bpf");
    let of_policy = files.into_iter().filter(|file| {
        let name = file.rsplit('/').next().unwrap();
        name.starts_with(prefix) && !name.contains("1action")
    });
    (rules, of_policy.collect())
}

#[test]
fn one_changed_rule_of_dockers_profile_is_one_change() {
    let old = corpus::path(DOCKER);
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

    // The answers of a busy machine, too.
    let code = |args: &[&str]| {
        let args = [args, &["--time-limit", "600"]].concat();
        tamis(&args).status.code().unwrap()
    };
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
    let paths = names.map(corpus::path);
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
        let (rules, programs) = peers(prefix, policy, &folder);
        assert!(programs.len() > 5, "{programs:?}");
        for program in programs {
            let program = corpus::path(&program);
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
                let answer = tamis(&["bpf", "eval", program, call, "--json"]);
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
    let stack = corpus::path("systemd/stack");
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

/// A program that allows if a product of three arguments has this value.
fn product(path: &Path, [a, b, c]: [u32; 3], value: u32) {
    let text = format!(
        "ld [{a}]\ntax\nld [{b}]\nmul x\ntax\nld [{c}]\nmul x\njeq #{value}, yes\nret #0\n\
         yes: ret #0x7fff0000\n"
    );
    fs::write(path, text).unwrap();
}

#[test]
fn where_diagrams_do_not_do_a_witness_may_still_be_found() {
    let folder = folder("gates");
    let (left, right) = (folder.join("left.asm"), folder.join("right.asm"));
    product(&left, [16, 24, 32], 12345);
    product(&right, [16, 24, 32], 12346);
    let patient = ["--json", "--time-limit", "600"];
    let sides = ["prove", text_of(&left), text_of(&right)];
    let (code, document) = document(&[&sides[..], &patient].concat());
    assert_eq!((code, &document["answer"]), (1, &Value::from("no")));
    let call = document["witnesses"][0]["call"].as_str().unwrap();
    let answer = |path: &Path| tamis(&["bpf", "eval", text_of(path), call]).status.code();
    assert_ne!(answer(&left), answer(&right), "{call}");
}

#[test]
fn what_the_prover_cannot_hold_is_no_answer() {
    let folder = folder("limit");
    let (left, right) = (folder.join("left.asm"), folder.join("right.asm"));
    // Multiplication is associative, but neither diagrams nor gates prove it.
    product(&left, [16, 24, 32], 12345);
    product(&right, [32, 16, 24], 12345);
    let (left, right) = (text_of(&left), text_of(&right));
    let conflicts = [
        "--max-nodes",
        "10000",
        "--max-conflicts",
        "100",
        "--time-limit",
        "600",
    ];
    // As long as a busy machine takes to get there, and more conflicts than an idle one meets in that time.
    let nodes_and_time = [
        "--max-nodes",
        "10000",
        "--max-conflicts",
        "1000000000",
        "--time-limit",
        "4",
    ];
    for (limits, advice) in [
        (&conflicts[..], "--max-conflicts 10000"),
        (&nodes_and_time, "--time-limit 40"),
    ] {
        let output = tamis(&[&["prove", left, right], limits].concat());
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with("unknown: "), "{text}");
        assert!(
            text.contains(&format!("to raise the limits: {advice}")),
            "{text}"
        );

        let output = tamis(&[&["diff", left, right], limits].concat());
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

#[test]
fn what_is_beyond_diagrams_is_still_compared_and_narrowed() {
    let folder = folder("beyond-diagrams");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    // The sum of two arguments, and the same from the other side with another errno.
    let left = "ld [16]\ntax\nld [24]\nadd x\njne #77, no\nret #0x7fff0000\nno: ret #0x50001\n";
    let right =
        "ld [16]\ntax\nld #77\nsub x\ntax\nld [24]\njne x, no\nret #0x7fff0000\nno: ret #0x50002\n";
    let left = write("left.asm", left);
    let other = write("other.asm", &right.replace("#77", "#78"));
    let right = write("right.asm", right);
    let few = ["--max-nodes", "5000", "--time-limit", "600"];
    let run = |args: &[&str]| {
        let output = tamis(&[args, &few].concat());
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };

    let (code, text) = run(&["prove", &left, &right]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("same actions"), "{text}");
    assert!(text.contains("yes with --actions-only"), "{text}");
    // A policy in a stack changes nothing, and a policy that denies everything does.
    let stack = format!("{left},pure-compute");
    let (code, text) = run(&[
        "prove",
        &stack,
        &format!("{right},pure-compute"),
        "--actions-only",
    ]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = run(&["prove", &left, &stack, "--json"]);
    assert_eq!(code, Some(1), "{text}");

    let (code, text) = run(&["diff", &left, &right]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("errno(1) -> errno(2)") && text.contains("truncated at a limit"),
        "{text}"
    );
    let (code, _) = run(&["diff", &left, &right, "--fail-on-looser"]);
    assert_eq!(code, Some(0));
    let (code, text) = run(&["diff", &left, &other, "--only-looser"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("newly allowed"), "{text}");
}

/// The sides differ in 700 pairs of answers, and in one more for a call that can't exist: no example shows that one, and
/// without it the result is the same.
#[test]
fn many_pairs_have_one_strictness_whatever_has_no_example() {
    let folder = folder("many-pairs");
    let [left, right] = [("trap", 1), ("trace", 2)].map(|(action, errno)| {
        let mut text = format!(
            "arch x86_64\ndefault allow\nbad-arch kill-process\nerrno({errno}) sendto(low(fd) > low(arg[3]) \
             && low(arg[3]) > low(arg[5]) && low(arg[5]) > low(fd))\n"
        );
        for at in 0..700 {
            text.push_str(&format!("{action}({at}) nr {}\n", 500 + at));
        }
        let path = folder.join(format!("{action}.tamis"));
        fs::write(&path, text).unwrap();
        path
    });
    // Gates would need more conflicts.
    let sides = [text_of(&left), text_of(&right)];
    let (code, document) = document(&["prove", "--json", "--max-conflicts=1", sides[0], sides[1]]);
    assert_eq!(code, 1);
    assert_eq!(document["verdict"], "stricter", "{document}");
}

#[test]
fn sides_that_cannot_be_read_are_the_users_mistake() {
    let empty = folder("empty");
    let cases = [
        vec!["prove", "pure-compute", "no-such-file"],
        vec!["prove", "pure-compute", text_of(&empty)],
        vec!["prove", "pure-compute,no-such-file", "pure-compute"],
        vec!["diff", "pure-compute", "no-such-file"],
        vec!["diff", "pure-compute", "pure-compute", "--markdowm"],
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

/// A policy whose filter no kernel takes has a meaning: the rules are explained, compared and run on calls.
#[test]
fn a_policy_that_is_too_long_for_the_kernel_is_explained_and_compared() {
    let folder = folder("too-long");
    let rule = |n: u32| {
        format!(
            "allow ioctl(fd == {} && cmd == {n})\n",
            n * 7919 % 1_000_003
        )
    };
    let rules: String = (0..1400).map(rule).collect();
    let rules = format!("arch x86_64\ndefault errno(EPERM)\nallow read\n{rules}");
    let [long, longer] = ["long", "longer"].map(|name| folder.join(format!("{name}.tamis")));
    fs::write(&longer, format!("{rules}allow getpid\n")).unwrap();
    fs::write(&long, rules).unwrap();
    let (long, longer) = (text_of(&long), text_of(&longer));
    let output = tamis(&["compile", long]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("TM0401"),
        "{output:?}"
    );

    let decision = |policy| {
        document(&["explain", policy, "getpid", "--json"]).1["explanations"][0]["action"].clone()
    };
    assert_ne!(decision(long), decision(longer));
    let ran = tamis(&["bpf", "fuzz", long, longer, "--evaluations", "10000"]);
    let said = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
    assert!(said.contains("getpid()"), "{said}");
    assert_eq!(tamis(&["diff", long, longer]).status.code(), Some(1));
}
