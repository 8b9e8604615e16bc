//! `tamis bench` on the running kernel; no test asserts a time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tamis_testkit::skip::{self, Need};

fn bench(filter: &Path, calls: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tamis"))
        .args(["bench", "--json", "--rounds", "1", "--calls", calls])
        .arg(filter)
        .output()
        .expect("tamis starts")
}

/// A policy in a file of its own.
fn policy(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_filter_that_kills_is_measured_and_what_is_cached_is_told() {
    if !tamis_kernel::probe().filter_mode.is_present() {
        skip::because(Need::Live, "this kernel has no seccomp filters");
        return;
    }
    let text = "default kill\nallow getpid\nallow close(fd > 5)\n";
    let path = policy("bench.tamis", text);
    let output = bench(&path, "getpid,close,getppid,exit_group");
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let filters = ["no filter", "empty", "uncacheable", path.to_str().unwrap()];
    for (call, own_cached) in [("getpid", true), ("close", false), ("getppid", false)] {
        let mut entries = report["calls"].as_array().unwrap().iter();
        let entry = entries.find(|entry| entry["name"] == call).expect(call);
        let results = entry["results"].as_array().unwrap();
        let names: Vec<&Value> = results.iter().map(|result| &result["filter"]).collect();
        assert_eq!(names, filters);
        let cached: Vec<bool> = results
            .iter()
            .map(|result| result["cached"].as_bool().unwrap())
            .collect();
        assert_eq!(cached, [false, true, false, own_cached], "{call}");
        let is_positive = |result: &Value| result["min_ns"].as_f64().unwrap() > 0.0;
        assert!(results.iter().all(is_positive), "{entry}");
    }
    assert_eq!(report["not_called"][0]["name"], "exit_group");
}

#[test]
fn calls_that_cannot_be_timed_are_usage_errors() {
    for (calls, said) in [
        ("getpit", "did you mean `getpid`?"),
        ("exit,fork", "none of"),
    ] {
        let output = bench(Path::new("pure-compute"), calls);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn a_stack_that_cannot_be_installed_says_which_filter_is_in_the_way() {
    if !tamis_kernel::probe().filter_mode.is_present() {
        skip::because(Need::Live, "this kernel has no seccomp filters");
        return;
    }
    let output = bench(Path::new("pure-compute,container-default"), "getpid");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("denies seccomp"), "{text}");
}
