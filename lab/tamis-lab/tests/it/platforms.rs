//! Platforms: their list, their measurement, and sandboxes on each.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tamis_testkit::skip;

use crate::{TAMIS_LAB, tamis_lab};

#[test]
fn an_interrupted_measurement_of_platforms_prints_what_was_measured() {
    skip::unless_live();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("platforms");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let script = folder.join("peer");
    fs::write(
        &script,
        "#!/bin/sh\nkill -TERM $PPID; kill -TERM $PPID; kill -INT $PPID\n",
    )
    .unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o700)).unwrap();
    let peer = format!("peer={}", script.display());
    let line = [
        "platforms",
        "--bench",
        "--platform",
        "trap",
        "--beside",
        &peer,
        "--chart",
        "whole.svg",
    ];
    fs::write(folder.join("whole.svg"), "of a whole measurement").unwrap();
    let interrupted = Command::new(TAMIS_LAB)
        .args(line)
        .stdin(Stdio::null())
        .current_dir(&folder)
        .env("TMPDIR", &folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&interrupted.stdout);
    assert_eq!(interrupted.status.code(), Some(3), "{text}");
    assert!(
        text.contains("native") && text.contains("interrupted"),
        "{text}"
    );
    // Progress is for terminals.
    assert_eq!(String::from_utf8_lossy(&interrupted.stderr), "");
    let names = fs::read_dir(&folder).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["peer", "whole.svg"]);
    let chart = fs::read_to_string(folder.join("whole.svg")).unwrap();
    assert_eq!(chart, "of a whole measurement");
}

/// The program's list of the platforms.
fn platforms() -> Vec<Value> {
    let output = tamis_lab(&["platforms", "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    document["platforms"].as_array().expect("a list").clone()
}

#[test]
fn every_platform_is_listed() {
    let listed: Vec<String> = platforms()
        .iter()
        .map(|one| one["name"].as_str().expect("a name").to_owned())
        .collect();
    let all = tamis_platform::all().iter();
    let all: Vec<&str> = all.map(|platform| platform.name()).collect();
    assert_eq!(listed, all);
}

/// The conformance tests of the platforms have the rest.
#[test]
fn a_sandbox_enforces_its_policy_on_every_platform() {
    skip::unless_kernel();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let policy = folder.join("sandbox.tamis");
    let text = "default allow\nbad-arch allow\nnotify uname\nkill-process chdir\n";
    fs::write(&policy, text).unwrap();
    let policy = policy.to_str().unwrap();
    let has = |platform: &Value, cap: &str| platform[cap] == true;
    let able = platforms()
        .into_iter()
        .filter(|one| has(one, "works") && has(one, "runs_dynamic") && !has(one, "is_signal_safe"));
    for platform in able {
        let name = platform["name"].as_str().expect("a name");
        let sandbox = |options: &[&str], command: &[&str]| {
            let words = ["sandbox", "--platform", name, "-p", policy];
            tamis_lab(&[&words, options, &["--"], command].concat())
        };
        assert_eq!(sandbox(&[], &["uname"]).status.code(), Some(1), "{name}");
        let allowed = sandbox(&["--notify", "allow"], &["uname"]);
        assert_eq!(allowed.stdout, b"Linux\n", "{name}");
        let killed = sandbox(&[], &["sh", "-c", "cd /"]);
        assert_eq!(killed.status.signal(), Some(31), "{name}");
    }
}
