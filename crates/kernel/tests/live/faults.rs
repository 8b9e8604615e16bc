//! Faults during a run, a reply or a dump: each yields a clear error and leaves nothing behind.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Output, Stdio};
use std::thread;

use libtest_mimic::Trial;
use tamis_abi::{Action, ActionKind};
use tamis_kernel::listener::{Delivery, Listener, Reply};
use tamis_kernel::run::Note;
use tamis_kernel::{
    Command, DumpError, Ended, Errno, Flag, Install, InstallError, RunError, RunResult, dump,
    install, run, supervise,
};
use tamis_testkit::skip;

use crate::raw;
use crate::support::{ARGS, CALL, answering, output_of, own_path, play, trial};
use crate::victim::{MARK, open_files};

const NOTIFY: u32 = ActionKind::Notify.ret();
const EPERM: Action = Action::errno(libc::EPERM as u16);

pub(crate) fn trials() -> Vec<Trial> {
    let plays = |name: &'static str, case: &'static str| {
        trial(&format!("faults::{name}"), move || {
            assert_eq!(output_of(&["fault", case]), "well");
        })
    };
    vec![
        plays("ignored_children_are_waited_for", "ignored-children"),
        plays("denied_waiting_ends_the_command", "denied-waiting"),
        plays("filter_kills_the_installer", "killed-installer"),
        plays("filter_denies_no_new_privs", "denied-prctl"),
        plays("no_descriptors_left", "no-descriptors"),
        plays("no_descriptor_for_a_listener", "no-listener"),
        plays("signals_come_all_the_time", "interrupted"),
        plays("zombie_has_no_filters_to_show", "zombie"),
        trial("faults::no_processes_left", || {
            skip::unless_root();
            assert_eq!(output_of(&["fault", "no-processes"]), "well");
        }),
        plays("no_memory_for_a_thread", "no-memory"),
        plays("killed_at_any_moment", "killed"),
        trial("faults::killed_while_notified", killed_while_notified),
        trial(
            "faults::interrupted_while_notified",
            interrupted_while_notified,
        ),
        trial("faults::orphan_is_unsupervised", orphan_is_unsupervised),
        trial("faults::supervisor_panics", supervisor_panics),
    ]
}

/// Runs a role in a victim and requires its success.
pub(crate) fn in_victim(case: &str) {
    match case {
        "ignored-children" => ignored_children(),
        "denied-waiting" => denied_waiting(),
        "killed-installer" => killed_installer(),
        "denied-prctl" => denied_prctl(),
        "no-descriptors" => no_descriptors(),
        "no-listener" => no_listener(),
        "interrupted" => interrupted(),
        "zombie" => zombie(),
        "no-processes" => no_processes(),
        "no-memory" => no_memory(),
        "killed" => killed_at_any_moment(),
        "orphan" => orphan(),
        other => panic!("no case {other}"),
    }
    println!("well");
}

fn shell(script: &str) -> Command {
    Command {
        args: ["-c", script].map(Into::into).to_vec(),
        ..Command::new("sh")
    }
}

/// Under one more filter of this process, for good.
fn deny(nr: i64, action: Action) {
    install(&answering(nr, action.ret()), &Install::default()).expect("it can be installed");
}

/// Runs explained and not, and compares the outcomes.
#[track_caller]
fn both(command: &Command, expected: &Result<Ended, RunError>) {
    for explain in [true, false] {
        let command = Command {
            explain,
            ..command.clone()
        };
        let outcome = run(&command).map(|report| report.ended);
        assert_eq!(&outcome, expected, "explain: {explain}");
    }
}

fn children() -> String {
    let tasks = fs::read_dir("/proc/self/task").expect("/proc can be read");
    let children = tasks.filter_map(|task| {
        let path = task.expect("/proc can be read").path().join("children");
        fs::read_to_string(path).ok()
    });
    children.collect()
}

/// The kernel would drop the reports of children; the command still finds the signal ignored.
fn ignored_children() {
    raw::ignore(libc::SIGCHLD);
    both(&shell("exit 3"), &Ok(Ended::Exited(3)));
    let is_ignored = Command {
        args: ["-q", "^SigIgn:.*1....$", "/proc/self/status"]
            .map(Into::into)
            .to_vec(),
        ..Command::new("grep")
    };
    both(&is_ignored, &Ok(Ended::Exited(0)));
    let runs: Vec<_> = (0..8)
        .map(|code| thread::spawn(move || run(&shell(&format!("exit {code}")))))
        .collect();
    for (code, run) in (0..).zip(runs) {
        let report = run.join().expect("no panic").expect("it runs");
        assert_eq!(report.ended, Ended::Exited(code));
    }
    assert!(raw::is_ignored(libc::SIGCHLD));
}

/// A command that can't be waited for doesn't go on alone.
fn denied_waiting() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let marker = folder.join(format!("denied-waiting-{}", std::process::id()));
    let script = format!("kill -STOP $$; touch {}", marker.display());
    deny(libc::SYS_waitid, EPERM);
    let error = RunError::NotWaitedFor(Errno(libc::EPERM));
    both(&shell(&script), &Err(error));
    assert_eq!(children(), "");
    assert!(!marker.exists());
}

