//! `tamis bench` on the running kernel; no test asserts a time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tamis_abi::{Arch, Nr};
use tamis_profile::Profile;
use tamis_testkit::skip;

/// Runs it once on filters, with more options.
fn bench(options: &[&str]) -> Output {
    Command::new(crate::TAMIS)
        .args(["bench", "--json", "--rounds", "1"])
        .args(options)
        .output()
        .expect("tamis starts")
}

/// The document of a run that ends well; `None`, with a word, where filters can't be installed.
fn report(options: &[&str]) -> Option<Value> {
    skip::unless_live();
    let output = bench(options);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "no progress but on a terminal");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// A file of its own with this content.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path
}

fn strings<'v>(list: &'v Value, member: &str) -> Vec<&'v str> {
    let entries = list.as_array().unwrap().iter();
    entries
        .map(|entry| entry[member].as_str().unwrap())
        .collect()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The cached shares of a call's results: the observed one, if any, and the expected one.
fn cached(entry: &Value) -> Vec<(Option<f64>, Option<f64>)> {
    let results = entry["results"].as_array().unwrap().iter();
    let shares = results.map(|result| {
        let share = |member: &str| result[member].as_f64();
        (share("cached_share"), share("expected_cached_share"))
    });
    shares.collect()
}

#[test]
fn a_filter_that_kills_is_measured_and_what_is_cached_is_told() {
    let text = "default kill\nallow getpid\nallow close(fd > 5)\n";
    let path = file("bench.tamis", text);
    let path = path.to_str().unwrap();
    let Some(report) = report(&[path, "--calls", "getpid,close,getppid,exit_group"]) else {
        return;
    };
    let filters = ["no filter", "empty", "uncacheable", path];
    assert_eq!(strings(&report["filters"], "name"), filters);
    let has_bitmap = tamis_kernel::probe().action_bitmap.is_present();
    for (call, own_cached, is_made) in [
        ("getpid", 1.0, true),
        ("close", 0.0, true),
        ("getppid", 0.0, false),
    ] {
        let mut entries = report["calls"].as_array().unwrap().iter();
        let entry = entries.find(|entry| entry["name"] == call).expect(call);
        assert_eq!(strings(&entry["results"], "filter"), filters);
        let expected = [None, Some(1.0), Some(0.0), Some(own_cached)];
        for ((seen, by_rules), expected) in cached(entry).into_iter().zip(expected) {
            assert_eq!(by_rules, expected, "{call}");
            // A noisy machine may not see it.
            assert!(seen.is_none() || !has_bitmap || seen == expected, "{call}");
        }
        for result in entry["results"].as_array().unwrap() {
            let ns = |member: &str| result[member].as_f64().unwrap();
            assert!(
                ns("min_ns") > 0.0 && ns("median_ns") >= ns("min_ns"),
                "{entry}"
            );
        }
        // A call that isn't executed is no faster than one that is.
        let own = &entry["results"][3];
        for member in ["over_none_min_ns", "over_empty_median_ns"] {
            assert!(entry["results"][1][member].is_number(), "{call}");
            assert_eq!(own[member].is_number(), is_made, "{call}");
        }
    }
    assert_eq!(report["not_called"][0]["name"], "exit_group");
}

#[test]
fn a_profile_is_a_mix_with_stand_ins_and_the_heaviest_calls() {
    let arch = tamis_abi::host::arch().unwrap_or(Arch::X86_64);
    let nr = |name| tamis_abi::syscall::number(arch, name).unwrap();
    let mut profile = Profile::default();
    for (name, count) in [("read", 600), ("futex", 250), ("getpid", 100), ("exit", 50)] {
        profile.call_mut(arch, nr(name)).count = count;
    }
    profile
        .call_mut(arch, nr("futex"))
        .samples
        .insert([0x1000, 0x80, 2, 0, 0, 0], 250);
    profile.call_mut(arch, Nr(nr("getpid").0 + 100_000)).count = 1;
    let profile = file("bench-profile.json", &profile.to_json());
    // What makes the futex that is called another call to the filter than that of the profile.
    let policy = file(
        "bench-futex.tamis",
        "default errno(EPERM)\nallow read, getpid, exit\nallow futex(uaddr == 0x1000)\n",
    );
    let options = [
        policy.to_str().unwrap(),
        "--counts",
        profile.to_str().unwrap(),
        "--top",
        "2",
    ];
    let Some(report) = report(&options) else {
        return;
    };
    assert_eq!(strings(&report["calls"], "name"), ["read", "futex"]);
    assert_eq!(strings(&report["mix"]["stand_ins"], "call").len(), 2);
    let mut left_out = strings(&report["not_called"], "name");
    left_out.sort_unstable();
    assert_eq!(left_out.len(), 2);
    assert!(left_out.contains(&"exit"), "{left_out:?}");
    let notes = report["notes"].as_array().unwrap();
    let says = |words: &str| {
        notes
            .iter()
            .any(|note| note.as_str().unwrap().contains(words))
    };
    assert!(says("with the requested arguments"), "{notes:?}");
    assert!(says("are denied"), "{notes:?}");
    assert!(says("in the mix only"), "{notes:?}");
}

