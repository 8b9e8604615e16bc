//! Calls that are handed to user space.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use libtest_mimic::Trial;
use tamis_abi::{Action, ActionKind, KernelVersion};
use tamis_kernel::listener::{Delivery, Listener, Reply};
use tamis_kernel::run::Note;
use tamis_kernel::{Command, Ended, Flag, Install, install, supervise};
use tamis_testkit::skip;

use crate::raw;
use crate::support::{ARGS, CALL, answering, constant, native_call, output_of, own_path, trial};
use crate::victim;

const NOTIFY: u32 = ActionKind::Notify.ret();

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("listener::errno_reaches_the_caller", || {
            assert_eq!(answered(Reply::Errno(7)), Ended::Exited(7));
        }),
        trial("listener::value_reaches_the_caller", || {
            assert_eq!(answered(Reply::Return(5)), Ended::Exited(100));
        }),
        trial("listener::continue_executes_the_call", || {
            let einval = libc::EINVAL as u8;
            assert_eq!(answered(Reply::Continue), Ended::Exited(einval));
        }),
        trial("listener::the_call_is_told_as_it_is", the_call_is_told),
        trial("listener::every_call_can_be_notified", every_call),
        trial("listener::tasks_that_are_left_are_told", tasks_left),
        trial("listener::explains_a_kill_too", explains_a_kill_too),
        trial("listener::descriptor_can_be_added", descriptor_can_be_added),
        trial("listener::descriptor_can_be_the_answer", || {
            descriptor_can_be_the_answer();
        }),
        trial("listener::caller_and_supervisor_can_share_a_cpu", || {
            assert_eq!(output_of(&["notify", "wake-up"]), "Ok(9)");
        }),
        trial("listener::listener_gone_is_enosys", || {
            let enosys = format!("Err({})", libc::ENOSYS);
            assert_eq!(output_of(&["notify", "listener-gone"]), enosys);
        }),
        trial("listener::id_is_valid_until_the_reply", || {
            assert_eq!(
                output_of(&["notify", "id"]),
                "true Delivered false Gone Ok(9)"
            );
        }),
        trial("listener::receivers_stop_when_told", || {
            assert_eq!(output_of(&["notify", "receivers"]), "1000 calls, {Ok(9)}");
        }),
        trial("listener::receive_ends_with_the_last_task", || {
            assert_eq!(output_of(&["notify", "last-task"]), "None");
        }),
    ]
}

fn calling(role: &str, ret: u32) -> Command {
    Command {
        args: [victim::MARK, role].map(Into::into).to_vec(),
        filters: answering(CALL, ret).into(),
        explain: false,
        ..Command::new(own_path())
    }
}

fn answered(reply: Reply) -> Ended {
    let report = supervise(&calling("call", NOTIFY), |_, _| reply).expect("it runs");
    assert_eq!(report.notes, []);
    report.ended
}

fn the_call_is_told() {
    let mut calls = Vec::new();
    supervise(&calling("call", NOTIFY), |_, notification| {
        calls.push(notification.call);
        Reply::Errno(1)
    })
    .expect("it runs");
    let mut expected = native_call(CALL, ARGS);
    expected.ip = calls[0].ip;
    assert_ne!(expected.ip, 0);
    assert_eq!(calls, [expected]);
}

/// Even those between the installation and `execve`: the listener is handed over without calls.
fn every_call() {
    let count = AtomicU32::new(0);
    for explain in [false, true] {
        let command = Command {
            args: ["-c", "exit 4"].map(Into::into).to_vec(),
            filters: constant(NOTIFY).into(),
            explain,
            ..Command::new("sh")
        };
        let report = supervise(&command, |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
            Reply::Continue
        })
        .expect("it runs");
        assert_eq!(report.ended, Ended::Exited(4));
        assert_eq!(report.notes, []);
    }
    assert!(count.into_inner() > 20);
}

/// A child that outlives the command, until this end of a pipe is closed. Some commands end before the supervisor has
/// their listener.
fn tasks_left() {
    const ROUNDS: usize = 50;
    for round in 0..ROUNDS {
        let (reader, writer) = io::pipe().expect("a pipe");
        let (own, fd) = (std::process::id(), reader.as_fd().as_raw_fd());
        let script = format!("read line </proc/{own}/fd/{fd} & exit 3");
        let command = Command {
            args: vec!["-c".into(), script.into()],
            filters: answering(CALL, NOTIFY).into(),
            explain: false,
            ..Command::new("sh")
        };
        let report = supervise(&command, |_, _| Reply::Continue).expect("it runs");
        drop(writer);
        let found = (report.ended, report.notes);
        let expected = (Ended::Exited(3), vec![Note::TasksLeft]);
        assert_eq!(found, expected, "round {round}");
    }
}

