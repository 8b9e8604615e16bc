//! The primitives: children that are held, and tracees.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use libtest_mimic::Trial;
use tamis_abi::{Action, ActionKind};
use tamis_bpf::Program;
use tamis_kernel::spawn::{Child, Spawn, SpawnError};
use tamis_kernel::tracee::{
    self, CallInfo, CallPhase, Event, Request, Resume, Stop, Stopped, TraceOptions, Tracee,
};
use tamis_kernel::{Ended, Errno, Flags, InstallError, memory};
use tamis_testkit::skip::{self, Need};

use crate::dumping::Waiting;
use crate::raw;
use crate::support::{ARGS, CALL, answering, native_call, output_of, own_path, trial};
use crate::victim;

const TRACE: u32 = Action::new(ActionKind::Trace, 7).ret();

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("spawn::error_of_execve", error_of_execve),
        trial("spawn::filter_that_kills", filter_that_kills),
        trial("spawn::held_child_that_is_dropped_is_gone", dropped),
        trial("spawn::heir_of_a_number_survives", heir_of_a_number),
        trial("spawn::first_of_a_namespace", first_of_a_namespace),
        trial("memory::is_shared", shares_memory_with_itself_alone),
        trial("tracee::call_at_entry_and_exit", call_at_entry_and_exit),
        trial("tracee::trace_of_a_filter", trace_of_a_filter),
        trial("tracee::registers_can_be_set", registers_can_be_set),
        trial("tracee::emulated_call_is_not_made", emulated),
        trial("tracee::emulated_call_can_be_made_after_all", repeated),
        trial("tracee::call_can_be_replaced", replaced),
        trial("tracee::next_event_takes_what_it_returns", next_event),
        trial(
            "spawn::signals_reach_a_child_and_nobody_after_it",
            signaller,
        ),
        trial("tracee::new_tasks_are_followed", new_tasks),
        trial("tracee::one_instruction", one_instruction),
        trial("tracee::attach_and_detach", attach_and_detach),
        trial("tracee::error_names_the_request", error_names_the_request),
    ]
}

fn shares_memory_with_itself_alone() {
    let own = std::process::id() as i32;
    match memory::is_shared(own, own) {
        Err(Errno(errno @ (libc::EPERM | libc::ENOSYS))) => {
            skip::because(Need::Live, format!("kcmp returns {}", Errno(errno)));
        }
        is_shared => assert_eq!(is_shared, Ok(true)),
    }
    let mut other = Command::new("sleep")
        .arg("1000")
        .spawn()
        .expect("it starts");
    let is_shared = memory::is_shared(own, other.id() as i32);
    other.kill().expect("it runs");
    other.wait().expect("it ends");
    assert_eq!(is_shared, Ok(false));
}

/// A victim with this role.
fn playing(role: &str) -> Spawn<'static> {
    Spawn {
        args: [victim::MARK, role].map(Into::into).to_vec(),
        ..Spawn::new(own_path())
    }
}

/// Starts a child as a tracee, which it is from before its filters.
fn traced(spawn: &Spawn<'_>, options: TraceOptions) -> (Child, Tracee) {
    let held = spawn.start().expect("it starts");
    let tracee =
        Tracee::seize(held.pid(), options | TraceOptions::EXIT_KILL).expect("it is a child");
    (held.release(), tracee)
}

/// The next stop of a tracee that hasn't ended.
#[track_caller]
fn stop(tracee: Tracee) -> Stopped {
    match tracee.wait().expect("it is a tracee") {
        Event::Stopped(stopped) => stopped,
        Event::Ended(ended) => panic!("{ended:?}"),
    }
}

/// Lets a tracee run transparently until a condition holds.
#[track_caller]
fn until(tracee: Tracee, how: Resume, mut holds: impl FnMut(&Stopped) -> bool) -> Stopped {
    loop {
        let stopped = stop(tracee);
        if holds(&stopped) {
            return stopped;
        }
        let signal = stopped.signal();
        stopped.resume(how, signal).expect("it is stopped");
    }
}

/// Lets a child and its descendants run to their end.
fn to_end(child: &mut Child) -> Ended {
    loop {
        let tracee = tracee::next().expect("there is a child");
        match child.poll(tracee).expect("it reports") {
            Some(Event::Stopped(stopped)) => {
                let signal = stopped.signal();
                stopped.resume(Resume::Run, signal).expect("it is stopped");
            }
            Some(Event::Ended(ended)) if tracee.tid() == child.pid() => return ended,
            _ => {}
        }
    }
}

