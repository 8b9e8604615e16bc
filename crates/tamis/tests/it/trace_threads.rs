//! `tamis trace` beside strace where threads end, or one of them takes the place of all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tamis_testkit::child;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::toolchains;

use super::recording::unless_tracepoints;
use super::trace::{lines, trace, unless_traceable};

/// Waits until every other thread of the process is in `pause`.
const PROLOGUE: &str = r#"
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
// The call of `pause`.
#ifdef SYS_pause
enum { PAUSE = SYS_pause };
#else
enum { PAUSE = SYS_ppoll };
#endif
static void *pausing(void *unused) { pause(); return unused; }
static int paused(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        char path[300];
        long nr = -1;
        // `..` is the process, whose call is that of the first thread.
        if (task->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/syscall", task->d_name);
        FILE *call = fopen(path, "r");
        int is_pausing = call && fscanf(call, "%ld", &nr) == 1 && nr == PAUSE;
        if (call) fclose(call);
        // A tracer may not yet have seen the call of a task that it has to let go on.
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", task->d_name);
        FILE *stat = fopen(path, "r");
        char state = 0;
        if (stat && fscanf(stat, "%*d (%*[^)]) %c", &state) == 1 && state == 'S') count += is_pausing;
        if (stat) fclose(stat);
    }
    if (tasks) closedir(tasks);
    return count;
}
"#;

/// A thread executes a program while the first and another one are in calls.
const EXECUTING_THREAD: &str = r#"
static void *thread(void *unused) {
    while (paused() < 2) {}
    execl("/bin/echo", "echo", "by a thread", (char *)0);
    return unused;
}
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, pausing, 0);
    pthread_create(&threads[1], 0, thread, 0);
    pause();
    return 1;
}
"#;

/// The first thread ends, then another one ends all.
const ENDED_FIRST: &str = r#"
static int first_has_ended(void) {
    char path[60], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
    FILE *stat = fopen(path, "r");
    int known = stat ? fscanf(stat, "%*d (%*[^)]) %c", &state) : 0;
    if (stat) fclose(stat);
    return known == 1 && state == 'Z';
}
static void *thread(void *unused) {
    while (paused() < 1 || !first_has_ended()) {}
    _exit(5);
    return unused;
}
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, pausing, 0);
    pthread_create(&threads[1], 0, thread, 0);
    syscall(SYS_exit, 3);
    return 1;
}
"#;

fn built(test: &str, text: &str) -> PathBuf {
    let folder = toolchains::C.folder(
        Path::new(env!("CARGO_TARGET_TMPDIR")),
        &format!("trace-threads-{test}"),
    );
    toolchains::C.build(&folder, &format!("{PROLOGUE}{text}"))
}

/// The last one is that of `pause`.
const CALLS: &str = match cfg!(target_arch = "x86_64") {
    true => "execve,exit,exit_group,pause",
    false => "execve,exit,exit_group,ppoll",
};

/// Calls and tasks, with tasks numbered in the order of their first appearance.
fn ends(lines: &[String]) -> Vec<String> {
    let mut names = BTreeMap::new();
    let mut ends: Vec<String> = lines
        .iter()
        .filter(|line| line.contains("resumed>") || line.contains("+++"))
        .map(|line| {
            let line = line.split("] ").last().unwrap_or_default();
            // strace writes so where the kernel would have filled an argument of the call.
            let line = line.replace("resumed> <unfinished ...>)", "resumed>)");
            let words = line.split_whitespace().map(|word| {
                let is_task = word.parse::<u32>().is_ok_and(|number| number > 100);
                let next = format!("task {}", names.len());
                match is_task {
                    true => names.entry(word.to_owned()).or_insert(next).clone(),
                    false => word.to_owned(),
                }
            });
            words.collect::<Vec<_>>().join(" ")
        })
        .collect();
    // Threads that are killed end in any order.
    ends.sort_unstable();
    ends
}

/// The output of strace for a program.
fn by_strace(program: &str) -> Vec<String> {
    skip::unless_runs(Need::Peers, "strace", &["-o", "/dev/null", "true"]);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-e", &format!("trace={CALLS}"), program]);
    let output = child::output(&mut strace).expect("it has just run");
    ends(&lines(&output))
}

/// Whether a back end, given by options, shows how calls and tasks of a program end as strace does.
fn check(options: &[&str], program: &Path, code: i32, expected: usize) {
    let program = program.to_str().expect("a path");
    let theirs = by_strace(program);
    assert_eq!(theirs.len(), expected, "{theirs:#?}");
    let output = trace(&[options, &["-e", CALLS]].concat(), &[program]);
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let lines = lines(&output);
    assert_eq!(ends(&lines), theirs, "{options:?} {lines:#?}");
    let last = format!("+++ exited with {code} +++");
    assert_eq!(lines.last(), Some(&last), "{lines:#?}");
}

const EBPF: [&str; 2] = ["--backend", "ebpf"];

/// The thread gets the number of its process while it is in the call.
#[test]
fn a_thread_that_executes_a_program_returns_from_it() {
    unless_traceable();
    check(&[], &built("exec", EXECUTING_THREAD), 0, 6);
}

#[test]
fn a_thread_that_executes_a_program_returns_from_it_in_the_kernel() {
    unless_tracepoints();
    check(&EBPF, &built("exec-ebpf", EXECUTING_THREAD), 0, 6);
}

#[test]
fn the_first_thread_ends_with_its_process() {
    unless_traceable();
    check(&[], &built("first", ENDED_FIRST), 5, 4);
}

#[test]
fn the_first_thread_ends_with_its_process_in_the_kernel() {
    unless_tracepoints();
    check(&EBPF, &built("first-ebpf", ENDED_FIRST), 5, 4);
}

#[test]
fn a_task_ends_once() {
    unless_tracepoints();
    let program = built("once", EXECUTING_THREAD);
    let program = program.to_str().expect("a path");
    let options = ["--json", "--backend", "ebpf", "-e", CALLS];
    let output = trace(&options, &[program]);
    let events: Vec<Value> = lines(&output)
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let mut ended: Vec<&Value> = events
        .iter()
        .filter(|event| event["event"] == "exited")
        .map(|event| &event["task"])
        .collect();
    assert_eq!(ended.len(), 2, "{output:?}");
    ended.dedup();
    assert_eq!(ended.len(), 2, "{output:?}");
    let of = |event: &str| {
        events
            .iter()
            .filter(|known| known["event"] == event)
            .count()
    };
    assert_eq!(of("superseded"), 1, "{output:?}");
    let interrupted = events.iter().any(|event| event["is_interrupted"] == true);
    assert!(!interrupted, "{output:?}");
}