#[test]
fn the_same_seed_makes_the_same_mix() {
    let options = |seed| {
        let sequences = ["--sequence", "9*getpid;getppid", "--sequence", "close"];
        [&["pure-compute", "--seed", seed][..], &sequences].concat()
    };
    let steps = |seed| Some(report(&options(seed))?["mix"]["results"][3]["mean_steps"].as_f64());
    let (Some(one), Some(again), Some(other)) = (steps("1"), steps("1"), steps("2")) else {
        return;
    };
    assert_eq!(one, again);
    assert_ne!(one, other);
}

#[test]
fn a_chart_is_written_beside_the_report() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (name, beginning) in [("bench.svg", "<svg "), ("bench.html", "<!DOCTYPE html>")] {
        let path = folder.join(name);
        let path = path.to_str().unwrap();
        if report(&["pure-compute", "--calls", "getpid", "--chart", path]).is_none() {
            return;
        }
        let chart = fs::read_to_string(path).unwrap();
        assert!(chart.starts_with(beginning) && chart.contains("pure-compute"));
    }
    let output = bench(&["pure-compute", "--chart", "bench.png"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_gap_is_explained_by_stages_with_their_prices_and_lines() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let chart = folder.join("gap.svg");
    let Some(report) = report(&["--explain-gap", "--chart", chart.to_str().unwrap()]) else {
        return;
    };
    let stages = report["stages"].as_array().unwrap();
    let priced = |place: &str| {
        let at = |stage: &&Value| stage["priced_in"] == place;
        stages.iter().filter(at).count()
    };
    for (place, count) in [("STEP_NS", 5), ("MISPREDICTION_NS", 1), ("UNCACHED_NS", 1)] {
        assert_eq!(priced(place), count, "{place}");
    }
    for stage in stages {
        let Some(points) = stage["fit"]["points"].as_array() else {
            continue;
        };
        assert!(points.len() >= 4, "{stage}");
        assert!(points.iter().all(|point| point["x"].is_f64()), "{stage}");
    }
    let chart = fs::read_to_string(chart).unwrap();
    assert!(chart.contains("mispredicted branches") && chart.contains("<polyline"));
    let output = bench(&["--explain-gap", "pure-compute"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn calls_that_cannot_be_timed_are_usage_errors() {
    for (calls, said) in [
        ("getpit", "did you mean `getpid`?"),
        ("exit,fork", "none of"),
        ("socket(AF_INETT)", "did you mean `AF_INET`?"),
        ("x86:getpid", "is not a call of"),
    ] {
        let output = bench(&["pure-compute", "--calls", calls]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output).contains(said), "{output:?}");
    }
}

#[test]
fn what_cannot_be_installed_says_what_is_in_the_way() {
    skip::unless_live();
    let output = bench(&["pure-compute,container-default", "--calls", "getpid"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output).contains("denies seccomp"), "{output:?}");
    // Eight times 4096 instructions and more are over the limit of a task.
    let mut long = "ld [0]\n".repeat(4095);
    long.push_str("ret #0x7fff0000\n");
    let long = file("bench-long.asm", &long);
    let stack = [long.to_str().unwrap(); 9].join(",");
    let output = bench(&[&stack, "--calls", "getpid"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        text(&output).contains("the kernel accepts 32768"),
        "{output:?}"
    );
}

#[test]
fn a_process_that_may_not_install_filters_is_told_so() {
    skip::unless_live();
    for (denied, said) in [
        ("seccomp", "no seccomp filters"),
        ("sched_setaffinity", "its CPU"),
        ("prctl", "no_new_privs"),
    ] {
        let policy = file(
            &format!("bench-without-{denied}.tamis"),
            &format!("default allow\nerrno(EPERM) {denied}\n"),
        );
        let output = Command::new(crate::TAMIS)
            .args(["run", "--quiet", "--no-explain", "-p"])
            .arg(policy)
            .args(["--", crate::TAMIS, "bench", "pure-compute", "--json"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        assert!(text(&output).contains(said), "{output:?}");
    }
}