fn is_entry(stopped: &Stopped) -> bool {
    let call = stopped.call().expect("kernel 5.3");
    matches!(call.phase, CallPhase::Entry { nr, .. } if i64::from(nr) == CALL)
}

fn under(filter: &Program) -> Vec<(&Program, Flags)> {
    vec![(filter, Flags::NONE)]
}

fn error_of_execve() {
    let mut child = Spawn::new("/nonexistent")
        .start()
        .expect("it starts")
        .release();
    child.wait().expect("it is a child");
    assert_eq!(child.error(), Some(SpawnError::Exec(Errno::ENOENT)));
}

fn filter_that_kills() {
    let kill = answering(libc::SYS_seccomp, Action::KILL_PROCESS.ret());
    let spawn = Spawn {
        filters: vec![(&kill, Flags::NONE); 2],
        ..Spawn::new("true")
    };
    let mut child = spawn.start().expect("it starts").release();
    assert!(child.wait().expect("it is a child").is_by(libc::SIGSYS));
    let expected = SpawnError::Install {
        filter: 1,
        error: InstallError::Killed,
    };
    assert_eq!(child.error(), Some(expected));
}

fn dropped() {
    let held = Spawn::new("true").start().expect("it starts");
    let pid = held.pid();
    assert!(!held.child().has_filters());
    drop(held);
    let error = Tracee::seize(pid, TraceOptions::NONE).expect_err("it is gone");
    assert_eq!(error.errno, Errno(libc::ESRCH));
}

/// A child that another process has reaped isn't killed by its number, which may be reused.
fn heir_of_a_number() {
    const LAST_NUMBER: &str = "/proc/sys/kernel/ns_last_pid";
    let (child, tracee) = traced(&Spawn::new("true"), TraceOptions::NONE);
    let number = child.pid();
    let mut child = Some(child);
    while let Event::Stopped(stopped) = tracee.wait().expect("it is a tracee") {
        stopped.resume(Resume::Run, None).expect("it is stopped");
    }
    for _ in 0..100 {
        if let Err(error) = fs::write(LAST_NUMBER, (number - 1).to_string()) {
            skip::because(Need::Live, format!("{LAST_NUMBER}: {error}"));
        }
        let mut cat = Command::new("cat");
        cat.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut heir = cat.spawn().expect("cat starts");
        let has_number = heir.id() == number as u32;
        if has_number {
            drop(child.take());
        }
        drop(heir.stdin.take());
        let status = heir.wait().expect("it is a child");
        if has_number {
            return assert!(status.success(), "{status}");
        }
    }
    skip::because(Need::Live, "other processes took the number each time");
}

/// In a new namespace the child can't see its parent.
fn first_of_a_namespace() {
    match output_of(&["first-of-a-namespace"]).as_str() {
        "no namespace" => skip::because(Need::Live, "no namespace of processes can be made"),
        told => assert_eq!(told, "Ok(Exited(0))"),
    }
}

/// The role of a victim.
pub(crate) fn in_new_namespace() -> String {
    if !raw::unshare_processes() {
        return "no namespace".to_owned();
    }
    let held = Spawn::new("true").start().expect("it starts");
    format!("{:?}", held.release().wait())
}

fn call_at_entry_and_exit() {
    let (mut child, tracee) = traced(&playing("call"), TraceOptions::EXEC);
    // Before it has executed the program, it only installs filters.
    let stopped = until(tracee, Resume::Run, |stopped| stopped.stop() == Stop::Exec);
    stopped.resume(Resume::ToCall, None).expect("it is stopped");
    let stopped = until(tracee, Resume::ToCall, is_entry);
    assert_eq!(stopped.stop(), Stop::Call);
    let entry: CallInfo = stopped.call().expect("kernel 5.3");
    let mut expected = native_call(CALL, ARGS);
    expected.ip = entry.ip;
    assert_eq!(entry.data(), Some(expected));
    assert_eq!(stopped.last_call(), Some(expected));
    stopped.resume(Resume::ToCall, None).expect("it is stopped");
    let exit = stop(tracee).call().expect("kernel 5.3");
    let failed = CallPhase::Exit {
        result: -i64::from(libc::EINVAL),
        is_error: true,
    };
    assert_eq!(exit.phase, failed);
    assert!(stop_and_end(&mut child, tracee).is_by(libc::SIGKILL));
}

/// Kills a stopped child and waits for its end.
fn stop_and_end(child: &mut Child, tracee: Tracee) -> Ended {
    crate::raw::kill(tracee.tid(), libc::SIGKILL);
    to_end(child)
}

