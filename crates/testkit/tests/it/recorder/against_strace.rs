//! The same run of a program, seen by the recorder and by `strace -f -c` at once: equal counts and errors.
//!
//! `strace` counts a call when it returns, so none in which a task ended. A task has at most one such call, so they are as many
//! as the recorder counts more, at most one for each task.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tamis_abi::{Arch, Nr, syscall};
use tamis_kernel::spawn::Spawn;
use tamis_recorder::Recording;
use tamis_recorder::ebpf::{Options, Recorder, Start};
use tamis_testkit::patience;

/// Calls and errors by architecture and name.
type Counts = BTreeMap<(Arch, String), (u64, u64)>;

/// How long `strace` may take to attach.
const PATIENCE: Duration = Duration::from_secs(30);

/// What `strace` and the recorder see differently of a command, if anything.
pub(super) fn difference(spawn: &Spawn<'_>, table: &Path) -> Option<String> {
    let (recording, theirs) = both(spawn, table);
    if !recording.lost.is_nothing() {
        return Some(format!("lost: {:?}", recording.lost));
    }
    let ours = counts(&recording);
    let mut tasks = 1;
    for name in ["clone", "clone3", "fork", "vfork"] {
        for ((_, _), (calls, errors)) in ours.iter().filter(|((_, call), _)| call == name) {
            tasks += calls - errors;
        }
    }
    let (mut unfinished, mut different) = (0, Vec::new());
    let places: BTreeSet<&(Arch, String)> = ours.keys().chain(theirs.keys()).collect();
    for place in places {
        let of = |counts: &Counts| counts.get(place).copied().unwrap_or_default();
        let ((mut calls, errors), (their_calls, their_errors)) = (of(&ours), of(&theirs));
        // In this one the child waited for its release, and the recorder came later.
        if *place == (Arch::X86_64, "read".to_owned()) && calls + 1 == their_calls {
            calls += 1;
        }
        // What a signal interrupted is an error of this call to `strace`: its result is the register of that one.
        let has_errors = place.1 != "rt_sigreturn" && place.1 != "sigreturn";
        let more = calls.saturating_sub(their_calls);
        unfinished += more;
        // A call in which the task was ended fails with an error that only the kernel sees.
        let are_errors_equal = (their_errors..=their_errors + more).contains(&errors);
        if calls < their_calls || (has_errors && !are_errors_equal) {
            different.push(format!(
                "{} {}: {calls} calls and {errors} errors, {their_calls} and {their_errors} to strace",
                place.0, place.1
            ));
        }
    }
    if unfinished > tasks {
        different.push(format!(
            "{unfinished} calls more than strace, but {tasks} tasks"
        ));
    }
    (!different.is_empty()).then(|| different.join("; "))
}

/// Runs a command that both see from its first call after they are attached.
fn both(spawn: &Spawn<'_>, table: &Path) -> (Recording, Counts) {
    let recorder = Recorder::new(Options::default()).expect("there was one before");
    let held = spawn.start().expect("a child");
    // What the child does before it waits is to be seen by neither.
    until_it_waits(held.pid());
    let mut strace = attached(held.pid(), table);
    recorder.record(held.pid(), Start::Now);
    let mut child = held.release();
    child.wait().expect("it ends");
    assert!(strace.wait().expect("strace ends").code().is_some());
    let recording = recorder.recording().expect("counts");
    (recording, table_of(table))
}

/// Returns when a child waits for its release, by `read`.
fn until_it_waits(pid: i32) {
    let call = PathBuf::from(format!("/proc/{pid}/syscall"));
    let began = Instant::now();
    let waits = || fs::read_to_string(&call).is_ok_and(|text| text.starts_with("0 "));
    while !waits() {
        assert!(
            began.elapsed() < patience::scaled(PATIENCE),
            "the child doesn't wait"
        );
        std::thread::yield_now();
    }
}

/// A `strace` that has attached to a task.
fn attached(pid: i32, table: &Path) -> Child {
    let mut strace = Command::new("strace")
        .args(["-f", "-c", "-U", "calls,errors,name", "-o"])
        .arg(table)
        .args(["-p", &pid.to_string()])
        .stderr(Stdio::null())
        .spawn()
        .expect("strace starts");
    let began = Instant::now();
    while !is_traced(pid) {
        assert!(
            began.elapsed() < patience::scaled(PATIENCE),
            "strace doesn't attach"
        );
        assert!(
            strace.try_wait().expect("a status").is_none(),
            "strace ended"
        );
        std::thread::yield_now();
    }
    strace
}

fn is_traced(pid: i32) -> bool {
    let status = fs::read_to_string(PathBuf::from(format!("/proc/{pid}/status")));
    let status = status.unwrap_or_default();
    let mut lines = status.lines();
    let tracer = lines.find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}

/// The rows of `strace -c -U calls,errors,name`, in a table for each architecture.
fn table_of(path: &Path) -> Counts {
    let text = fs::read_to_string(path).expect("strace has written its table");
    let mut arch = Arch::X86_64;
    let mut counts = Counts::new();
    for line in text.lines() {
        if line.contains("summary for 32 bit mode") {
            arch = Arch::X86;
        } else if line.contains("summary for x32 mode") {
            arch = Arch::X32;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let (calls, errors, name) = match words.as_slice() {
            [calls, name] => (calls, "0", name),
            [calls, errors, name] => (calls, *errors, name),
            _ => continue,
        };
        if let (Ok(calls), Ok(errors)) = (calls.parse(), errors.parse())
            && *name != "total"
            && !name.starts_with("syscall_0x")
        {
            counts.insert((arch, (*name).to_owned()), (calls, errors));
        }
    }
    counts
}

/// The calls with names, for to `strace` all strange numbers are x86-64's, and those for which a filter sent a signal.
fn counts(recording: &Recording) -> Counts {
    let calls = recording.profile.calls().filter_map(|(arch, nr, call)| {
        let name = syscall::name(arch, nr)?;
        let errors = call.errors.values().sum();
        Some(((arch, name.to_owned()), (call.count, errors)))
    });
    let mut counts: Counts = calls.collect();
    for (call, count) in &recording.signalled {
        let arch = Arch::of_call(call.arch, call.nr);
        let name = arch.and_then(|arch| Some((arch, syscall::name(arch, Nr(call.nr))?.to_owned())));
        if let Some(place) = name {
            counts.entry(place).or_default().0 += count;
        }
    }
    counts
}
