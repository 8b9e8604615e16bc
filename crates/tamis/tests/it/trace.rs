//! `tamis trace` compared with strace, and its effects on the command.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tamis_testkit::child;
use tamis_testkit::patience;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::toolchains;

use super::recording::unless_tracepoints;

use crate::TAMIS;

pub(super) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("trace")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Ends the test if commands can't be traced here.
pub(super) fn unless_traceable() {
    if let Err(unavailable) = tamis_platform::watching().probe() {
        skip::because(Need::Live, unavailable);
    }
}

/// Traces a command; its standard error is that of the trace if there is no `-o`.
pub(super) fn trace(options: &[&str], command: &[&str]) -> Output {
    let mut tamis = Command::new(TAMIS);
    tamis.arg("trace").args(options).arg("--").args(command);
    child::output(&mut tamis).expect("it starts")
}

pub(super) fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().map(str::to_owned).collect()
}

/// Commands of one process each, in an empty folder.
const COMMANDS: [&str; 12] = [
    "cat /etc/passwd /nonexistent",
    "ls -l /etc/apt",
    "touch one two",
    "cp /etc/passwd copy",
    "mv copy moved",
    "ln -s moved link",
    "readlink link nothing",
    "chmod 600 moved",
    "mkdir -p a/b/c",
    "rm -rf a link",
    "dd if=/dev/zero of=/dev/null bs=512 count=40 status=none",
    "find /etc/apt /nonexistent -name a*",
];

/// The calls with arguments or results that differ from run to run.
const DIFFERENT: [&str; 5] = [
    "execve",
    "fstatfs",
    "getrandom",
    "set_tid_address",
    "statfs",
];

/// Lines without task IDs and differing parts.
fn comparable(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a trace");
    let is_static = crate::is_static();
    let lines = text.lines().map(|line| {
        let line = line.trim_start_matches(|character: char| character.is_ascii_digit());
        let line = line.trim_start();
        let name = line.split('(').next().unwrap_or_default();
        if DIFFERENT.contains(&name) {
            return name.to_owned();
        }
        // A number with two names.
        if line.contains("FICLONE") {
            return name.to_owned();
        }
        // The C library of a static program has other words for some errors than that of strace.
        let line = match line.rsplit_once(" (") {
            Some((start, _)) if is_static && line.contains(" = -1 E") => start,
            _ => line,
        };
        // The flags of an open file have their names behind them.
        match line.split_once("F_GETFL)") {
            Some((start, _)) => start.to_owned(),
            None => line.to_owned(),
        }
    });
    lines.collect()
}

#[test]
fn lines_are_those_of_strace() {
    unless_traceable();
    skip::unless_runs(
        Need::Peers,
        "strace",
        &["-o", "/dev/null", "setarch", "-R", "true"],
    );
    let strace = "strace -f -o";
    let folders = [("strace", strace), ("tamis", "$TAMIS trace -o")];
    // Names of one length: they are in the environment, and so move the stack.
    let folders = folders.map(|(name, by)| (folder(&format!("by-{name:_<6}")), by));
    for command in COMMANDS {
        let traces = folders.each_ref().map(|(folder, by)| {
            let separator = if by.contains("TAMIS") { "--" } else { "" };
            let line = format!("cd work && exec setarch -R {by} ../trace {separator} {command}");
            fs::create_dir_all(folder.join("work")).expect("a folder");
            // Addresses depend on the words around the program.
            let mut shell = Command::new("sh");
            shell.args(["-c", &line]).current_dir(folder);
            shell
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .env("TAMIS", TAMIS);
            child::output(&mut shell).expect("it starts");
            comparable(&folder.join("trace"))
        });
        let [theirs, ours] = traces;
        assert!(theirs.len() > 20, "{command}: {theirs:#?}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs, "{command}");
        }
        assert_eq!(ours.len(), theirs.len(), "{command}");
    }
}

