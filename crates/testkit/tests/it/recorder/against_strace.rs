//! The same runs of real programs, seen by the recorder and by `strace -f -c` at once: equal counts and errors.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tamis_abi::syscall;
use tamis_kernel::spawn::Spawn;
use tamis_recorder::Recording;
use tamis_recorder::ebpf::{Options, Recorder, Start};
use tamis_testkit::skip::{self, Need};

use super::support::recorder;

/// Calls and errors by name.
type Counts = BTreeMap<String, (u64, u64)>;

/// Programs with threads, forks, shells, interpreters, pipes and signals.
const COMMANDS: [&str; 14] = [
    "ls -lR /etc",
    "cat /etc/passwd /nonexistent",
    "find /usr/share/doc -maxdepth 1 -name a*",
    "sort /etc/passwd -o /dev/null",
    "for i in 1 2 3 4 5; do /bin/true; done; wait",
    "(sleep 0.01; kill -USR1 $$) & trap : USR1; wait; wait",
    "yes | head -n 2000 | wc -l",
    "tar cf /dev/null /etc/apt",
    "grep -r root /etc/pam.d | sed s/root/x/ | sort | uniq -c",
    "kill -9 $$",
    "exec env -i /bin/echo done",
    "python3 -c 'import threading as t; a = [t.Thread(target=print) for _ in range(9)]; [x.start() for x in a]; [x.join() for x in a]'",
    "python3 -c 'import subprocess; [subprocess.run([\"true\"]) for _ in range(5)]'",
    "git --version; git -C / status; date; id; uname -a; df / >/dev/null",
];

/// How long `strace` may take to attach.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn counts_are_those_of_strace() {
    let Some(recorder) = recorder(Options::default()) else {
        return;
    };
    drop(recorder);
    if Command::new("strace")
        .arg("-V")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        return skip::because(Need::Peers, "no strace");
    }
    for (number, command) in COMMANDS.iter().enumerate() {
        let table = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("strace-{number}"));
        let (recording, theirs) = both(command, &table);
        assert!(
            recording.lost.is_nothing(),
            "{command}: {:?}",
            recording.lost
        );
        let ours = with_strace_s_view(counts(&recording));
        assert_eq!(ours, with_strace_s_view(theirs), "{command}");
    }
}

/// Runs a command that both see from its first call after they are attached.
fn both(command: &str, table: &Path) -> (Recording, Counts) {
    let recorder = Recorder::new(Options::default()).expect("there was one before");
    let mut spawn = Spawn::new("sh");
    spawn.args = ["-c", &format!("exec >/dev/null 2>&1; {command}")]
        .map(Into::into)
        .to_vec();
    spawn.no_new_privs = false;
    let held = spawn.start().expect("a child");
    let mut strace = attached(held.pid(), table);
    recorder.record(held.pid(), Start::Now);
    let mut child = held.release();
    child.wait().expect("it ends");
    assert!(strace.wait().expect("strace ends").code().is_some());
    let recording = recorder.recording().expect("counts");
    (recording, table_of(table))
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
        assert!(began.elapsed() < PATIENCE, "strace doesn't attach");
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

/// The rows of `strace -c -U calls,errors,name`.
fn table_of(path: &Path) -> Counts {
    let text = fs::read_to_string(path).expect("strace has written its table");
    let rows = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (calls, errors, name) = match words.as_slice() {
            [calls, name] => (calls, "0", name),
            [calls, errors, name] => (calls, *errors, name),
            _ => return None,
        };
        Some((
            (*name).to_owned(),
            (calls.parse().ok()?, errors.parse().ok()?),
        ))
    });
    rows.filter(|(name, _)| name != "total").collect()
}

fn counts(recording: &Recording) -> Counts {
    let calls = recording.profile.calls().map(|(arch, nr, call)| {
        let name = syscall::name(arch, nr).unwrap_or("?");
        (name.to_owned(), (call.count, call.errors.values().sum()))
    });
    calls.collect()
}

/// Without what the two see differently. `strace` counts calls when they return, so none of those that never do, and
/// it counts the call in which the child waited for its release. What a signal interrupted is an error of
/// `rt_sigreturn` to it: the result of that call is the register of the interrupted one.
fn with_strace_s_view(mut counts: Counts) -> Counts {
    for name in ["exit", "exit_group", "kill", "read"] {
        counts.remove(name);
    }
    if let Some((_, errors)) = counts.get_mut("rt_sigreturn") {
        *errors = 0;
    }
    counts
}
