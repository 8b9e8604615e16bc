//! Limits of time and memory hold for hostile inputs, whatever a command does with them.
//!
//! Every input goes through some of the commands in turn; the example `limits` of the crate testkit runs all of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tamis_testkit::generate::hostile::{self, Hostile, texts};
use tamis_testkit::limited::{self, COMMANDS, Outcome};
use tamis_testkit::{child, seeds};

const TIME_LIMIT_S: f64 = 0.4;
/// The most time of a command: a tenth and 50 ms beyond its time limit, and a margin because an orderly end and the system's
/// work at the end of a process take longer without optimisation.
const MAX_CPU_S: f64 = 1.1 * TIME_LIMIT_S + 0.05 + 0.2;
/// A hundred diagnostics, each with an excerpt.
const MAX_STDERR_BYTES: usize = 128 << 10;

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn tamis(args: &[&str]) -> Outcome {
    limited::run(Path::new(crate::TAMIS), args)
}

/// A report if the command took too much, or ended in another way than by an answer, a mistake or giving up.
fn failure(name: &str, args: &[&str]) -> Option<String> {
    let limit = format!("--time-limit={TIME_LIMIT_S}");
    let outcome = tamis(&[args, &[&limit]].concat());
    let is_bad = outcome.cpu_s > MAX_CPU_S
        || outcome.stderr.len() > MAX_STDERR_BYTES
        || !(0..=3).contains(&outcome.status);
    is_bad.then(|| {
        let start: String = outcome.stderr.chars().take(300).collect();
        format!(
            "{name}: {args:?}: exit {}, {:.2} s, {} bytes: {start}",
            outcome.status,
            outcome.cpu_s,
            outcome.stderr.len()
        )
    })
}

fn files(folder: &Path, hostile: &Hostile) -> [String; 2] {
    let names = ["left", "right"].map(|side| format!("{side}.{}", hostile.extension));
    let mut names = names.into_iter().zip(&hostile.sides);
    [(), ()].map(|()| {
        let (name, bytes) = names.next().unwrap();
        let path = folder.join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    })
}

#[test]
fn hostile_texts_are_read_within_limits() {
    let folder = folder("hostile-texts");
    // What is longer differs only by the time for bytes.
    let all = texts::all(4);
    assert!(all.len() >= 40, "{}", all.len());
    let step = seeds::step(all.len());
    let mut failures = Vec::new();
    for (index, text) in all.iter().enumerate().step_by(step) {
        let file = folder.join(format!("input.{}", text.kind));
        fs::write(&file, &text.bytes).unwrap();
        let command = COMMANDS[index % COMMANDS.len()];
        let args = limited::args(command, file.to_str().unwrap(), text.kind);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        failures.extend(failure(&text.name, &args));
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn hostile_comparisons_end_within_limits() {
    let folder = folder("hostile-pairs");
    let all = hostile::all();
    let step = seeds::step(all.len());
    let mut failures = Vec::new();
    for (index, hostile) in all.iter().enumerate().step_by(step) {
        let [left, right] = files(&folder, hostile);
        let also = limited::args(COMMANDS[index % COMMANDS.len()], &left, hostile.extension);
        let also = also.iter().map(String::as_str).collect();
        let by_turns: Vec<&str> = match index % 3 {
            0 => vec!["diff", &left, &right],
            1 => vec!["prove", &left, &left],
            _ => vec!["lint", &left],
        };
        for args in [vec!["prove", &left, &right], by_turns, also] {
            failures.extend(failure(&hostile.name, &args));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_command_that_gives_up_says_what_it_was_doing() {
    let folder = folder("gave-up");
    let find = |name: &str| {
        let mut all = texts::all(4).into_iter();
        let text = all.find(|text| text.name == name).unwrap();
        let file = folder.join(format!("input.{}", text.kind));
        fs::write(&file, &text.bytes).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let entries = find("300 OCI entries of 6 conditions");
    let outcome = tamis(&["compile", &entries, "--time-limit=0.1", "-o", "/dev/null"]);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    let text = format!("gave up while reading {entries}: the time limit was reached");
    assert!(outcome.stderr.contains(&text), "{outcome:?}");
    assert!(outcome.stderr.contains("--time-limit 1\n"), "{outcome:?}");
    let outcome = tamis(&[
        "bpf",
        "fuzz",
        "pure-compute",
        "--time-limit=0.1",
        "--evaluations=1000000000",
    ]);
    let advice = "--time-limit 1; `--time SECONDS` ends with a summary\n";
    assert!(outcome.stderr.contains(advice), "{outcome:?}");

    let lines = find("4 MB of lines of `a` as tamis");
    let outcome = tamis(&["lint", &lines, "--from=tamis", "--memory-limit=10"]);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    let text = format!("gave up while reading {lines}: it takes more memory than allowed");
    assert!(outcome.stderr.contains(&text), "{outcome:?}");
    assert!(
        outcome.stderr.contains("--memory-limit 40\n"),
        "{outcome:?}"
    );

    let mut command = Command::new(crate::TAMIS);
    command.args([
        "bpf",
        "eval",
        &entries,
        "read",
        "--json",
        "--time-limit=0.1",
    ]);
    let output = child::output(&mut command).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{document}");
    assert!(document["schema"].is_string(), "{document}");
}

#[test]
fn the_memory_limit_says_what_used_it() {
    let folder = folder("memory-limit");
    let all = hostile::all();
    let quotients = all
        .iter()
        .find(|hostile| hostile.name == "Div of three words");
    let [left, right] = files(&folder, quotients.unwrap());
    let outcome = tamis(&["lint", &left, "--memory-limit", "1"]);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    let text = &outcome.stderr;
    assert!(text.contains("more memory than allowed"), "{text}");
    assert!(text.contains("--memory-limit 4"), "{text}");
    // Equal sides need none, and a difference is found without any.
    let prove = |right: &str| tamis(&["prove", &left, right, "--memory-limit", "1"]).status;
    assert_eq!((prove(&left), prove(&right)), (0, 1));
}
