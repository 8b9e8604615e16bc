//! Threads that wait for each other: to install filters for all threads, and to set up signal handlers.
//!
//! Each run starts a new guest, since some of the events happen only once per process, and the failures are rare races.
//! A second filter for all threads that comes too early is provoked: the supervisor delays a thread that the first
//! filter waits for.

use std::fs;

use tamis_abi::SeccompData;
use tamis_kernel::{Ended, Status};
use tamis_platform::{Answer, Guest, Options, Platform, Supervisor, Task, TaskId};
use tamis_testkit::seeds;

use crate::cases::{Outcome, filters_and_forks, run};
use crate::guests;
use crate::host::{self, Asked, Host};

pub(crate) fn rush(platform: &dyn Platform) -> Outcome {
    let times = if seeds::is_full() { 40 } else { 4 };
    let mut scenes = vec!["handlers"];
    if filters_and_forks(&platform.caps()).is_none() {
        scenes.extend(["filters", "jumps"]);
        second(platform);
        ended(platform);
    }
    for scene in scenes {
        for _ in 0..times {
            let (host, options) = (Host::default(), Options::default());
            let ended = run(platform, "rush", &[scene], Asked::Some, &host, &options);
            assert_eq!(ended.expect("it runs"), Ended::Exited(0), "{scene}");
        }
    }
    Outcome::Passed
}

/// Killed processes are not waited for.
fn ended(platform: &dyn Platform) {
    let (host, options) = (Host::default(), Options::default());
    let ended = run(platform, "rush", &["ended"], Asked::Some, &host, &options);
    assert_eq!(ended.expect("it runs"), Ended::Exited(0), "ended");
}

/// Two threads install filters for all threads while a third is delayed in a call.
fn second(platform: &dyn Platform) {
    let filter = host::filter(Asked::Some);
    let guest = Guest {
        program: guests::path("rush").into(),
        args: vec!["second".into()],
        filter: &filter,
        has_results: false,
    };
    let ended = platform.run(&guest, &HoldingUp(Host::default()), &Options::default());
    assert_eq!(ended.expect("it runs"), Ended::Exited(0), "second");
}

/// Delays the answer to one call until a filter has been installed meanwhile, or for some time.
struct HoldingUp(Host);

/// The number of checks, which take some hundredths of a second.
const LOOKS: usize = 1000;

impl Supervisor for HoldingUp {
    fn call(&self, task: &mut dyn Task, call: &SeccompData) -> Answer {
        let [what, pid, steps, ..] = call.args;
        if (i64::from(call.nr), what) != (libc::SYS_getpgid, 1) {
            return self.0.call(task, call);
        }
        let before = filters_of(pid);
        let tell = |step: u64| {
            let written = task.space().write(steps, &step.to_ne_bytes());
            assert_eq!(written, Ok(size_of_val(&step)));
        };
        tell(1);
        let is_held_up = (0..LOOKS).any(|_| is_any_waiting(pid));
        tell(2);
        let _ = is_held_up && (0..LOOKS).any(|_| filters_of(pid) > before);
        Answer::Return(what as i64)
    }

    fn started(&self, task: TaskId, parent: Option<TaskId>) {
        self.0.started(task, parent);
    }

    fn ended(&self, task: TaskId, how: Ended) {
        self.0.ended(task, how);
    }
}

/// Whether a thread of a process is in a call with an unused number, which announces it to its supervisor.
fn is_any_waiting(pid: u64) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let calls = threads.flatten().filter_map(|thread| {
        let call = fs::read_to_string(thread.path().join("syscall")).ok()?;
        call.split(' ').next()?.parse().ok()
    });
    calls.into_iter().any(|nr: i64| nr > 0xffff)
}

/// The number of filters of a process.
fn filters_of(pid: u64) -> Option<u32> {
    Status::read(pid as i32)?.filters()
}
