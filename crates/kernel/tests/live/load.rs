//! Many installations, runs and answers at the same time: each gets its own result, and nothing is left of
//! them, neither descriptors nor memory nor processes.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use libtest_mimic::Trial;
use tamis_abi::{Action, ActionKind};
use tamis_bpf::Program;
use tamis_kernel::listener::Reply;
use tamis_kernel::{Command, Ended, Flag, Install, InstallError, dump, install, run, supervise};

use crate::raw;
use crate::support::{ARGS, CALL, answering, output_of, own_path, trial};
use crate::victim::{MARK, open_files};

/// How many threads do something at once. The kernel frees filters one after the other, later, and Linux 6.18 hangs
/// for good if more than a thousand wait for that: all cases together must stay far below.
const THREADS: u32 = 4;
const NOTIFY: u32 = ActionKind::Notify.ret();

pub(crate) fn trials() -> Vec<Trial> {
    let plays = |name: &'static str, case: &'static str| {
        trial(&format!("load::{name}"), move || {
            assert_eq!(output_of(&["load", case]), "well");
        })
    };
    vec![
        plays("installations_on_many_threads", "installations"),
        plays("threads_synchronise_each_other", "tsync"),
        plays("runs_at_once", "runs"),
        plays("runs_with_supervisors", "supervisors"),
        plays("kills_traps_and_errors_race", "race"),
        plays("dumps_of_one_process", "dumps"),
    ]
}

/// Runs a role in a victim and requires its success.
pub(crate) fn in_victim(case: &str) {
    // Created once and kept: the pipe of the signal handler, arenas of the allocator.
    many(|_| {
        run(&command(&["call"], Action::errno(5).ret())).expect("it runs");
    });
    let before = (open_files(), memory_pages());
    match case {
        "installations" => installations(),
        "tsync" => tsync(),
        "runs" => runs(),
        "supervisors" => supervisors(),
        "race" => race(),
        "dumps" => dumps(),
        other => panic!("no case {other}"),
    }
    assert_eq!(open_files(), before.0);
    let tasks = fs::read_dir("/proc/self/task").expect("/proc can be read");
    for task in tasks {
        let path = task.expect("/proc can be read").path().join("children");
        assert_eq!(fs::read_to_string(path).unwrap_or_default(), "");
    }
    // Allocators keep some; a leak of a page a run would show.
    let grown = memory_pages().saturating_sub(before.1);
    assert!(grown < 200, "{grown} pages more than before");
    println!("well");
}

/// Private and shared memory of this process.
fn memory_pages() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("/proc can be read");
    let resident = statm.split(' ').nth(1);
    resident
        .and_then(|pages| pages.parse().ok())
        .expect("a number")
}

/// Does something on [`THREADS`] threads at once.
fn many(body: impl Fn(u32) + Sync) {
    thread::scope(|scope| {
        let body = &body;
        let started: Vec<_> = (0..THREADS)
            .map(|index| scope.spawn(move || body(index)))
            .collect();
        for thread in started {
            thread.join().expect("no panic");
        }
    });
}

fn command(role: &[&str], ret: u32) -> Command {
    Command {
        args: [MARK].iter().chain(role).map(Into::into).collect(),
        filters: answering(CALL, ret).into(),
        ..Command::new(own_path())
    }
}

/// 16 threads after one another, four at a time, each with ten filters: the newest answers.
fn installations() {
    many(|index| {
        for round in 0..4 {
            thread::scope(|scope| {
                scope.spawn(|| {
                    for filter in 0..10 {
                        let errno = 1 + (index * 40 + round * 10 + filter) % 160;
                        let program = answering(CALL, Action::errno(errno as u16).ret());
                        install(&program, &Install::default()).expect("there is room");
                        assert_eq!(raw::call(CALL, ARGS), Err(errno as i32));
                    }
                });
            });
        }
    });
    assert_eq!(
        raw::call(CALL, ARGS),
        Err(libc::EINVAL),
        "this thread has none"
    );
}

