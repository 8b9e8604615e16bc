//! Tasks whose first stop is reported before the stop of their creator.
//!
//! The kernel reports the youngest stopped task first: the first stop of a new task comes before its creator's stop.
//! The supervisor answers on the tracer's thread. Meanwhile other tasks stop, and the supervisor waits for that here; a
//! task that it then kills ends between the two reports.

use std::fs;
use std::sync::atomic::Ordering;
use std::thread;

use tamis_abi::SeccompData;
use tamis_kernel::Ended;
use tamis_platform::{Answer, Guest, Options, Platform, Supervisor, Task, TaskId};

use crate::cases::Outcome;
use crate::guests;
use crate::host::{self, Asked, Host};

/// Every started task is reported to end, whichever task ends between the two reports; and a new process isn't killed
/// by its own filter because of code that the platform put in its memory.
pub(crate) fn newborn(platform: &dyn Platform) -> Outcome {
    for kind in ["thread", "orphan", "process"] {
        let filter = host::filter(Asked::Some);
        let guest = Guest {
            program: guests::path("newborn").into(),
            args: vec![kind.into()],
            filter: &filter,
            has_results: false,
        };
        let between = Between(Host::default());
        let ended = platform.run(&guest, &between, &Options::default());
        assert_eq!(ended.expect("it runs"), Ended::Exited(0), "{kind}");
        assert_eq!(between.left(), 0, "{kind}");
    }
    Outcome::Passed
}

/// A supervisor that has a task end between the first stop of a new task and the stop of its creator.
struct Between(Host);

impl Between {
    /// The number of tasks that have started and not ended.
    fn left(&self) -> u64 {
        let Host { started, ended, .. } = &self.0;
        started.load(Ordering::Relaxed) - ended.load(Ordering::Relaxed)
    }
}

impl Supervisor for Between {
    fn call(&self, task: &mut dyn Task, call: &SeccompData) -> Answer {
        let [what, first, creator, asks, ..] = call.args;
        match (i64::from(call.nr), what) {
            (libc::SYS_getpgid, 1) => {
                let path = format!("/proc/{}/fd/{first}", task.id().0);
                fs::write(path, "go").expect("a pipe with two readers");
                until(|| {
                    let both = tasks_of(creator);
                    both.len() == 2 && both.into_iter().chain([asks]).all(has_stopped)
                });
            }
            (libc::SYS_getpgid, 2) => {
                // SAFETY: takes no pointers. The process is a child of the guest's, which waits for it.
                assert_eq!(unsafe { libc::kill(first as i32, libc::SIGKILL) }, 0);
                until(|| state(first) == Some('Z'));
            }
            (libc::SYS_getpgid, 3) => assert_eq!(self.left(), first),
            _ => return self.0.call(task, call),
        }
        Answer::Return(what as i64)
    }

    fn started(&self, task: TaskId, parent: Option<TaskId>) {
        self.0.started(task, parent);
    }

    fn ended(&self, task: TaskId, how: Ended) {
        self.0.ended(task, how);
    }
}

/// Waits for a condition; if it never holds, the time limit ends the case.
fn until(has_come: impl Fn() -> bool) {
    while !has_come() {
        thread::yield_now();
    }
}

/// The threads of a process (1 or 2), and the children of its first thread.
fn tasks_of(pid: u64) -> Vec<u64> {
    let folder = format!("/proc/{pid}/task");
    let children = fs::read_to_string(format!("{folder}/{pid}/children")).unwrap_or_default();
    let threads = fs::read_dir(folder).into_iter().flatten().flatten();
    let threads = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    let children = children.split_whitespace();
    threads
        .chain(children.filter_map(|child| child.parse().ok()))
        .collect()
}

/// Whether a task has stopped for its tracer.
fn has_stopped(tid: u64) -> bool {
    state(tid) == Some('t')
}

/// The state of a task, abbreviated as in `proc`.
fn state(tid: u64) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
