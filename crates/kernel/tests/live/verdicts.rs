//! Every kind of action, alone and in stacks: the kernel behaves as the interpreter and [`Action::from_ret`] predict.

use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use libtest_mimic::Trial;
use tamis_abi::{Action, ActionKind};

use crate::support::{CALL, answering, native_call, output_of, play, stack, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("verdicts::single_answers", single_answers),
        trial("verdicts::unknown_actions_kill", unknown_actions),
        trial("verdicts::stacks_of_two", stacks_of_two),
        trial("verdicts::stacks_of_three", stacks_of_three),
        trial("verdicts::kill_thread_spares_the_others", kill_thread),
        trial("verdicts::kill_process_spares_nobody", kill_process),
        trial("verdicts::tracer_gets_the_data", tracer_gets_the_data),
    ]
}

/// The expected end of a process with one thread that makes the call under these actions.
fn expected(rets: &[u32]) -> String {
    let programs = rets.iter().map(|ret| answering(CALL, *ret)).collect();
    let call = native_call(CALL, [0; 6]);
    let run = stack(programs).run(&call);
    let action = Action::from_ret(run.ret);
    match action.kind {
        ActionKind::KillProcess | ActionKind::KillThread => format!("signal {}", libc::SIGSYS),
        ActionKind::Trap => format!("trap {} {} {:#x}", action.data, call.nr, call.arch),
        ActionKind::Errno if action.data == 0 => "value 0".to_owned(),
        ActionKind::Errno => format!("errno {}", action.data.min(4095)),
        // There is neither a listener nor a tracer.
        ActionKind::Notify | ActionKind::Trace => format!("errno {}", libc::ENOSYS),
        ActionKind::Log | ActionKind::Allow => "executed".to_owned(),
    }
}

fn seen(output: &Output) -> String {
    match output.status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    }
}

#[track_caller]
fn check(rets: &[u32]) {
    let words: Vec<String> = rets.iter().map(|ret| format!("{ret:x}")).collect();
    let mut role = vec!["verdict"];
    role.extend(words.iter().map(String::as_str));
    assert_eq!(seen(&play(&role)), expected(rets), "{rets:x?}");
}

fn single_answers() {
    for kind in ActionKind::ALL {
        for data in [0, 1, 38, 4095, 4096, 5000, 0xffff] {
            check(&[Action::new(kind, data).ret()]);
        }
    }
}

fn unknown_actions() {
    for ret in [0x0001_0000, 0x1234_0000, 0x7ffe_0000, 0xffff_ffff] {
        check(&[ret]);
    }
}

/// The strictest answer wins; of equal ones the newest filter's data.
fn stacks_of_two() {
    for older in ActionKind::ALL {
        for newer in ActionKind::ALL {
            check(&[Action::new(older, 1).ret(), Action::new(newer, 2).ret()]);
        }
    }
}

fn stacks_of_three() {
    let rets = [
        Action::errno(1),
        Action::errno(2),
        Action::new(ActionKind::Trap, 3),
        Action::new(ActionKind::Allow, 4),
    ]
    .map(Action::ret);
    for oldest in rets {
        for middle in rets {
            for newest in rets {
                check(&[oldest, middle, newest]);
            }
        }
    }
}

fn kill_thread() {
    let ret = format!("{:x}", Action::KILL_THREAD.ret());
    assert_eq!(output_of(&["verdict-in-thread", &ret]), "main is alive");
}

fn kill_process() {
    for ret in [Action::KILL_PROCESS.ret(), 0x0001_0000] {
        let output = play(&["verdict-in-thread", &format!("{ret:x}")]);
        assert_eq!(output.status.signal(), Some(libc::SIGSYS), "{ret:x}");
        assert!(output.stdout.is_empty());
    }
}

fn tracer_gets_the_data() {
    for data in ["0", "1234", "65535"] {
        assert_eq!(output_of(&["trace-message", data]), format!("Some({data})"));
    }
}