/// Every thread installs its filters with `TSYNC`. A failed one gets the number of a thread with other filters.
fn tsync() {
    const ROUNDS: u32 = 20;
    let (done, lost) = (AtomicU32::new(0), AtomicU32::new(0));
    let how = Install {
        flags: Flag::Tsync.into(),
        no_new_privs: true,
    };
    let alone = AtomicU32::new(0);
    many(|index| {
        for round in 0..ROUNDS {
            let program = answering(CALL, Action::errno((1 + index) as u16).ret());
            if index == THREADS - 1 && round % 10 == 9 {
                // A filter that no other thread has until the next successful installation.
                install(&program, &Install::default()).expect("there is room");
                alone.fetch_add(1, Ordering::Relaxed);
            }
            match install(&program, &how) {
                Ok(_) => drop(done.fetch_add(1, Ordering::Relaxed)),
                Err(InstallError::ThreadDiffers { thread: Some(tid) }) => {
                    assert_ne!(tid, raw::thread());
                    assert!(tid > 0);
                    lost.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => panic!("{error}"),
            }
        }
    });
    assert_eq!(alone.into_inner(), ROUNDS / 10);
    assert_eq!(done.into_inner() + lost.into_inner(), THREADS * ROUNDS);
}

fn runs() {
    many(|index| {
        for round in 0..12 {
            let errno = (1 + index * 12 + round) as u16;
            let mut command = command(&["call"], Action::errno(errno).ret());
            command.explain = round % 2 == 0;
            let report = run(&command).expect("it runs");
            assert_eq!(report.ended, Ended::Exited(errno as u8));
            assert_eq!(report.notes, []);
        }
    });
}

/// Each supervisor gets the calls of its own command.
fn supervisors() {
    many(|index| {
        for round in 0..12 {
            let code = (1 + index * 12 + round) as u16;
            let mut command = command(&["call"], NOTIFY);
            command.explain = round % 2 == 0;
            let mut calls = 0;
            let report = supervise(&command, |_, notification| {
                assert_eq!(notification.call.args, ARGS);
                calls += 1;
                Reply::Errno(code)
            });
            let report = report.expect("it runs");
            assert_eq!((report.ended, calls), (Ended::Exited(code as u8), 1));
            assert_eq!(report.notes, []);
        }
    });
}

/// Several commands end at the same time by a killed thread, a killed process, or normally; each report is about its
/// own.
fn race() {
    let kill_thread = Action::KILL_THREAD.ret();
    let kill_process = Action::KILL_PROCESS.ret();
    let trap = Action::new(ActionKind::Trap, 7).ret();
    many(|index| {
        for round in 0..8 {
            let (role, ret): (&[&str], u32) = match (index + round) % 4 {
                0 => (&["call-in-thread", "3"], kill_thread),
                1 => (&["call-among-threads"], kill_process),
                2 => (&["call-caught"], trap),
                _ => (&["call"], Action::errno(4).ret()),
            };
            let report = run(&command(role, ret)).expect("it runs");
            let counts = (report.killed.len(), report.trapped.len());
            let is_sigsys = matches!(
                report.ended,
                Ended::Signalled {
                    signal: libc::SIGSYS,
                    ..
                }
            );
            match (index + round) % 4 {
                0 => assert_eq!((report.ended, counts), (Ended::Exited(3), (1, 0))),
                1 => assert!(is_sigsys && counts == (1, 0), "{report:?}"),
                2 => assert_eq!((report.ended, counts), (Ended::Exited(0), (0, 1))),
                _ => assert_eq!((report.ended, counts), (Ended::Exited(4), (0, 0))),
            }
            assert_eq!(report.notes, []);
        }
    });
}

/// Several threads dump one process: each gets its filters, or the error that another tracer is attached.
fn dumps() {
    use tamis_kernel::DumpError;
    let filters: Vec<Program> = crate::dumping::stack("two");
    let waiting = crate::dumping::Waiting::with("two");
    let pid = waiting.pid();
    let (read, not_permitted) = (AtomicU32::new(0), AtomicU32::new(0));
    many(|_| {
        for _ in 0..100 {
            match dump(pid) {
                Ok(found) => {
                    assert_eq!(found, filters);
                    read.fetch_add(1, Ordering::Relaxed);
                }
                Err(DumpError::Traced { .. } | DumpError::NotTraceable(_)) => {}
                Err(DumpError::NotPrivileged | DumpError::OwnFilter | DumpError::NotKept) => {
                    not_permitted.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => panic!("{error}"),
            }
        }
    });
    // Root of a namespace of users may trace, and then read no filter.
    assert!(read.into_inner() > 0 || not_permitted.into_inner() > 0);
    waiting.end();
}
