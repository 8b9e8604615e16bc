//! `tamis oci apply`, with the runtimes that are installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tamis_testkit::skip;
use tamis_testkit::toolchains::stderr_text;

use crate::TAMIS;
use crate::containers::{CRUN, RUNC, bundle, run, skip_runtime};

const ANNOTATION: &str = "run.oci.seccomp_bpf_data";
/// Denies a call that the probe makes.
const POLICY: &str =
    "arch x86_64\ndefault allow\nbad-arch kill-thread\nerrno(ENOTTY) sync_file_range\n";

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("oci-apply")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn apply(folder: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(TAMIS);
    command.args(["oci", "apply", "policy.tamis", "config.json"]);
    command.args(options).current_dir(folder).output().unwrap()
}

fn config(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("config.json")).unwrap()).unwrap()
}

#[test]
fn both_forms_are_set_and_the_rest_of_the_text_stays() {
    let folder = folder("text");
    let text = "{\n    \"ociVersion\": \"1.0.2\",\n    \"x\": [1,2],\n    \"linux\": {}\n}\n";
    fs::write(folder.join("policy.tamis"), POLICY).unwrap();
    fs::write(folder.join("config.json"), text).unwrap();
    let printed = apply(&folder, &["--runtime", "crun", "-o", "-"]);
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(
        printed.starts_with(&text[..text.find("{}").unwrap()]),
        "{printed}"
    );
    assert!(!printed.contains("defaultAction"), "{printed}");
    assert_eq!(
        fs::read_to_string(folder.join("config.json")).unwrap(),
        text
    );
    let output = apply(&folder, &[]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    let config = config(&folder);
    let raw = Command::new(TAMIS)
        .args(["compile", "-q", "policy.tamis", "--emit", "annotation"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let line = format!(
        "{ANNOTATION}={}\n",
        config["annotations"][ANNOTATION].as_str().unwrap()
    );
    assert_eq!(String::from_utf8(raw.stdout).unwrap(), line);
    // The configuration is read again, with the same meaning.
    let compared = Command::new(TAMIS)
        .args(["prove", "policy.tamis", "config.json"])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(compared.status.success(), "{compared:?}");
    // A policy for one runtime leaves the other's form, with a note.
    let printed = stderr_text(&apply(&folder, &["--runtime", "runc"]));
    assert!(printed.contains("note: the annotation stays"), "{printed}");
    let printed = stderr_text(&apply(&folder, &["--runtime", "crun"]));
    assert!(printed.contains("note: `linux.seccomp` stays"), "{printed}");
    // Once more changes nothing.
    let before = fs::read(folder.join("config.json")).unwrap();
    apply(&folder, &[]);
    assert_eq!(fs::read(folder.join("config.json")).unwrap(), before);
}

#[test]
fn a_configuration_that_is_none_is_refused_and_stays() {
    let folder = folder("wrong");
    fs::write(folder.join("policy.tamis"), POLICY).unwrap();
    for text in [
        "",
        "[]",
        "{\"ociVersion\": \"1.0.2\", \"linux\": 1}",
        "{\"ociVersion\": \"1.0.2\", \"annotations\": [], \"linux\": {}}",
        "{\"defaultAction\": \"SCMP_ACT_ERRNO\"}",
        "{,}",
    ] {
        fs::write(folder.join("config.json"), text).unwrap();
        let output = apply(&folder, &[]);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert_eq!(
            fs::read_to_string(folder.join("config.json")).unwrap(),
            text
        );
    }
}

/// The output of the probe of [`POLICY`]: the error of calls without an error of their own.
const PROBE: &str = "import ctypes; c = ctypes.CDLL(None, use_errno=True); c.syscall(277, -1, 0, 0, 0); print(ctypes.get_errno())";

#[test]
fn crun_installs_what_was_applied() {
    installs_what_was_applied(CRUN);
}

#[test]
fn runc_installs_what_was_applied() {
    installs_what_was_applied(RUNC);
}

fn installs_what_was_applied(runtime: (&str, &str)) {
    skip::unless_live();
    let name = runtime.0;
    let folder = folder(name);
    bundle(&folder, &["/usr/bin/python3", "-c", PROBE], true, POLICY);
    let output = run(runtime, &folder);
    if output.stdout != b"9\n" {
        skip_runtime(name, &output);
    }
    assert!(apply(&folder, &["--runtime", name]).status.success());
    let has_profile = config(&folder)["linux"]["seccomp"].is_object();
    assert_eq!(has_profile, name == "runc");
    let output = run(runtime, &folder);
    // ENOTTY in place of EBADF.
    assert_eq!(output.stdout, b"25\n", "{}", stderr_text(&output));
}

#[test]
fn the_set_of_crun_is_what_it_needs_beside_the_command() {
    the_set_is_what_it_needs_beside_the_command(CRUN);
}

#[test]
fn the_set_of_runc_is_what_it_needs_beside_the_command() {
    the_set_is_what_it_needs_beside_the_command(RUNC);
}

/// All other calls kill the process, so that ignored failures of the runtime are detected too.
fn the_set_is_what_it_needs_beside_the_command(runtime: (&str, &str)) {
    skip::unless_live();
    let name = runtime.0;
    let own = folder(&format!("true-{name}"));
    let recorded = Command::new(TAMIS)
        .args(["record", "-q", "-o", "true.json", "--", "/bin/true"])
        .current_dir(&own)
        .output()
        .unwrap();
    assert!(recorded.status.success(), "{}", stderr_text(&recorded));
    // The learned policy returns ENOSYS for newer calls before the set allows them.
    let learned = Command::new(TAMIS)
        .args(["learn", "-q", "true.json", "-o", "true.tamis"])
        .current_dir(&own)
        .output()
        .unwrap();
    assert!(learned.status.success(), "{}", stderr_text(&learned));
    let learned = fs::read_to_string(own.join("true.tamis")).unwrap();
    assert!(learned.contains("faccessat2"), "{learned}");
    let profile: Value = serde_json::from_slice(&fs::read(own.join("true.json")).unwrap()).unwrap();
    let calls = profile["calls"].as_array().unwrap().iter();
    let calls: Vec<&str> = calls.map(|call| call["call"].as_str().unwrap()).collect();
    for no_new_privs in [true, false] {
        let folder = folder(&format!("{name}-{no_new_privs}"));
        let needs = format!("default kill-process\nallow {}\n", calls.join(", "));
        bundle(&folder, &["/bin/true"], no_new_privs, &needs);
        let output = run(runtime, &folder);
        if !output.status.success() {
            skip_runtime(name, &output);
        }
        // crun installs the filter last if it can; then only `true` itself needs calls.
        let is_last = name == "crun" && no_new_privs;
        let with_set = format!("{needs}allow @{name}\n");
        let learned_with_set = format!("{learned}allow @{name}\n");
        for (policy, starts) in [
            (&needs, is_last),
            (&with_set, true),
            (&learned_with_set, true),
        ] {
            fs::write(folder.join("policy.tamis"), policy).unwrap();
            assert!(apply(&folder, &["--runtime", name]).status.success());
            let output = run(runtime, &folder);
            assert_eq!(
                output.status.success(),
                starts,
                "no_new_privs {no_new_privs}, {policy}: {}",
                stderr_text(&output)
            );
        }
    }
}
