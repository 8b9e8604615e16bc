//! `tamis lint` on real programs and profiles, and the promises of its list of checks.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tamis_lint::registry;
use tamis_testkit::corpus::{self, repository};

/// The document for some inputs, with the exit code.
fn lint(args: &[&str]) -> (Value, Option<i32>) {
    let output = Command::new(crate::TAMIS)
        .args([
            "lint",
            "--json",
            "--arch=x86_64",
            "--arch=x86",
            "--arch=x32",
        ])
        .args(args)
        .output()
        .unwrap();
    let document = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{args:?}: {error}: {output:?}"));
    (document, output.status.code())
}

/// The findings with this code, as their example calls.
fn examples(document: &Value, code: &str) -> Vec<String> {
    let findings = document["findings"].as_array().unwrap().iter();
    let matching = findings.filter(|finding| finding["code"] == code);
    let examples = matching.flat_map(|finding| finding["examples"].as_array().unwrap());
    examples
        .map(|example| {
            let text = |key: &str| example[key].as_str().unwrap().to_owned();
            format!("{} -> {}", text("call"), text("action"))
        })
        .collect()
}

#[test]
fn every_check_has_a_finding_and_a_near_miss_and_stands_in_the_book() {
    let book = std::fs::read_to_string(repository().join("docs/book/lint.md")).unwrap();
    for check in registry::ALL {
        for golden in ["finding", "near-miss"] {
            let path = format!("tests/golden/lint/{}/{golden}.golden", check.name);
            assert!(repository().join(&path).exists(), "{path} is missing");
        }
        let (id, severity) = (check.code.id, check.severity.name());
        let row = format!("| {id} | `{}` | {severity} |", check.name);
        assert!(book.contains(&row), "no row {row}");
    }
    let codes = registry::ALL.map(|check| check.code);
    assert!(codes.is_sorted(), "the checks ascend by code");
}

#[test]
fn containers_start_under_the_embedded_profile() {
    containers_start_under("container-default");
}

#[test]
fn containers_start_under_dockers_profile() {
    let docker = corpus::path("docker/docker-default-x86_64.json");
    containers_start_under(docker.to_str().unwrap());
}

fn containers_start_under(input: &str) {
    for runtime in ["runc", "crun"] {
        let (document, code) = lint(&["--only=runtime", "--runtime", runtime, input]);
        assert_eq!(code, Some(0), "{input} {runtime}: {document}");
    }
    for check in ["start-up", "sign-extension", "time64"] {
        let (document, code) = lint(&["--only", check, input]);
        assert_eq!(code, Some(0), "{input}: {document}");
    }
}

#[test]
fn a_profile_and_its_program_show_the_same_gaps() {
    for name in ["docker-default-x86_64.json", "docker-libseccomp-opt2.bpf"] {
        let path = corpus::path(&format!("docker/{name}"));
        let (document, code) = lint(&[path.to_str().unwrap()]);
        assert_eq!(code, Some(1));
        // AF_ALG with an upper bit set: refused and allowed, and the same call for the kernel.
        let evading = examples(&document, "TM0706");
        let call = "x86_64 socket(family=0x100000026) -> allow";
        assert!(evading.iter().any(|example| example == call), "{evading:?}");
        let multiplexed = examples(&document, "TM0705");
        let call = "x86 socketcall(call=SYS_SOCKET) -> allow";
        assert!(
            multiplexed.iter().any(|example| example == call),
            "{multiplexed:?}"
        );
        for absent in [
            "TM0701", "TM0702", "TM0703", "TM0704", "TM0708", "TM0724", "TM0725", "TM0726",
        ] {
            assert_eq!(examples(&document, absent), [""; 0], "{absent}");
        }
    }
}

#[test]
fn every_program_of_the_corpus_can_be_linted() {
    let files = corpus::programs();
    for name in files {
        let path = corpus::path(&name);
        let (document, code) = lint(&[path.to_str().unwrap()]);
        let has_gaps = document["gaps"]
            .as_array()
            .is_some_and(|gaps| !gaps.is_empty());
        let expected = match document["warnings"] != 0 {
            true => 1,
            false if has_gaps => 3,
            false => 0,
        };
        assert_eq!(code, Some(expected), "{name}");
    }
}

/// Conditions that pair the bits of two arguments exceed any limit of diagrams.
#[test]
fn what_pairs_bits_of_arguments_is_left_out_alone() {
    let samples = corpus::files("kafel", ".policy");
    let pairs = samples.iter().filter(|name| name.contains("_var"));
    let mut count = 0;
    for path in pairs.map(|name| corpus::path(name)) {
        count += 1;
        let path = path.to_str().unwrap();
        let kafel = ["--from=kafel", "--max-nodes=100000", path];
        let (document, _) = lint(&kafel);
        assert_eq!(document["gaps"].as_array().unwrap().len(), 1, "{path}");
        // The conditions were left out, and the default of the policy was not.
        assert_eq!(examples(&document, "TM0719").len(), 1, "{path}");
        for (language, result) in [("tamis", "equal"), ("oci", "stricter")] {
            let to = format!("--to={language}");
            let output = Command::new(crate::TAMIS)
                .args(["convert", "--json", "--allow-losses", "--arch=x86_64", &to])
                .args(kafel)
                .output()
                .unwrap();
            let document: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(document["verdict"], result, "{path} to {language}");
        }
    }
    assert!(count >= 4, "{samples:?}");
}

