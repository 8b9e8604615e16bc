//! Commands under limits of the system, with their use of resources.
//!
//! A shell sets the limits and reports the processor time, which is used instead of the elapsed time: a command with
//! one busy thread can't use more processor time than the elapsed time, so its limit of elapsed time bounds it on any
//! busy machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::child;
use crate::generate::hostile::readers::Reading;

/// Sets limits of processor time in seconds and of address space in KiB, runs the command, and prints its exit status
/// and the processor time of the shell and of the command.
const SCRIPT: &str = r#"ulimit -t 20; ulimit -v 1000000; "$@" >/dev/null; echo $?; times"#;

/// How a command ended under limits of 20 seconds of processor time and a gigabyte of address space.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The exit status as a shell has it: above 128 after a signal.
    pub status: i32,
    /// Its processor time, in seconds.
    pub cpu_s: f64,
    /// The standard error.
    pub stderr: String,
}

/// Runs a program, with nothing on its standard input and an empty environment.
///
/// # Panics
/// If there is no shell.
pub fn run(program: &Path, args: &[&str]) -> Outcome {
    let mut command = Command::new("sh");
    command
        .args(["-c", SCRIPT, "sh"])
        .arg(program)
        .args(args)
        .env_clear()
        .stdin(Stdio::null());
    let output = child::output(&mut command).expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    let status = lines.next().and_then(|line| line.parse().ok());
    // The second line of `times` has the children's time in user and system mode, as `0m1.234s 0m0.120s`.
    let times = lines.nth(1).expect("`times`").split_whitespace();
    Outcome {
        status: status.expect("a status"),
        cpu_s: times.map(seconds).sum(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn seconds(text: &str) -> f64 {
    let (minutes, seconds) = text
        .trim_end_matches('s')
        .split_once('m')
        .expect("minutes and seconds");
    let [minutes, seconds] = [minutes, seconds].map(|text| text.parse::<f64>().expect("a number"));
    60.0 * minutes + seconds
}

/// The commands that read an input, each as its arguments; `FILE` and `KIND` stand for the input and the value of
/// `--from`.
pub const COMMANDS: [&[&str]; 12] = [
    &["compile", "FILE", "--from=KIND", "-o", "/dev/null"],
    &[
        "compile",
        "FILE",
        "--from=KIND",
        "-o",
        "/dev/null",
        "--stats",
        "--remarks",
    ],
    &["optimize", "FILE", "--from=KIND", "-o", "/dev/null"],
    &["prove", "FILE", "container-default", "--left=from=KIND"],
    &["diff", "container-default", "FILE", "--new=from=KIND"],
    &["lint", "FILE", "--from=KIND"],
    &["convert", "FILE", "--from=KIND", "--to=oci"],
    &["bpf", "decompile", "FILE", "--from=KIND"],
    &["explain", "FILE", "read", "--from=KIND"],
    &["bpf", "eval", "FILE", "read", "--from=KIND"],
    &["bpf", "disasm", "FILE", "--from=KIND"],
    &["bpf", "fuzz", "FILE", "--from=KIND", "--evaluations=1000"],
];

/// The arguments of one of the [`COMMANDS`] for an input.
pub fn args<'a>(command: &[&'a str], file: &str, kind: &str) -> Vec<String> {
    let filled = command
        .iter()
        .map(|part: &&'a str| part.replace("KIND", kind));
    filled
        .map(|part| {
            if part == "FILE" {
                file.to_owned()
            } else {
                part
            }
        })
        .collect()
}

/// What a command may allocate for each byte of its inputs, and without any: tables, the policy that goes with them.
const PER_BYTE: usize = 20;
const BASE_BYTES: usize = 16 << 20;
/// The processor time for each megabyte, without optimisation, which takes ten times as long as a second for 16 MB; and for
/// what is limited by its number.
const MAX_CPU_S_PER_MB: f64 = 1.0;
const BASE_CPU_S: f64 = 3.0;

/// The arguments with the files of a folder.
fn reading_args(program: &Path, folder: &Path, reading: &Reading) -> Vec<String> {
    let limit = PER_BYTE * reading.size_bytes() + BASE_BYTES + reading.rules_bytes;
    let args = reading.args.iter().map(|arg| (*arg).to_owned());
    let limit = format!("--memory-limit={}", limit.div_ceil(1_000_000));
    let folder = folder.display().to_string();
    let script = "cd \"$0\" && exec \"$@\"".to_owned();
    let shell = [
        "-c".to_owned(),
        script,
        folder,
        program.display().to_string(),
        limit,
    ];
    shell.into_iter().chain(args).collect()
}

/// A report if the program took too much for what it reads in a folder, or ended by a signal or as a bug.
///
/// # Panics
/// If the files can't be written.
pub fn failure(program: &Path, folder: &Path, reading: &Reading) -> Option<String> {
    for (name, bytes) in &reading.files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("it is in the folder")).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let args = reading_args(program, folder, reading);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = run(Path::new("/bin/sh"), &args);
    let max_cpu_s = BASE_CPU_S + MAX_CPU_S_PER_MB * reading.size_bytes() as f64 / 1e6;
    let is_bad = outcome.stderr.contains("more memory than allowed")
        || outcome.cpu_s > max_cpu_s
        || !(0..=4).contains(&outcome.status);
    is_bad.then(|| {
        let start: String = outcome.stderr.chars().take(300).collect();
        let Reading { name, args, .. } = reading;
        let size_bytes = reading.size_bytes();
        format!(
            "{name}, {size_bytes} bytes: {args:?}: exit {}, {:.2} s: {start}",
            outcome.status, outcome.cpu_s
        )
    })
}