fn killed_installer() {
    deny(libc::SYS_seccomp, Action::KILL_PROCESS);
    let mut command = shell("exit 3");
    both(&command, &Ok(Ended::Exited(3)));
    command.filters = answering(CALL, EPERM.ret()).into();
    let error = InstallError::Killed;
    both(&command, &Err(RunError::Install { filter: 0, error }));
}

fn denied_prctl() {
    deny(libc::SYS_prctl, EPERM);
    let mut command = shell("exit 3");
    command.filters = answering(CALL, EPERM.ret()).into();
    let error = InstallError::NoNewPrivs(Errno(libc::EPERM));
    both(&command, &Err(RunError::Install { filter: 0, error }));
    assert_eq!(
        install(&command.filters.programs()[0], &Install::default()).map(|_| ()),
        Err(error)
    );
}

/// With any number of free descriptors, the operation succeeds or reports the lack of descriptors.
fn no_descriptors() {
    raw::close_inherited();
    let before = open_files();
    let command = Command {
        filters: answering(CALL, NOTIFY).into(),
        ..shell("exit 3")
    };
    let (mut ran, mut refused) = (0, 0);
    for left in 0..12 {
        raw::limit(libc::RLIMIT_NOFILE, before as u64 - 1 + left);
        for outcome in [run(&command), supervise(&command, |_, _| Reply::Continue)] {
            match outcome.map(|report| (report.ended, report.notes)) {
                Ok((Ended::Exited(3), _)) => ran += 1,
                Err(
                    RunError::Start(Errno(libc::EMFILE))
                    | RunError::Install {
                        error: InstallError::NoDescriptor,
                        ..
                    },
                ) => refused += 1,
                // The shell itself may have too few.
                Ok((Ended::Exited(_), _)) => {}
                other => panic!("{left}: {other:?}"),
            }
        }
    }
    raw::limit(libc::RLIMIT_NOFILE, 1000);
    assert!(ran > 2 && refused > 2, "{ran} {refused}");
    assert_eq!(open_files(), before);
    assert_eq!(children(), "");
}

fn no_listener() {
    raw::limit(libc::RLIMIT_NOFILE, 0);
    let how = Install {
        flags: Flag::NewListener.into(),
        no_new_privs: true,
    };
    let result = install(&answering(CALL, NOTIFY), &how).map(|_| ());
    assert_eq!(result, Err(InstallError::NoDescriptor));
    // Nothing is installed.
    assert_eq!(raw::call(CALL, ARGS), Err(libc::EINVAL));
}

/// A timer expires every 50 µs, and its handler doesn't restart calls.
fn interrupted() {
    let before = open_files();
    raw::interrupt_every_us(50);
    for round in 0..20 {
        both(&shell("exit 3"), &Ok(Ended::Exited(3)));
        let command = Command {
            args: [MARK, "call"].map(Into::into).to_vec(),
            filters: answering(CALL, NOTIFY).into(),
            explain: round % 2 == 0,
            ..Command::new(own_path())
        };
        let mut waiting = 0;
        let report: RunResult = supervise(&command, |listener, notification| {
            waiting += u32::from(listener.is_waiting(notification.id).expect("a listener"));
            Reply::Errno(7)
        })
        .expect("it runs");
        assert_eq!((report.ended, report.notes), (Ended::Exited(7), vec![]));
        assert_eq!(waiting, 1);
        assert!(dump(std::process::id() as i32).is_ok());
    }
    raw::interrupt_every_us(0);
    assert_eq!(open_files(), before);
    assert_eq!(children(), "");
}

fn zombie() {
    let mut child = crate::support::victim(&["verdict", "50001"])
        .spawn()
        .expect("the victim starts");
    let pid = child.id() as i32;
    let is_dead = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("nobody waited");
        status.contains("State:\tZ")
    };
    while !is_dead() {
        thread::yield_now();
    }
    assert_eq!(dump(pid), Err(DumpError::Ended));
    child.wait().expect("it ended");
    assert_eq!(dump(pid), Err(DumpError::NoTask));
}

/// Neither a thread nor a process can be created; only root can become a user with such a limit.
fn no_processes() {
    raw::drop_privileges();
    raw::limit(libc::RLIMIT_NPROC, 0);
    both(&shell("exit 3"), &Err(RunError::Start(Errno(libc::EAGAIN))));
    assert_eq!(children(), "");
}

/// There is room for no stack of another thread.
fn no_memory() {
    let statm = fs::read_to_string("/proc/self/statm").expect("/proc can be read");
    let pages = statm
        .split(' ')
        .next()
        .and_then(|pages| pages.parse::<u64>().ok());
    let bytes = pages.expect("a number of pages") * 4096;
    raw::limit(libc::RLIMIT_AS, bytes + 512 * 1024);
    both(&shell("exit 3"), &Err(RunError::Start(Errno(libc::EAGAIN))));
}

