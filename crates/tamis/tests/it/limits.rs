//! Limits of time and memory hold for hostile inputs.
//!
//! Each command is a child process with limits of its own: a shell sets them, and reports the processor time that the
//! command took. Processor time is what is asserted, not the time on the clock: a command with one thread can't take
//! more of it than passes on the clock, so its time limit, which is on the clock, bounds it on a machine however
//! busy; other processes only make it less. What the slack is for is work between two looks at the clock, and
//! reading and reporting, in a build without optimisation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tamis_testkit::generate::hostile::{self, Hostile};
use tamis_testkit::{child, seeds};

const TIME_LIMIT_S: f64 = 1.0;
/// What a command may take beyond its time limit.
const SLACK_S: f64 = 1.5;

/// Sets limits of processor time in seconds and of address space in KiB, runs the command, and prints its exit status
/// and the processor time of the shell and of the command.
const SCRIPT: &str = r#"ulimit -t 20; ulimit -v 1000000; "$@" >/dev/null 2>&1; echo $?; times"#;

/// What a command took.
struct Outcome {
    status: i32,
    cpu_s: f64,
}

fn run(args: &[&str]) -> Outcome {
    let mut command = Command::new("sh");
    command
        .args(["-c", SCRIPT, "sh", env!("CARGO_BIN_EXE_tamis")])
        .args(args)
        .env_clear()
        .stdin(Stdio::null());
    let output = child::output(&mut command).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    let status = lines.next().unwrap().parse().unwrap();
    // The second line of `times` has the children's time in user and system mode, as `0m1.234s 0m0.120s`.
    let times = lines.nth(1).unwrap().split_whitespace();
    let cpu_s = times.map(seconds).sum();
    Outcome { status, cpu_s }
}

fn seconds(text: &str) -> f64 {
    let (minutes, seconds) = text.trim_end_matches('s').split_once('m').unwrap();
    let [minutes, seconds] = [minutes, seconds].map(|text| text.parse::<f64>().unwrap());
    60.0 * minutes + seconds
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
fn time_and_memory_are_limited() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("limits");
    fs::create_dir_all(&folder).unwrap();
    let all = hostile::all();
    assert!(all.len() >= 20, "{}", all.len());
    let limit = ["--time-limit", &TIME_LIMIT_S.to_string()];
    let mut failures = Vec::new();
    // Some of every kind, also where few are tried.
    let step = all.len() / seeds::share(all.len());
    for hostile in all.iter().step_by(step) {
        let [left, right] = files(&folder, hostile);
        let mut commands = vec![
            vec!["prove", &left, &right],
            vec!["diff", &left, &right],
            vec!["prove", &left, &left],
            vec!["lint", &left],
        ];
        if hostile.extension == "tamis" {
            commands.push(vec!["compile", &left, "-o", "/dev/null"]);
        }
        for command in commands {
            let outcome = run(&[&command[..], &limit].concat());
            let is_over = outcome.cpu_s > 1.1 * TIME_LIMIT_S + SLACK_S;
            // Done, no, invalid after all or given up: neither a bug nor killed.
            let report = format!(
                "{}: {command:?}: exit {}, {:.2} s",
                hostile.name, outcome.status, outcome.cpu_s
            );
            println!("{report}");
            if is_over || !(0..=3).contains(&outcome.status) {
                failures.push(report);
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn the_memory_limit_says_what_used_it() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("memory-limit");
    fs::create_dir_all(&folder).unwrap();
    let all = hostile::all();
    let quotients = all
        .iter()
        .find(|hostile| hostile.name == "Div of three words");
    let [left, right] = files(&folder, quotients.unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_tamis"));
    command.args(["lint", &left, "--memory-limit", "1"]);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("more memory than allowed"), "{text}");
    assert!(text.contains("--memory-limit 4"), "{text}");
    // Equal sides need none, and a difference is found without any.
    let prove = |right: &str| run(&["prove", &left, right, "--memory-limit", "1"]).status;
    assert_eq!((prove(&left), prove(&right)), (0, 1));
}
