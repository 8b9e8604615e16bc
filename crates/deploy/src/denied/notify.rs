//! Filters that notify a supervisor in place of returning errors.

use tamis_abi::{Action, ActionKind};
use tamis_bpf::{Op, Program, Stack};
use tamis_compiler::CompileOptions;
use tamis_session::Error;

use crate::merged;

/// Merges the filters of a command into one that notifies instead of returning errors.
///
/// # Errors
/// If the filter would be too long, or a filter computes its return value.
pub fn notifying(stack: &Stack, options: &CompileOptions) -> Result<Stack, Error> {
    let program = merged(stack, options)?;
    let program = program.ok_or_else(|| refused("the filters don't fit into one"))?;
    let ops: Vec<Op> = program.ops().map(without_errno).collect();
    if ops.contains(&Op::RetA) {
        return Err(refused("a filter returns values that it computes"));
    }
    let insns = ops.into_iter().map(Into::into).collect();
    let program = Program::new(insns, program.endian());
    let program = program.map_err(|error| refused(&error.to_string()))?;
    Ok(Stack::from(program))
}

fn without_errno(op: Op) -> Op {
    match op {
        Op::RetImm(ret) if Action::from_ret(ret).kind == ActionKind::Errno => {
            Op::RetImm(Action::new(ActionKind::Notify, 0).ret())
        }
        other => other,
    }
}

fn refused(why: &str) -> Error {
    Error::usage(
        format!("denied calls can't be explained: {why}"),
        "leave --explain-denied out; `tamis record --confined` counts denied calls without a listener",
    )
}