#[test]
fn a_stack_is_judged_as_a_whole() {
    let files = corpus::files("systemd/stack", ".bpf");
    let paths: Vec<String> = files
        .iter()
        .map(|name| corpus::path(name))
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    let mut args: Vec<&str> = paths.iter().map(String::as_str).collect();
    args.push("--stack");
    let (document, _) = lint(&args);
    // Each filter alone lets other architectures pass; together they don't.
    assert_eq!(examples(&document, "TM0702"), [""; 0]);
    let twins = examples(&document, "TM0708");
    assert!(
        twins
            .iter()
            .any(|example| example.contains("sched_setattr")),
        "{twins:?}"
    );
}

#[test]
fn nothing_dangerous_is_learned_of_a_group() {
    // Of each group a call that is in no other.
    const MADE: [&str; 10] = [
        "pwrite64",
        "rename",
        "fsync",
        "epoll_wait",
        "io_submit",
        "connect",
        "shmget",
        "signalfd4",
        "timer_create",
        "mlock",
    ];
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("learned-groups");
    std::fs::create_dir_all(&folder).unwrap();
    let [profile, policy] =
        ["made.json", "groups.tamis"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    let calls = ["x86_64", "x86"].map(|arch| {
        let calls =
            MADE.map(|call| format!(r#"{{"arch": "{arch}", "call": "{call}", "count": 9}}"#));
        calls.join(", ")
    });
    let calls = calls.join(", ");
    let text = format!(r#"{{"schema": "tamis-profile/1", "calls": [{calls}]}}"#);
    std::fs::write(&profile, text).unwrap();
    let output = Command::new(crate::TAMIS)
        .args(["learn", "--generality=groups", &profile, "-o", &policy])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let learned = std::fs::read_to_string(&policy).unwrap();
    assert_eq!(
        learned.matches("Others of @").count(),
        2 * MADE.len(),
        "{learned}"
    );
    let (document, _) = lint(&[&policy]);
    for code in ["TM0709", "TM0720"] {
        let found = examples(&document, code);
        assert!(found.is_empty(), "{code}: {found:?}");
    }
    for call in ["mknod", "mknodat", "io_uring_enter"] {
        assert!(!learned.contains(call), "{call}");
    }
}

/// Settings of a unit besides its list of calls, which denies the same calls; and whether they are only filters.
const SETTINGS: [(&str, bool); 13] = [
    ("PrivateDevices=yes", false),
    ("ProtectClock=yes", false),
    ("ProtectHostname=yes", false),
    ("ProtectKernelLogs=yes", false),
    ("ProtectKernelModules=yes", false),
    ("ProtectKernelTunables=yes", false),
    ("DynamicUser=yes", false),
    ("MemoryDenyWriteExecute=yes", false),
    ("RestrictRealtime=yes", false),
    ("RestrictSUIDSGID=yes", true),
    ("LockPersonality=yes", true),
    ("RestrictNamespaces=yes", true),
    ("RestrictAddressFamilies=AF_UNIX", true),
];

/// Applying the advice to delete a rule doesn't change the filter.
#[test]
fn a_setting_is_deleted_only_if_it_is_nothing_but_a_filter() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lint-settings");
    std::fs::create_dir_all(&folder).unwrap();
    let unit = |name: &str, setting: &str| {
        let path = folder.join(name);
        let text =
            format!("[Service]\nExecStart=/bin/true\nSystemCallFilter=@basic-io\n{setting}\n");
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let without = unit("without.service", "");
    let checks = ["unreachable-rule", "duplicate-rule", "idle-rule"];
    let checks: Vec<String> = checks
        .iter()
        .map(|check| format!("--only={check}"))
        .collect();
    for (setting, is_filter) in SETTINGS {
        let with = unit("with.service", setting);
        let mut command = Command::new(crate::TAMIS);
        let output = command
            .args(["lint", "--json", &with])
            .args(&checks)
            .output()
            .unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = document["findings"].as_array().unwrap();
        let is_advised = findings
            .iter()
            .any(|own| own["help"].to_string().contains("delete"));
        assert_eq!(is_advised, is_filter, "{setting}: {document:#}");
        if is_advised {
            let mut command = Command::new(crate::TAMIS);
            let proof = command.args(["prove", &with, &without]).output().unwrap();
            assert_eq!(proof.status.code(), Some(0), "{setting}");
        }
    }
}