/// A child that has stopped since a filter returned `trace` for its call.
fn stopped_by_filter() -> (Child, Stopped) {
    let filter = answering(CALL, TRACE);
    let spawn = Spawn {
        filters: under(&filter),
        ..playing("call")
    };
    let (child, tracee) = traced(&spawn, TraceOptions::SECCOMP);
    let is_it = |stopped: &Stopped| stopped.stop() == Stop::Seccomp;
    (child, until(tracee, Resume::Run, is_it))
}

/// A child that has stopped at the second of two calls, which isn't made.
fn stopped_to_emulate() -> (Child, Stopped) {
    let (child, tracee) = traced(&playing("call-twice"), TraceOptions::EXEC);
    let stopped = until(tracee, Resume::Run, |stopped| stopped.stop() == Stop::Exec);
    stopped.resume(Resume::ToCall, None).expect("it is stopped");
    let first = until(tracee, Resume::ToCall, is_entry);
    first.resume(Resume::ToCall, None).expect("it is stopped");
    let exit = stop(tracee);
    exit.resume(Resume::Emulate, None).expect("it is stopped");
    (child, stop(tracee))
}

fn trace_of_a_filter() {
    let (mut child, stopped) = stopped_by_filter();
    assert_eq!(stopped.message(), Ok(7));
    let expected = CallPhase::Seccomp {
        nr: CALL as u32,
        args: ARGS,
        data: 7,
    };
    assert_eq!(stopped.call().expect("kernel 5.3").phase, expected);
    stopped.skip_call().expect("it is stopped");
    stopped.set_result(-9).expect("it is stopped");
    stopped.resume(Resume::Run, None).expect("it is stopped");
    assert_eq!(to_end(&mut child), Ended::Exited(9));
}

/// On x86-64: the eleventh word is `rax`, the sixteenth `orig_rax`.
fn registers_can_be_set() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let (mut child, stopped) = stopped_by_filter();
    let mut registers = stopped.registers().expect("it is stopped");
    let (words, rest) = registers.bytes_mut().as_chunks_mut::<8>();
    assert!(rest.is_empty());
    assert_eq!(words[15], CALL.to_le_bytes());
    words[15] = (-1_i64).to_le_bytes();
    words[10] = (-11_i64).to_le_bytes();
    stopped.set_registers(&registers).expect("it is stopped");
    assert_eq!(stopped.registers(), Ok(registers));
    stopped.resume(Resume::Run, None).expect("it is stopped");
    assert_eq!(to_end(&mut child), Ended::Exited(11));
}

fn emulated() {
    let (mut child, second) = stopped_to_emulate();
    assert!(is_entry(&second));
    second.set_result(-13).expect("it is stopped");
    second.resume(Resume::Run, None).expect("it is stopped");
    assert_eq!(to_end(&mut child), Ended::Exited(13));
}

/// A call that was to be emulated stops once more and has its own result.
fn repeated() {
    let (mut child, emulated) = stopped_to_emulate();
    let tracee = emulated.tracee();
    let call = emulated.call().expect("kernel 5.3");
    let Some(data) = call.data() else {
        panic!("{call:?}");
    };
    emulated
        .repeat_call(data.nr, &data.args, data.ip)
        .expect("it is stopped");
    emulated
        .resume(Resume::ToCall, None)
        .expect("it is stopped");
    let again = until(tracee, Resume::ToCall, is_entry);
    assert_eq!(again.call(), Ok(call));
    again.resume(Resume::Run, None).expect("it is stopped");
    assert_eq!(to_end(&mut child), Ended::Exited(libc::EINVAL as u8));
}

fn replaced() {
    let (mut child, stopped) = stopped_by_filter();
    let args = [u64::MAX, 0, 0, 0, 0, 0];
    stopped
        .replace_call(libc::SYS_close as u32, &args)
        .expect("it is stopped");
    stopped.resume(Resume::Run, None).expect("it is stopped");
    assert_eq!(to_end(&mut child), Ended::Exited(libc::EBADF as u8));
}

fn next_event() {
    let (mut child, tracee) = traced(&Spawn::new("true"), TraceOptions::EXEC);
    let mut stops = 0;
    loop {
        let (reported, event) = child.next_event().expect("there is a child");
        assert_eq!(reported, tracee);
        match event {
            Event::Stopped(stopped) => {
                stops += 1;
                assert!(tracee.is_awaited());
                assert!(!child.has_event());
                stopped.resume(Resume::Run, None).expect("it is stopped");
            }
            Event::Ended(ended) => {
                assert_eq!(ended, Ended::Exited(0));
                break;
            }
        }
    }
    assert!(!tracee.is_awaited());
    assert_eq!(stops, 1);
    assert_eq!(child.wait(), Ok(Ended::Exited(0)));
    assert!(child.has_event());
    assert!(child.next_event().is_err());
}

