//! Recorded runs have ids, and are merged by them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tamis_testkit::skip;

fn tamis(args: &[&str]) -> Vec<u8> {
    let mut tamis = Command::new(crate::TAMIS);
    let output = tamis.args(args).output().expect("it starts");
    assert!(output.status.success(), "{args:?}: {output:?}");
    output.stdout
}

/// The profile of a recorded command, with further options.
fn recorded(name: &str, options: &[&str]) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("runs");
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join(name).display().to_string();
    let record = ["record", "--backend", "notify", "-q", "-o", &file];
    tamis(&[&record, options, &["--", "/bin/true"]].concat());
    file
}

fn document(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("it is JSON")
}

#[test]
fn a_recording_has_an_id_and_counts_once() {
    skip::unless_live();
    let named = recorded("named.json", &["--run-id", "build 7"]);
    let (first, second) = (recorded("1.json", &[]), recorded("2.json", &[]));
    let run = |file: &str| document(&fs::read(file).expect("it is there"))["runs"][0].clone();
    assert_eq!(run(&named)["id"], "build 7");
    assert_eq!(run(&named)["program"], "true");
    assert_ne!(run(&first)["id"], run(&second)["id"]);
    let merge = ["profile", "merge", &named, &first, &second, &first];
    let sum = document(&tamis(&merge));
    assert_eq!(sum["runs"].as_array().map(Vec::len), Some(3));
    let calls = sum["calls"].as_array().expect("calls");
    let exits = calls.iter().find(|call| call["call"] == "exit_group");
    let exits = exits.expect("it ends");
    assert_eq!((&exits["count"], &exits["runs"]), (&3.into(), &3.into()));
}
