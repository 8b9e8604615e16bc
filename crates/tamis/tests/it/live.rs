//! `tamis run` and `tamis bpf dump` under load and where something fails around them: the right exit code, a clear
//! error, nothing left running.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use tamis_testkit::toolchains::stderr_text;
use tamis_testkit::{child, skip};

use crate::TAMIS;

/// A policy of these statements in a folder of the test's own; allows the rest.
fn policy(test: &str, name: &str, statements: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("live")
        .join(test);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name).with_extension("tamis");
    let text = format!("default allow\nbad-arch allow\n{statements}\n");
    fs::write(&path, text).unwrap();
    path
}

fn tamis(words: &[&str]) -> Command {
    let mut command = Command::new(TAMIS);
    command.args(words).stdin(Stdio::null());
    command
}

/// `tamis run` of a script under a policy, itself under another one.
fn run_under(outer: &Path, inner: &Path, options: &[&str], script: &str) -> Output {
    let mut command = tamis(&["run", "--no-explain", "-p"]);
    command.arg(outer).args(["--", TAMIS, "run"]).args(options);
    command
        .arg("-p")
        .arg(inner)
        .args(["--", "sh", "-c", script]);
    child::output(&mut command).expect("tamis starts")
}

#[test]
fn an_outer_filter_in_the_way_is_an_error_of_the_environment() {
    skip::unless_kernel();
    let inner = policy("outer", "inner", "errno(EPERM) reboot");
    let cases = [
        ("errno(EPERM) seccomp", "could not be installed"),
        ("errno(ENOSYS) seccomp", "no seccomp filters"),
        ("kill-process seccomp", "kills whoever installs another"),
        ("kill-thread seccomp", "kills whoever installs another"),
        ("trap seccomp", "kills whoever installs another"),
        (
            "kill-process getppid",
            "killed the process that was to execute",
        ),
        ("errno(EPERM) prctl", "no_new_privs failed"),
        ("errno(EPERM) waitid", "can't be waited for"),
        ("errno(EMFILE) pipe2", "could not be started: EMFILE"),
    ];
    for (index, (statement, expected)) in cases.into_iter().enumerate() {
        let outer = policy("outer", &format!("outer{index}"), statement);
        for options in [&[][..], &["--no-explain"]] {
            let output = run_under(&outer, &inner, options, "echo it runs");
            let printed = stderr_text(&output);
            assert_eq!(output.status.code(), Some(4), "{statement}: {printed}");
            assert!(printed.contains(expected), "{statement}: {printed}");
            assert_eq!(output.stdout, b"", "{statement}: the command ran");
        }
    }
}

/// Without tracing, the command runs all the same, and tamis says why nothing is explained.
#[test]
fn an_outer_filter_that_denies_tracing_costs_the_explanation_only() {
    skip::unless_kernel();
    let outer = policy("tracing", "outer", "errno(EPERM) ptrace");
    let inner = policy("tracing", "inner", "kill-process reboot");
    let output = run_under(&outer, &inner, &[], "exit 3");
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr_text(&output).contains("tracing is not permitted here"));
}

#[test]
fn a_stack_without_room_is_an_error_with_a_way_out() {
    skip::unless_kernel();
    let long = Path::new(env!("CARGO_TARGET_TMPDIR")).join("live-long.bpf");
    // `ret #allow`, and 4095 instructions that are never executed: `jset #0x80000000, 0, 0`, except the last.
    let mut insns = vec![[0x06, 0, 0, 0, 0, 0, 0xff, 0x7f]; 4096];
    insns[1..4094].fill([0x45, 0, 1, 1, 0, 0, 0, 0x80]);
    fs::write(&long, insns.concat()).unwrap();
    let run = |filters: usize| {
        let mut command = tamis(&["run", "--quiet"]);
        for _ in 0..filters {
            command.arg("-p").arg(&long);
        }
        child::output(command.args(["--", "sh", "-c", "exit 3"])).unwrap()
    };
    // Each counts as some 12284 of 32768 instructions.
    assert_eq!(run(2).status.code(), Some(3));
    let output = run(3);
    let printed = stderr_text(&output);
    assert_eq!(output.status.code(), Some(4), "{printed}");
    assert!(
        printed.contains("32768 converted instructions"),
        "{printed}"
    );
    assert!(
        printed.contains("help: install fewer or smaller filters"),
        "{printed}"
    );
}

#[test]
fn many_runs_at_once_end_as_their_commands() {
    skip::unless_kernel();
    let policy = policy("many", "policy", "errno(EPERM) reboot");
    thread::scope(|scope| {
        for worker in 0..4_u8 {
            let policy = &policy;
            scope.spawn(move || {
                for round in 0..20 {
                    let code = worker * 20 + round;
                    let script = match code % 4 {
                        0 => "kill -TERM $$".to_owned(),
                        _ => format!("exit {code}"),
                    };
                    let mut command = tamis(&["run", "-p"]);
                    command.arg(policy).args(["--", "sh", "-c", &script]);
                    let output = child::output(&mut command).expect("tamis starts");
                    match code % 4 {
                        0 => assert_eq!(output.status.signal(), Some(libc::SIGTERM)),
                        _ => assert_eq!(output.status.code(), Some(code.into())),
                    }
                    assert_eq!(stderr_text(&output), "");
                }
            });
        }
    });
}

/// Processes that end while they are read are gone or have ended, whatever the moment.
#[test]
fn dumping_processes_that_end_meanwhile() {
    skip::unless_kernel();
    let policy = policy("ending", "policy", "errno(EPERM) reboot");
    for round in 0..30 {
        let mut command = tamis(&["run", "--no-explain", "-p"]);
        command
            .arg(&policy)
            .args(["--", "sh", "-c", "echo $$; exec cat"]);
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.expect("tamis starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("it is captured");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
        let dump = |pid: &str| child::output(&mut tamis(&["bpf", "dump", "--pid", pid])).unwrap();
        if round % 2 == 0 {
            drop(child.stdin.take());
        }
        let output = dump(line.trim());
        drop(child.stdin.take());
        assert!(child.wait().expect("it ends").success());
        let printed = stderr_text(&output);
        match output.status.code() {
            Some(0) => {}
            Some(2) => assert!(printed.contains("ended") || printed.contains("no such process")),
            // Without the privileges.
            Some(4) => assert!(printed.contains("cannot read the filters"), "{printed}"),
            other => panic!("{other:?} {printed}"),
        }
    }
    let gone = tamis(&["bpf", "dump", "--pid", "2147483647"])
        .output()
        .unwrap();
    assert_eq!(gone.status.code(), Some(2));
}

/// The kernel confirms a filter, each with calls and packets, and both sides.
#[test]
fn fuzzing_with_the_running_kernel() {
    skip::unless_kernel();
    let policy = policy(
        "fuzz",
        "policy",
        "kill-process reboot\nerrno(ENOSYS) swapon",
    );
    let filter = policy.with_extension("bpf");
    let mut compile = tamis(&["compile", "-o"]);
    let status = compile.arg(&filter).arg(&policy).status();
    assert!(status.expect("tamis starts").success());
    let mut fuzz = tamis(&["bpf", "fuzz", "--evaluations", "5000", "--running-kernel"]);
    let output = child::output(fuzz.arg(&filter)).expect("tamis starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{printed}{}",
        stderr_text(&output)
    );
    let confirmed = |line: &&str| line.contains("the kernel says the same on ");
    assert_eq!(printed.lines().filter(confirmed).count(), 2, "{printed}");
}