fn signaller() {
    let mut child = Spawn {
        args: vec!["1000".into()],
        ..Spawn::new("sleep")
    }
    .start()
    .expect("it starts")
    .release();
    let signaller = child.signaller();
    assert_eq!(signaller.send(libc::SIGKILL), Ok(()));
    assert!(child.wait().expect("it is a child").is_by(libc::SIGKILL));
    assert_eq!(signaller.send(libc::SIGKILL), Err(Errno(libc::ESRCH)));
}

fn new_tasks() {
    let spawn = Spawn {
        args: ["-c", "(exit 3); (exit 4); exit 5"]
            .map(Into::into)
            .to_vec(),
        ..Spawn::new("sh")
    };
    let options =
        TraceOptions::FORK | TraceOptions::VFORK | TraceOptions::CLONE | TraceOptions::EXIT;
    let (mut child, tracee) = traced(&spawn, options);
    let (mut announced, mut begun, mut codes) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    loop {
        let tracee = tracee::next().expect("there is a child");
        match child.poll(tracee).expect("it reports") {
            Some(Event::Stopped(stopped)) => {
                announced.extend(stopped.new_task().expect("it is stopped"));
                if stopped.stop() == Stop::Interrupted {
                    begun.insert(tracee);
                }
                if stopped.stop() == Stop::Exit {
                    codes.insert(stopped.message().expect("it is stopped") >> 8);
                }
                let signal = stopped.signal();
                stopped.resume(Resume::Run, signal).expect("it is stopped");
            }
            Some(Event::Ended(ended)) if tracee.tid() == child.pid() => {
                assert_eq!(ended, Ended::Exited(5));
                break;
            }
            _ => {}
        }
    }
    assert!(!announced.contains(&tracee));
    assert_eq!(announced.len(), 2);
    assert_eq!(announced, begun);
    assert_eq!(codes, BTreeSet::from([3, 4, 5]));
}

fn one_instruction() {
    let (mut child, tracee) = traced(&playing("call"), TraceOptions::EXEC);
    let stopped = until(tracee, Resume::Run, |stopped| stopped.stop() == Stop::Exec);
    stopped.resume(Resume::Step, None).expect("it is stopped");
    // The first step out of execve ends at the first instruction.
    let first = stop(tracee);
    let before = first.call().expect("kernel 5.3").ip;
    first.resume(Resume::Step, None).expect("it is stopped");
    let second = stop(tracee);
    assert_eq!(second.stop(), Stop::Signal(libc::SIGTRAP));
    let after = second.call().expect("kernel 5.3").ip;
    assert_ne!(before, after);
    assert!(stop_and_end(&mut child, tracee).is_by(libc::SIGKILL));
}

fn attach_and_detach() {
    let waiting = Waiting::with("none");
    let tracee = Tracee::seize(waiting.pid(), TraceOptions::NONE).expect("it is a child");
    // It has reported that it is ready and is about to read. On AArch64 the stop ends the call.
    let reads = |stopped: &Stopped| {
        let call = stopped.fatal_call();
        call.is_some_and(|call| i64::from(call.nr) == libc::SYS_read)
    };
    let stopped = loop {
        tracee.interrupt().expect("it runs");
        let stopped = stop(tracee);
        assert_eq!(stopped.stop(), Stop::Interrupted);
        assert_eq!(stopped.signal(), None);
        if reads(&stopped) {
            break stopped;
        }
        stopped.resume(Resume::Run, None).expect("it is stopped");
    };
    stopped.detach(None).expect("it is stopped");
    waiting.end();
}

fn error_names_the_request() {
    let error = Tracee::seize(i32::MAX, TraceOptions::NONE).expect_err("there is none");
    assert_eq!(error.request, Request::Seize);
    assert_eq!(error.errno, Errno(libc::ESRCH));
    let waiting = Waiting::with("none");
    let tracee = Tracee::seize(waiting.pid(), TraceOptions::NONE).expect("it is a child");
    tracee.interrupt().expect("it runs");
    let stopped = stop(tracee);
    let error = stopped.filter(0).expect_err("it has no filters");
    assert_eq!(error.request, Request::Filter);
    stopped.detach(None).expect("it is stopped");
    waiting.end();
}
