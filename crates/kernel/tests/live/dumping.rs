//! Reading the filters of running processes.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use libtest_mimic::Trial;
use tamis_abi::Action;
use tamis_bpf::Program;
use tamis_kernel::{DumpError, NATIVE_ENDIAN, dump};
use tamis_testkit::skip::{self, Need};

use crate::raw;
use crate::support::{CALL, answering, constant, output_of, trial, victim};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("dump::filters_come_oldest_first", oldest_first),
        trial("dump::long_program", long_program),
        trial("dump::process_without_filters", without_filters),
        trial("dump::no_such_process", no_such_process),
        trial("dump::not_permitted", not_permitted),
        trial("dump::under_own_filter", under_own_filter),
        trial("dump::stopped_process_stays_stopped", stays_stopped),
        trial("dump::traced_by_somebody_else", traced),
    ]
}

/// The filters that a victim installs, by the name of the stack.
pub(crate) fn stack(name: &str) -> Vec<Program> {
    match name {
        "none" => Vec::new(),
        "two" => vec![
            answering(CALL, Action::errno(1).ret()),
            answering(CALL, Action::errno(2).ret()),
            constant(Action::ALLOW.ret()),
        ],
        "long" => {
            let mut insns = answering(CALL, Action::errno(3).ret()).insns().to_vec();
            let filler = insns[0];
            insns.splice(
                0..0,
                std::iter::repeat_n(filler, Program::MAX_INSNS - insns.len()),
            );
            vec![Program::new(insns, NATIVE_ENDIAN).expect("a valid program")]
        }
        other => panic!("no stack {other}"),
    }
}

/// A victim that has installed a stack and waits for its standard input to end.
pub(crate) struct Waiting(Child);

impl Waiting {
    pub(crate) fn with(stack: &str) -> Waiting {
        let mut child = victim(&["wait-under", stack])
            .stdin(Stdio::piped())
            .spawn()
            .expect("the victim starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("it is captured");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("it tells");
        assert_eq!(line, "ready\n");
        Waiting(child)
    }

    pub(crate) fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    /// Lets it end; it must be able to.
    pub(crate) fn end(mut self) {
        drop(self.0.stdin.take());
        let status = self.0.wait().expect("it ends");
        assert!(status.success(), "{status}");
        let mut rest = String::new();
        let stdout = self.0.stdout.as_mut().expect("it is captured");
        stdout.read_to_string(&mut rest).expect("it tells");
        assert_eq!(rest, "done\n");
    }
}

impl Drop for Waiting {
    /// It may be stopped where a test has ended early.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Dumps a victim; the test ends if this process may not.
fn dumped(pid: i32) -> Vec<Program> {
    match dump(pid) {
        Ok(filters) => filters,
        Err(
            error @ (DumpError::NotPrivileged
            | DumpError::OwnFilter
            | DumpError::NotKept
            | DumpError::NotTraceable(_)),
        ) => skip::because(Need::Live, error),
        Err(error) => panic!("{error}"),
    }
}

fn oldest_first() {
    let waiting = Waiting::with("two");
    // Filters that this process has itself are inherited and older.
    assert_eq!(dumped(waiting.pid()), stack("two"));
    assert_eq!(dump(waiting.pid()), Ok(stack("two")), "a second time");
    waiting.end();
}

fn long_program() {
    let waiting = Waiting::with("long");
    assert_eq!(dumped(waiting.pid()), stack("long"));
    waiting.end();
}

fn without_filters() {
    let waiting = Waiting::with("none");
    assert_eq!(dumped(waiting.pid()), []);
    waiting.end();
}

fn no_such_process() {
    assert_eq!(dump(i32::MAX), Err(DumpError::NoTask));
}

fn not_permitted() {
    skip::unless_root();
    let waiting = Waiting::with("two");
    let output = output_of(&["dump-unprivileged", &waiting.pid().to_string()]);
    assert_eq!(output, format!("{:?}", DumpError::NotPrivileged));
    waiting.end();
}

fn under_own_filter() {
    let waiting = Waiting::with("two");
    let output = output_of(&["dump-under-filter", &waiting.pid().to_string()]);
    assert_eq!(output, format!("{:?}", DumpError::OwnFilter));
    waiting.end();
}

/// The letter of a process's state.
fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.trim().chars().next()
}

fn stays_stopped() {
    let waiting = Waiting::with("two");
    raw::kill(waiting.pid(), libc::SIGSTOP);
    while state(waiting.pid()) != Some('T') {
        std::thread::yield_now();
    }
    dumped(waiting.pid());
    // The kernel may briefly let it run between the tracer's stop and its own. If it continued, it would sleep.
    while matches!(state(waiting.pid()), Some('t' | 'R')) {
        std::thread::yield_now();
    }
    assert_eq!(state(waiting.pid()), Some('T'));
    raw::kill(waiting.pid(), libc::SIGCONT);
    waiting.end();
}

fn traced() {
    let mut runner = victim(&["run", "explained", "sh", "-c", "echo $$; read end"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the victim starts");
    let mut line = String::new();
    let stdout = runner.stdout.as_mut().expect("it is captured");
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("it tells");
    let pid: i32 = line.trim().parse().expect("a process number");
    let outcome = dump(pid);
    assert!(
        matches!(outcome, Err(DumpError::Traced { .. })),
        "{outcome:?}"
    );
    drop(runner.stdin.take());
    runner.wait().expect("it ends");
}