#[test]
fn only_what_is_asked_for_is_shown() {
    unless_traceable();
    let names = |options: &[&str]| -> Vec<String> {
        let output = trace(options, &["cat", "/etc/passwd"]);
        assert!(output.status.success(), "{output:?}");
        let calls = lines(&output).into_iter().filter(|line| line.contains('('));
        let names = calls.map(|line| line.split('(').next().unwrap_or_default().to_owned());
        names.collect()
    };
    let is = |options: &[&str], allowed: &[&str]| {
        let names = names(options);
        assert!(!names.is_empty(), "{options:?}");
        assert!(
            names.iter().all(|name| allowed.contains(&name.as_str())),
            "{options:?}: {names:?}"
        );
    };
    is(&["-e", "openat,close"], &["openat", "close"]);
    is(&["-e", "trace=openat", "-e", "close"], &["openat", "close"]);
    is(&["-e", "exit_group"], &["exit_group"]);
    is(&["-e", "mmap(prot & PROT_EXEC != 0)"], &["mmap"]);
    let without = names(&["-e", "!openat,read"]);
    assert!(without.iter().any(|name| name == "close"));
    assert!(
        !without
            .iter()
            .any(|name| name == "openat" || name == "read")
    );
    assert_eq!(names(&["-e", "openat(flags & O_CREAT != 0)"]), [""; 0]);
    let files = names(&["-e", "%file"]);
    assert!(files.iter().any(|name| name == "execve") && !files.iter().any(|name| name == "read"));
}

const SEVERAL: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static long i386(long nr) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(nr) : "memory", "r8", "r9", "r10", "r11");
    return result;
}
static void *thread(void *unused) {
    for (int i = 0; i < 100; i++) syscall(SYS_getpgid, 0L);
    return chdir("/thread") == 0 ? 0 : unused;
}
static void handler(int signal) { (void)signal; }
int main(void) {
    pthread_t threads[3];
    if (chdir("/nonexistent") == 0) return 1;
    i386(20);                       /* getpid, which is writev on x86-64 */
    syscall(0x40000000L + 39);      /* getpid of x32 */
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, thread, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    if (fork() == 0) {
        for (int i = 0; i < 100; i++) syscall(SYS_getpgid, 0L);
        _exit(chdir("/child") == 0 ? 4 : 3);
    }
    int status;
    wait(&status);
    return WEXITSTATUS(status) == 3 ? 5 : 6;
}
"#;

fn several(test: &str) -> PathBuf {
    let folder = toolchains::C.folder(
        Path::new(env!("CARGO_TARGET_TMPDIR")),
        &format!("trace-several-{test}"),
    );
    toolchains::C.build(&folder, SEVERAL)
}