fn explains_a_kill_too() {
    let mut command = calling("call", Action::KILL_PROCESS.ret());
    command
        .filters
        .push(answering(libc::SYS_execve, NOTIFY))
        .expect("it is for this machine");
    command.explain = true;
    let report = supervise(&command, |_, _| Reply::Continue).expect("it runs");
    assert_eq!(report.killed.len(), 1);
    assert_eq!(report.killed[0].decided_by, Some((0, Action::KILL_PROCESS)));
}

fn descriptor_can_be_added() {
    let (mut reader, writer) = io::pipe().expect("a pipe");
    let report = supervise(
        &calling("call-with-fd", NOTIFY),
        |listener, notification| {
            let added = listener.add_fd(notification.id, writer.as_fd());
            Reply::Return(added.expect("a descriptor").into())
        },
    );
    assert_eq!(report.expect("it runs").ended, Ended::Exited(0));
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("the pipe ends");
    assert_eq!(text, "from the victim");
}

fn descriptor_can_be_the_answer() {
    skip::unless_since(KernelVersion::new(5, 14));
    let (mut reader, writer) = io::pipe().expect("a pipe");
    let report = supervise(
        &calling("call-with-fd", NOTIFY),
        |listener, notification| {
            let added = listener.reply_fd(notification.id, writer.as_fd());
            assert!(added.expect("kernel 5.14").is_some());
            assert_eq!(listener.is_waiting(notification.id), Ok(false));
            // The answer has been given: this one is dropped.
            Reply::Errno(1)
        },
    );
    assert_eq!(report.expect("it runs").ended, Ended::Exited(0));
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("the pipe ends");
    assert_eq!(text, "from the victim");
}

/// Roles of victims that hold the listener themselves.
pub(crate) fn in_victim(case: &str) -> String {
    let how = Install {
        flags: Flag::NewListener.into(),
        no_new_privs: true,
    };
    let installed = move || {
        let installed = install(&answering(CALL, NOTIFY), &how).expect("it can be installed");
        let listener = installed.listener.expect("a listener");
        Listener::new(listener).expect("the kernel knows notifications")
    };
    match case {
        "listener-gone" => {
            drop(installed());
            format!("{:?}", raw::call(CALL, ARGS))
        }
        "id" => id_is_valid_until_the_reply(&installed()),
        "wake-up" => {
            let listener = installed();
            // Kernels before 6.6 lack it; the result is the same.
            let set = listener
                .set_sync_wake_up(true)
                .map_err(|error| error.errno.0);
            assert!(matches!(set, Ok(()) | Err(libc::EINVAL)), "{set:?}");
            thread::scope(|scope| {
                let caller = scope.spawn(|| raw::call(CALL, ARGS));
                let notification = listener.receive(None).expect("a listener");
                let id = notification.expect("a call").id;
                listener.reply(id, Reply::Return(9)).expect("a listener");
                format!("{:?}", caller.join().expect("the caller returns"))
            })
        }
        "receivers" => many_receive(&installed()),
        "last-task" => {
            // The filter is on a thread that ends.
            let listener = thread::spawn(installed)
                .join()
                .expect("it can be installed");
            format!("{:?}", listener.receive(None).expect("a listener"))
        }
        other => panic!("no case {other}"),
    }
}

/// Every call wakes all receivers; those that don't get it must not block until the next call.
fn many_receive(listener: &Listener) -> String {
    const RECEIVERS: usize = 4;
    const CALLS: usize = 1000;
    let (stop, stopping) = io::pipe().expect("a pipe");
    let receive = || {
        let mut count = 0;
        while let Some(call) = listener.receive(Some(stop.as_fd())).expect("a listener") {
            let reply = listener.reply(call.id, Reply::Return(9));
            reply.expect("a listener");
            count += 1;
        }
        count
    };
    thread::scope(|scope| {
        let receivers = [(); RECEIVERS].map(|()| scope.spawn(receive));
        let results: BTreeSet<_> = (0..CALLS).map(|_| raw::call(CALL, ARGS)).collect();
        drop(stopping);
        let counts = receivers.map(|receiver| receiver.join().expect("it returns"));
        format!("{} calls, {results:?}", counts.into_iter().sum::<usize>())
    })
}

fn id_is_valid_until_the_reply(listener: &Listener) -> String {
    thread::scope(|scope| {
        let caller = scope.spawn(|| raw::call(CALL, ARGS));
        let notification = listener.receive(None).expect("a listener").expect("a call");
        let id = notification.id;
        let before = listener.is_waiting(id).expect("a listener");
        let first = listener.reply(id, Reply::Return(9)).expect("a listener");
        let result = caller.join().expect("the caller returns");
        let after = listener.is_waiting(id).expect("a listener");
        let second: Delivery = listener.reply(id, Reply::Return(9)).expect("a listener");
        format!("{before} {first:?} {after} {second:?} {result:?}")
    })
}
