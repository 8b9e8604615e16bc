//! `tamis record`: its summary beside that of strace, the table while it records, and control groups.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tamis_recorder::ebpf::{Options, Recorder, Unavailable};
use tamis_testkit::child;
use tamis_testkit::patience;
use tamis_testkit::skip::{self, Need};

use crate::TAMIS;

/// Ends the test if programs can't run at the kernel's tracepoints here.
pub(crate) fn unless_tracepoints() {
    match Recorder::new(Options::default()) {
        Ok(_) | Err(Unavailable::Program { .. } | Unavailable::Bug(_)) => {}
        Err(error) => skip::because(Need::Tracepoints, error),
    }
}

fn record(words: &[&str]) -> Output {
    let mut command = Command::new(TAMIS);
    command.arg("record").args(words).stdin(Stdio::null());
    child::output(&mut command).expect("tamis starts")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The headings, rules, names and counts of a table.
fn shape(table: &str) -> (Vec<String>, usize) {
    let mut lines = table.lines();
    let heading: Vec<String> = lines.by_ref().take(2).map(str::to_owned).collect();
    (heading, lines.count())
}

#[test]
fn the_summary_has_the_columns_of_strace() {
    unless_tracepoints();
    skip::unless_runs(Need::Peers, "strace", &["-o", "/dev/null", "true"]);
    for columns in [
        "time,total-time,avg-time,calls,errors,name",
        "name,shortest,longest,count",
        "errors,max_time,calls",
        "time_percent,syscall-name,min-time",
    ] {
        let table = text(&record(&[
            "--summary",
            "strace",
            "-U",
            columns,
            "--",
            "cat",
            "/etc/passwd",
        ]));
        let mut strace = Command::new("strace");
        strace.args(["-c", "-w", "-U", columns, "cat", "/etc/passwd"]);
        let theirs = text(&child::output(&mut strace).expect("it starts"));
        let (ours, our_count) = shape(&table);
        let (theirs, their_count) = shape(&theirs);
        assert_eq!(ours, theirs, "{columns}");
        // strace doesn't count calls that never return.
        assert_eq!(our_count, their_count + 1, "{columns}");
    }
}

#[test]
fn rows_have_the_order_that_was_asked_for() {
    unless_tracepoints();
    let rows = |order: &str| -> Vec<(u64, String)> {
        let table = text(&record(&[
            "--summary",
            "strace",
            "-U",
            "calls",
            "-S",
            order,
            "--",
            "ls",
            "/",
        ]));
        let rows = table.lines().filter_map(|line| {
            let (calls, name) = line.trim().split_once(' ')?;
            Some((calls.parse().ok()?, name.to_owned()))
        });
        rows.filter(|(_, name)| name != "total").collect()
    };
    assert!(rows("calls").is_sorted_by(|one, other| one.0 >= other.0));
    assert!(rows("name").is_sorted_by_key(|(_, name)| name.clone()));
    assert_eq!(
        rows("none").first().map(|(_, name)| name.as_str()),
        Some("read")
    );
    let output = record(&["--summary", "strace", "-S", "pace", "--", "true"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn the_live_table_is_only_shown_where_it_is_asked_for() {
    unless_tracepoints();
    let shown = text(&record(&["--live", "always", "--", "sleep", "0.1"]));
    assert!(
        shown.contains("Ctrl-C ends") && shown.contains("calls made"),
        "{shown}"
    );
    assert!(!text(&record(&["--", "sleep", "0.1"])).contains("Ctrl-C ends"));
    assert!(!text(&record(&["-q", "--live", "always", "--", "true"])).contains("Ctrl-C ends"));
}

/// A control group that is removed in the end.
struct Group(PathBuf);

impl Group {
    /// The test ends where there can't be one.
    fn new() -> Group {
        Group::named(&format!("{:012x}", std::process::id()))
    }

    fn named(name: &str) -> Group {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let fields = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut mounts = mounts.lines().map(fields);
        let root = mounts.find(|fields| fields.get(2).is_some_and(|kind| kind == "cgroup2"));
        let Some(root) = root else {
            skip::because(Need::Live, "no control groups of version 2");
        };
        let folder = PathBuf::from(&root[1]).join(format!("tamis-{name}"));
        match fs::create_dir(&folder) {
            Ok(()) => Group(folder),
            Err(error) => {
                skip::because(Need::Live, format!("no control group can be made: {error}"))
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// A process that is in the group until its input ends, and copies its input.
fn member_of(group: &Group) -> (Child, BufReader<ChildStdout>) {
    let join = format!(
        "echo $$ >{}/cgroup.procs && echo joined && exec cat",
        group.0.display()
    );
    let mut member = Command::new("sh")
        .args(["-c", &join])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(member.stdout.take().expect("a pipe"));
    lines.read_line(&mut String::new()).expect("a line");
    (member, lines)
}

#[test]
fn the_calls_of_a_control_group_are_recorded_also_of_tasks_that_join_it() {
    unless_tracepoints();
    let group = Group::new();
    let name = group
        .0
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    let (mut member, mut lines) = member_of(&group);
    let profile = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("group.json");
    for option in [["--cgroup", name], ["--container", &name[6..]]] {
        let mut tamis = Command::new(TAMIS);
        tamis
            .args(["record", "--live", "always"])
            .args(option)
            .arg("-o")
            .arg(&profile);
        let mut tamis = tamis.stderr(Stdio::piped()).spawn().expect("it starts");
        // Another one joins and leaves; it is there when its number has been written.
        let joining = format!(
            "sh -c 'echo $$ >{}/cgroup.procs; cd /; cd /'",
            group.0.display()
        );
        // The table is drawn when calls are counted.
        let mut errors = BufReader::new(tamis.stderr.take().expect("a pipe"));
        errors.read_line(&mut String::new()).expect("a line");
        let status = Command::new("sh")
            .args(["-c", &joining])
            .status()
            .expect("it starts");
        assert!(status.success());
        writeln!(member.stdin.as_ref().expect("a pipe")).expect("it reads");
        lines.read_line(&mut String::new()).expect("an echo");
        // SIGINT would be ignored where these tests run in the background of a script.
        let told = Command::new("kill").arg(tamis.id().to_string()).status();
        assert!(told.expect("it starts").success());
        errors.read_to_string(&mut String::new()).expect("its end");
        assert!(tamis.wait().expect("it ends").success());
        let profile = fs::read_to_string(&profile).expect("a profile");
        let profile: Value = serde_json::from_str(&profile).expect("JSON");
        let calls = profile["calls"].as_array().expect("calls");
        let count = |name: &str| {
            let call = calls.iter().find(|call| call["call"] == name);
            call.map_or(0, |call| call["count"].as_u64().expect("a number"))
        };
        assert_eq!(count("chdir"), 2, "{option:?}: {profile}");
        assert!(count("write") > 0, "{option:?}: {profile}");
        let by_others = count("clone") + count("wait4");
        assert_eq!(
            by_others, 0,
            "what starts them isn't in the group: {profile}"
        );
    }
    drop(member.stdin.take());
    member.wait().expect("it ends");
}

#[test]
fn a_signal_after_the_command_loses_nothing_of_notify() {
    skip::unless_live();
    a_signal_after_the_command_loses_nothing("notify");
}

#[test]
fn a_signal_after_the_command_loses_nothing_of_ebpf() {
    unless_tracepoints();
    a_signal_after_the_command_loses_nothing("ebpf");
}

/// An interrupt doesn't lose the recording, even after the command has ended.
fn a_signal_after_the_command_loses_nothing(backend: &str) {
    let profile = format!("signalled-{backend}.json");
    let profile = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(profile);
    let _ = fs::remove_file(&profile);
    // The summary has to wait, since the pipe is full until it is read.
    let (mut reader, writer) = io::pipe().expect("a pipe");
    let mut filling = writer.try_clone().expect("a descriptor");
    let filler = thread::spawn(move || filling.write_all(&[b'.'; 1 << 20]));
    let mut tamis = Command::new(TAMIS);
    tamis.args(["record", "--live", "never", "--backend", backend, "-o"]);
    tamis.arg(&profile).args(["--", "true"]);
    let mut running = tamis.stderr(writer).spawn().expect("it starts");
    drop(tamis);
    let began = Instant::now();
    while !profile.exists() && running.try_wait().expect("a child").is_none() {
        let limit = patience::scaled(Duration::from_secs(60));
        assert!(began.elapsed() < limit, "there is no profile");
        thread::yield_now();
    }
    let told = Command::new("kill").arg(running.id().to_string()).status();
    assert!(told.expect("it starts").success());
    let mut shown = String::new();
    reader.read_to_string(&mut shown).expect("text");
    filler.join().expect("no panic").expect("it is read");
    let ended = running.wait().expect("it ends");
    let shown = shown.trim_matches('.');
    assert!(
        ended.success() && shown.contains("execve"),
        "{backend}: {ended:?}: {shown}"
    );
}

/// A number that begins as those of two containers is none of them; one with more digits is.
#[test]
fn a_container_is_named_by_enough_of_its_number() {
    unless_tracepoints();
    let number = format!("c{:012x}", std::process::id());
    let groups = ["a", "b"].map(|last| Group::named(&format!("{number}{last}")));
    let [one, other] = &groups;
    let members = [member_of(one), member_of(other)];
    let output = record(&["--container", &number]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = text(&output);
    for part in [&*format!("{number}a"), &format!("{number}b"), "write more"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(record(&["--container", "c00"]).status.code(), Some(2));
    for (option, absent, said) in [
        ("--container", "c00000000000000fff", "no process"),
        ("--pid", "2147483647", "there is no process"),
        ("--cgroup", "/no-such-group", "no control group"),
    ] {
        let output = record(&[option, absent]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output).contains(said), "{output:?}");
    }
    for (mut member, lines) in members {
        drop((member.stdin.take(), lines));
        member.wait().expect("it ends");
    }
}