/// The traced calls of the program.
fn check_several(test: &str, options: &[&str]) {
    let program = several(test);
    let program = program.to_str().expect("a path");
    let options = [options, &["-e", "chdir,getpid"]].concat();
    let output = trace(&options, &[program]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let lines = lines(&output);
    let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!(count("chdir(\"/nonexistent\")"), 1, "{lines:#?}");
    assert_eq!(count("chdir(\"/thread\""), 3, "{lines:#?}");
    assert_eq!(count("chdir(\"/child\""), 1, "{lines:#?}");
    assert_eq!(count("x86:getpid()"), 1, "{lines:#?}");
    assert_eq!(count("x32:getpid()"), 1, "{lines:#?}");
    assert_eq!(count("--- SIGUSR1 {"), 1, "{lines:#?}");
    // Without a tracer, ignored signals are not delivered.
    let is_traced = !options.contains(&"ebpf");
    assert_eq!(count("--- SIGCHLD {") == 1, is_traced, "{lines:#?}");
    assert_eq!(count("+++ exited with 3 +++"), 1, "{lines:#?}");
    assert_eq!(
        lines.last().map(String::as_str),
        Some("+++ exited with 5 +++")
    );
    assert_eq!(count("writev") + count("getpgid"), 0, "{lines:#?}");
}

#[test]
fn threads_children_signals_and_other_interfaces_are_seen() {
    unless_traceable();
    check_several("ptrace", &[]);
}

#[test]
fn programs_in_the_kernel_see_the_same() {
    unless_tracepoints();
    check_several("ebpf", &["--backend", "ebpf"]);
}

const OVERRUN: &str = r#"
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
static void calls(long count) {
    while (count--) {
        syscall(SYS_getpgid, 0L);
        syscall(SYS_close, -1L);
    }
}
int main(void) {
    kill(getppid(), SIGSTOP);
    calls(60000);
    kill(getppid(), SIGCONT);
    calls(2000);
    return 0;
}
"#;

/// While tamis is stopped, the buffer of events fills up.
#[test]
fn results_of_lost_calls_are_not_those_of_others() {
    unless_tracepoints();
    let folder = toolchains::C.folder(Path::new(env!("CARGO_TARGET_TMPDIR")), "trace-overrun");
    let program = toolchains::C.build(&folder, OVERRUN);
    let program = program.to_str().expect("a path");
    let options = ["--backend", "ebpf", "-e", "getpgid,close"];
    let output = trace(&options, &[program]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let lines = lines(&output);
    assert!(lines.iter().any(|line| line.contains("events were lost")));
    let of = |call: &'static str| lines.iter().filter(move |line| line.starts_with(call));
    let is_right = |line: &&String, result: &str| line.ends_with(result) || line.ends_with(" = ?");
    for line in of("close(-1)") {
        assert!(
            is_right(&line, " = -1 EBADF (Bad file descriptor)"),
            "{line}"
        );
    }
    for line in of("getpgid(0)") {
        assert!(line.ends_with(" = ?") || !line.contains("= -1"), "{line}");
    }
    assert!(of("close(-1)").count() > 1000);
}

#[test]
fn the_output_may_be_standard_output() {
    unless_traceable();
    let output = trace(&["-e", "exit_group", "-o", "-"], &["true"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("exit_group(0)"), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn programs_in_the_kernel_see_denied_calls() {
    unless_tracepoints();
    skip::unless_live();
    let folder = folder("denied");
    let policy = folder.join("policy.tamis");
    fs::write(&policy, "errno(EPERM) mkdir\ndefault allow\n").expect("a file");
    let policy = policy.to_str().expect("a path");
    let command = [TAMIS, "run", "-p", policy, "--", "mkdir", "/nonexistent/x"];
    let output = trace(
        &["--json", "--backend", "ebpf", "-e", "mkdir,execve"],
        &command,
    );
    let events: Vec<Value> = lines(&output)
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let calls = |name: &str| -> Vec<&Value> {
        events
            .iter()
            .filter(|event| event["call"] == name)
            .collect()
    };
    let mkdir = calls("mkdir");
    assert_eq!(mkdir.len(), 1, "{output:?}");
    assert_eq!(mkdir[0]["is_denied"], true);
    assert_eq!(mkdir[0]["error"], "EPERM");
    assert_eq!(mkdir[0]["args"][0]["value"], "/nonexistent/x");
    let execve = calls("execve");
    assert_eq!(execve.last().expect("a call")["result"], 0, "{output:?}");
}

#[test]
fn a_process_that_runs_is_shown() {
    unless_tracepoints();
    let folder = folder("running");
    let trace = folder.join("trace");
    let mut shell = Command::new("sh");
    shell.args(["-c", "while read line; do cd /; done"]);
    let mut shell = shell.stdin(Stdio::piped()).spawn().expect("it starts");
    let mut tamis = Command::new(TAMIS);
    tamis.args([
        "trace",
        "-e",
        "chdir",
        "--pid",
        &shell.id().to_string(),
        "-o",
    ]);
    let mut tamis = tamis.arg(&trace).spawn().expect("it starts");
    let mut stdin = shell.stdin.take().expect("a pipe");
    let text = || fs::read_to_string(&trace).unwrap_or_default();
    let began = Instant::now();
    while !text().contains("chdir") && began.elapsed() < patience::scaled(Duration::from_secs(60)) {
        stdin.write_all(b"\n").expect("it reads");
        // A program that ends for each line: calls as fast as the shell makes them have no room while tamis waits for a CPU.
        Command::new("true").status().expect("it starts");
    }
    drop(stdin);
    shell.wait().expect("it ends");
    assert_eq!(tamis.wait().expect("it ends").code(), Some(0));
    let text = text();
    let number = shell.id().to_string();
    for line in text.lines() {
        let line = line.strip_prefix(&number).expect("its number").trim_start();
        assert!(
            line.starts_with("chdir(\"/\")") && line.ends_with(" = 0")
                || line == "+++ exited with 0 +++",
            "{text}"
        );
    }
    assert!(text.contains("+++ exited"), "{text}");
}

#[test]
fn each_event_is_a_line_of_json() {
    unless_traceable();
    let program = several("json");
    let program = program.to_str().expect("a path");
    let output = trace(&["--json", "-e", "chdir,getpid"], &[program]);
    let events: Vec<Value> = lines(&output)
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let first = &events[0];
    assert_eq!(first["event"], "call");
    assert_eq!(first["call"], "chdir");
    assert_eq!(first["error"], "ENOENT");
    assert_eq!(first["result"], -2);
    assert_eq!(first["args"][0]["kind"], "text");
    assert_eq!(first["args"][0]["value"], "/nonexistent");
    let of_arch = |arch: &str| events.iter().filter(|event| event["arch"] == arch).count();
    assert_eq!((of_arch("x86"), of_arch("x32")), (1, 1));
    let last = events.last().expect("events");
    assert_eq!(
        (&last["event"], &last["code"]),
        (&"exited".into(), &5.into())
    );
    let signals = events.iter().filter(|event| event["event"] == "signal");
    assert_eq!(signals.count(), 2);
}

/// Ends with 0 if two calls fail as the filter below says.
const DENIED: &str = r#"
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    int is_traced = syscall(SYS_getuid) == -1 && errno == ENOSYS;
    int is_denied = syscall(SYS_getppid) == -1 && errno == EPERM;
    return is_traced && is_denied ? 0 : 1;
}
"#;

/// A filter of the command itself with `trace` has no tracer, and its calls fail as without tamis.
#[test]
fn filters_of_the_command_answer_as_ever() {
    unless_traceable();
    skip::unless_live();
    let folder = folder("own-filter");
    let policy = folder.join("policy.tamis");
    fs::write(
        &policy,
        "trace(7) getuid\nerrno(EPERM) getppid\ndefault allow\n",
    )
    .expect("a file");
    let policy = policy.to_str().expect("a path");
    let folder = toolchains::C.folder(Path::new(env!("CARGO_TARGET_TMPDIR")), "trace-own-filter");
    let program = toolchains::C.build(&folder, DENIED);
    let program = program.to_str().expect("a path");
    let command = [TAMIS, "run", "-p", policy, "--", program];
    let plain = child::output(Command::new(TAMIS).args(&command[1..])).expect("it starts");
    assert_eq!(plain.status.code(), Some(0), "{plain:?}");
    let output = trace(&["-e", "getuid,getppid"], &command);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let lines = lines(&output);
    let failed = |line: &&String| line.contains("getuid()") && line.contains("-1 ENOSYS");
    assert_eq!(lines.iter().filter(failed).count(), 1, "{lines:#?}");
}

#[test]
fn a_command_that_is_killed_or_missing_is_told_by_the_exit_status() {
    unless_traceable();
    let output = trace(&["-e", "chdir"], &["sh", "-c", "kill -TERM $$"]);
    assert_eq!(output.status.signal(), Some(15), "{output:?}");
    assert!(lines(&output).contains(&"+++ killed by SIGTERM +++".to_owned()));
    let output = trace(&[], &["./no-such-program"]);
    assert_eq!(output.status.code(), Some(127), "{output:?}");
}

fn lives(pid: &str) -> bool {
    tamis_kernel::lives(pid.parse().expect("a number"))
}

/// Whether a task that is being killed is gone soon.
fn is_gone(pid: &str) -> bool {
    let began = Instant::now();
    while lives(pid) && began.elapsed() < patience::scaled(Duration::from_secs(20)) {
        thread::yield_now();
    }
    !lives(pid)
}

#[test]
fn the_command_dies_with_its_tracer() {
    unless_traceable();
    let mut tamis = Command::new(TAMIS);
    tamis.args([
        "trace",
        "-e",
        "chdir",
        "--",
        "sh",
        "-c",
        "echo $$; exec sleep 1000",
    ]);
    let mut tamis = tamis
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut pid = String::new();
    let mut reader = BufReader::new(tamis.stdout.take().expect("a pipe"));
    reader.read_line(&mut pid).expect("a line");
    assert!(lives(pid.trim()));
    tamis.kill().expect("it lives");
    tamis.wait().expect("it ends");
    // The pipe ends when the last task that has it closes its files, before it is gone.
    reader.read_to_string(&mut String::new()).expect("its end");
    assert!(is_gone(pid.trim()));
}

#[test]
fn what_outlives_the_command_ends_with_an_interrupted_trace() {
    unless_traceable();
    let file = folder("interrupted").join("trace");
    let mut tamis = Command::new(TAMIS);
    tamis.args(["trace", "-e", "chdir", "-o"]).arg(&file);
    // The command ends at once; its child, which has the pipe, doesn't.
    tamis.args(["--", "sh", "-c", "cd /; sleep 1000 & echo $!"]);
    let mut tamis = tamis.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut reader = BufReader::new(tamis.stdout.take().expect("a pipe"));
    let mut pid = String::new();
    reader.read_line(&mut pid).expect("a line");
    let began = Instant::now();
    let text = || fs::read_to_string(&file).unwrap_or_default();
    while !text().contains("+++ exited with 0 +++")
        && began.elapsed() < patience::scaled(Duration::from_secs(60))
    {
        std::thread::yield_now();
    }
    // Before tamis has noticed the end, the signal goes to the command, which is gone.
    let number = tamis.id().to_string();
    while tamis.try_wait().expect("a status").is_none()
        && began.elapsed() < patience::scaled(Duration::from_secs(60))
    {
        let mut kill = Command::new("kill");
        let _ = kill.args(["-TERM", &number]).stderr(Stdio::null()).status();
    }
    let _ = tamis.kill();
    let signal = tamis.wait().expect("it ends").signal();
    assert!(matches!(signal, Some(2 | 15)), "{signal:?}");
    reader.read_to_string(&mut String::new()).expect("its end");
    assert!(is_gone(pid.trim()));
    assert!(text().contains("chdir"));
}

#[test]
fn an_expression_with_a_mistake_is_refused() {
    for (expression, part) in [
        ("opneat", "did you mean `openat`"),
        ("%flie", "no class of calls"),
        ("openat,,read", "empty part"),
        ("socket(fmaily == AF_INET)", "fmaily"),
        ("openat\nallow read", "--> -e:2:1"),
        ("openat # one\ndefault allow", "--> -e:2:1"),
    ] {
        let output = trace(&["-e", expression], &["true"]);
        assert_eq!(output.status.code(), Some(2), "{expression}: {output:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(part),
            "{expression}: {output:?}"
        );
    }
    let output = trace(&["-e", "read", "-e", "!write"], &["true"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn what_is_refused_leaves_the_file_of_the_output() {
    let file = folder("refused").join("trace");
    fs::write(&file, "kept").expect("a file");
    let mut tamis = Command::new(TAMIS);
    tamis.args(["trace", "--backend", "ptrace", "--pid", "1", "-o"]);
    let output = child::output(tamis.arg(&file)).expect("it starts");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(fs::read_to_string(&file).expect("a file"), "kept");
}
