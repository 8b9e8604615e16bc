//! Ignored signals: a command whose tracer they stop gets the results that it would get alone.

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use tamis_kernel::{Command, Ended, run};
use tamis_testkit::skip;

use crate::raw;
use crate::support::{own_path, trial};
use crate::victim::MARK;

/// The time limit of each wait, far longer than it takes to send the signals.
const LIMIT_MS: u16 = 300;

/// The signals during a wait, and the times that a wait is repeated: together more than the tracer's limit of restarts.
const SIGNALS: usize = 6;
const ROUNDS: usize = 4;

/// The most rounds, where some don't count because the machine sends the signals too slowly.
const MOST_ROUNDS: usize = 100;

/// The time within which a tracer that can't change a limit takes signals for simultaneous.
const SAME_TIME: Duration = Duration::from_millis(LIMIT_MS as u64 / 8);

/// The time between signals of which several come during a wait.
const DISTANCE: Duration = Duration::from_millis(120);

/// The most of these signals: over many times the time limit.
const MOST_SPACED: usize = 20;

pub(crate) fn trials() -> Vec<Trial> {
    let wait = |case: &'static str| {
        trial(&format!("ignored::{case}"), move || {
            // Elsewhere the signals end the calls.
            skip::unless_x86_64();
            for explain in [false, true] {
                let command = Command {
                    args: [MARK, "ignored", case].map(Into::into).to_vec(),
                    explain,
                    ..Command::new(own_path())
                };
                let report = run(&command).expect("it runs");
                assert_eq!(report.ended, Ended::Exited(0), "explained: {explain}");
            }
        })
    };
    let cases = [
        "epoll_wait",
        "io_uring_enter",
        "receive_with_limit",
        "spaced_epoll_wait",
        "spaced_sigtimedwait",
        "spaced_receive",
    ];
    cases.into_iter().map(wait).collect()
}

/// Waits with a limit, while ignored signals come.
pub(crate) fn in_victim(case: &str) {
    let own = raw::thread();
    if case.starts_with("spaced") {
        return spaced(case, own);
    }
    let mut counted = 0;
    for _ in 0..MOST_ROUNDS {
        let has_ended = AtomicBool::new(false);
        let first = OnceLock::new();
        let errno = thread::scope(|scope| {
            scope.spawn(|| disturb(own, &first, &has_ended));
            let errno = wait(case);
            has_ended.store(true, Ordering::Relaxed);
            errno
        });
        if errno == Some(libc::EINTR) {
            let passed = first.get().map(Instant::elapsed);
            assert!(passed > Some(SAME_TIME), "{passed:?}");
            continue;
        }
        check(case, errno);
        counted += 1;
        if counted == ROUNDS {
            return;
        }
    }
    panic!("the signals were never sent within {SAME_TIME:?}");
}

/// The same, while they come over all of the time limit and beyond.
fn spaced(case: &str, own: i32) {
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..MOST_SPACED {
                thread::sleep(DISTANCE);
                if has_ended.load(Ordering::Relaxed) {
                    break;
                }
                raw::kill_thread(own, libc::SIGWINCH);
            }
        });
        let begin = Instant::now();
        let errno = wait(case);
        let passed = begin.elapsed();
        has_ended.store(true, Ordering::Relaxed);
        let limit = Duration::from_millis(LIMIT_MS.into());
        assert!(passed < 2 * limit, "{passed:?}");
        let may_end = case != "spaced_epoll_wait" && errno == Some(libc::EINTR);
        if !may_end {
            check(case, errno);
        }
    });
}

/// Makes the call of a case; returns its error.
fn wait(case: &str) -> Option<i32> {
    match case {
        "epoll_wait" | "spaced_epoll_wait" => raw::epoll_wait(LIMIT_MS.into()).err(),
        "io_uring_enter" => raw::io_uring_wait(LIMIT_MS.into()),
        "spaced_sigtimedwait" => Some(raw::wait_for_signal(LIMIT_MS.into())),
        "receive_with_limit" | "spaced_receive" => {
            let (mut own, _other) = UnixStream::pair().expect("sockets");
            let limit = Duration::from_millis(LIMIT_MS.into());
            own.set_read_timeout(Some(limit)).expect("it is set");
            let error = own.read(&mut [0]).expect_err("nothing was sent");
            error.raw_os_error()
        }
        other => panic!("no case {other}"),
    }
}

/// Whether the call of a case has ended as without signals.
fn check(case: &str, errno: Option<i32>) {
    match case {
        "epoll_wait" | "spaced_epoll_wait" => assert_eq!(errno, None),
        // Rings may be disabled.
        "io_uring_enter" => assert!(matches!(errno, Some(libc::ETIME) | None), "{errno:?}"),
        _ => assert_eq!(errno, Some(libc::EAGAIN)),
    }
}

/// Sends a thread a signal that it ignores, again and again while it sleeps; stores the time of the first.
fn disturb(thread: i32, first: &OnceLock<Instant>, has_ended: &AtomicBool) {
    let mut sent = 0;
    while sent < SIGNALS && !has_ended.load(Ordering::Relaxed) {
        let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
        let stat = stat.expect("/proc can be read");
        if stat
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.starts_with(" S"))
        {
            first.get_or_init(Instant::now);
            raw::kill_thread(thread, libc::SIGWINCH);
            sent += 1;
        } else {
            thread::yield_now();
        }
    }
}