/// A victim that makes the notified call.
fn notified(role: &[&str]) -> Command {
    Command {
        args: [MARK].iter().chain(role).map(Into::into).collect(),
        filters: answering(CALL, NOTIFY).into(),
        explain: false,
        ..Command::new(own_path())
    }
}

/// Blocks until the call is no longer waited for.
fn until_gone(listener: &Listener, id: u64) {
    while listener.is_waiting(id).expect("a listener") {
        thread::yield_now();
    }
}

fn killed_while_notified() {
    for explain in [true, false] {
        let command = Command {
            explain,
            ..notified(&["call"])
        };
        let mut delivery = None;
        let report = supervise(&command, |listener, notification| {
            raw::kill(notification.thread, libc::SIGKILL);
            until_gone(listener, notification.id);
            let gone = listener.reply(notification.id, Reply::Errno(1));
            delivery = Some(gone.expect("a listener"));
            let added = listener.add_fd(notification.id, std::io::stdin().as_fd());
            let errno = added.map_err(|error| error.errno);
            assert_eq!(errno, Err(Errno(libc::ENOENT)));
            // The answer to a call that is gone does no harm.
            Reply::Errno(1)
        });
        let report = report.expect("it runs");
        let killed = Ended::Signalled {
            signal: libc::SIGKILL,
            core_dumped: false,
        };
        assert_eq!((report.ended, report.notes), (killed, vec![]));
        assert_eq!(delivery, Some(Delivery::Gone));
    }
}

/// A signal with a handler takes the caller out of its wait, and it makes the call anew.
fn interrupted_while_notified() {
    let mut ids = Vec::new();
    let report = supervise(
        &notified(&["call-interrupted"]),
        |listener, notification| {
            if ids.len() < 3 {
                raw::kill(notification.thread, libc::SIGUSR1);
                until_gone(listener, notification.id);
            }
            ids.push(notification.id);
            Reply::Errno(9)
        },
    );
    let report = report.expect("it runs");
    assert_eq!((report.ended, report.notes), (Ended::Exited(9), vec![]));
    assert_eq!(ids.len(), 4);
    ids.dedup();
    assert_eq!(ids.len(), 4, "each wait has an id of its own");
}

/// Descendants of the command get `ENOSYS` after the end of the command and its supervisor.
fn orphan_is_unsupervised() {
    let mut child = crate::support::victim(&["fault", "orphan"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the victim starts");
    // The orphan ends with its input, which waiting for the victim would close.
    let input = child.stdin.take();
    // A victim that fails leaves an orphan that holds the output open.
    if !child.wait().expect("it ends").success() {
        drop(input);
        panic!("the victim failed");
    }
    let mut lines = BufReader::new(child.stdout.take().expect("it is captured"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("it tells");
    assert_eq!(line, "well\n");
    drop(input);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("text");
    assert_eq!(rest, format!("Err({})\n", libc::ENOSYS));
}

fn orphan() {
    // A shell redirects the input of background commands unless it is given explicitly.
    let own = own_path();
    let script = format!("exec 3<&0; {} {MARK} call-after-input <&3 &", own.display());
    let command = Command {
        filters: answering(CALL, NOTIFY).into(),
        ..shell(&script)
    };
    let report = supervise(&command, |_, _| Reply::Errno(1)).expect("it runs");
    assert_eq!(
        (report.ended, report.notes),
        (Ended::Exited(0), vec![Note::TasksLeft])
    );
}

/// The command isn't left waiting for an answer, and the panic arrives.
fn supervisor_panics() {
    let output: Output = play(&["panicking-supervisor"]);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(101), "{printed}");
    assert!(printed.contains("the supervisor gives up"), "{printed}");
}

/// Notified by a supervisor that panics.
pub(crate) fn panicking_supervisor() {
    let _ = supervise(&notified(&["call"]), |_, _| {
        panic!("the supervisor gives up")
    });
}

/// A command that is killed at any moment is reported as killed, and none of its processes is left.
fn killed_at_any_moment() {
    for round in 0..60_u32 {
        let mut command = shell("exec sleep 1000");
        command.filters = answering(CALL, EPERM.ret()).into();
        command.explain = round % 2 == 0;
        let report = thread::scope(|scope| {
            let running = scope.spawn(|| run(&command));
            let pid: i32 = loop {
                if let Ok(pid) = children().trim().parse() {
                    break pid;
                }
            };
            // A poll takes some 50 µs, so the moments range from the fork into the command.
            for _ in 0..round {
                assert_eq!(children().trim(), pid.to_string());
            }
            raw::kill(pid, libc::SIGKILL);
            running.join().expect("no panic")
        });
        let report = report.expect("it is killed, not refused");
        let is_killed = matches!(
            report.ended,
            Ended::Signalled {
                signal: libc::SIGKILL,
                ..
            }
        );
        assert!(is_killed && report.killed.is_empty(), "{report:?}");
        assert!(
            matches!(report.notes[..], [] | [Note::NotExecuted]),
            "{report:?}"
        );
        assert_eq!(children(), "");
    }
}
