//! `tamis run --explain-denied`: which calls got an error from a filter.
//!
//! The filters become one, proved to be the same function, which hands every call that would get an error to tamis. There
//! it is noted and gets that error. All other calls are decided by the kernel alone, at full speed.
//!
//! What a program does with a listener of its own fails under it, with EBUSY: the kernel has one for each task.

use tamis_abi::{Action, ActionKind, errno};
use tamis_bpf::{Op, Program, Stack};
use tamis_kernel::listener::Reply;
use tamis_kernel::run::{self, Command, RunError, RunResult};

use tamis_session::Policy;

use crate::cli::denials::Denials;
use crate::cli::load::native_arch;
use crate::cli::{Failure, budget, side};

/// The filters of a command as one that hands over what gets an error.
///
/// # Errors
/// If they don't fit into one, or return values that they compute.
pub(super) fn handing_over(stack: &Stack) -> Result<Stack, Failure> {
    let program = side::single(stack, &budget::compile_options())?;
    let program = program.ok_or_else(|| refused("the filters don't fit into one"))?;
    let ops: Vec<Op> = program.ops().map(handed_over).collect();
    if ops.contains(&Op::RetA) {
        return Err(refused("a filter returns values that it computes"));
    }
    let insns = ops.into_iter().map(Into::into).collect();
    let program = Program::new(insns, program.endian());
    let program = program.map_err(|error| refused(&error.to_string()))?;
    Ok(Stack::from(program))
}

fn handed_over(op: Op) -> Op {
    match op {
        Op::RetImm(ret) if Action::from_ret(ret).kind == ActionKind::Errno => {
            Op::RetImm(Action::new(ActionKind::Notify, 0).ret())
        }
        other => other,
    }
}

fn refused(why: &str) -> Failure {
    Failure::usage(
        format!("denied calls can't be explained: {why}"),
        "leave --explain-denied out; `tamis record --confined` counts denied calls without a listener",
    )
}

/// Runs a command under filters that hand over; also gives the calls that got an error.
pub(super) fn run(
    command: &Command,
    stack: &Stack,
    policies: &[Option<Policy>],
) -> Result<(RunResult, Denials), RunError> {
    let mut denials = Denials::default();
    let result = run::supervise(command, |_, notification| {
        let run = stack.run(&notification.call);
        let action = Action::from_ret(run.ret);
        if action.kind == ActionKind::Errno {
            let policy = run
                .decided_by
                .and_then(|filter| policies.get(filter)?.as_ref());
            denials.add(&notification.call, action, policy);
            Reply::Errno(action.data.min(errno::MAX))
        } else {
            // The policy's own `notify`, which nobody answers.
            Reply::Errno(errno::enosys(native_arch()))
        }
    })?;
    Ok((result, denials))
}
