//! Failures of evaluators.

use std::fmt;

use tamis_engine::Error;

use super::Failure;

/// An evaluator that can't be made.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` takes")]
pub(crate) fn unusable(error: Error) -> Failure {
    match error {
        Error::Jit(_) => Failure::environment(error.to_string()),
        _ => Failure::input(error.to_string()),
    }
}

/// An evaluator that gives another value than the reference interpreter.
pub(crate) fn disagreement(engine: impl fmt::Display, ret: u32, expected: u32) -> Failure {
    Failure::bug(
        format!("{engine} gives {ret:#x}, the reference interpreter {expected:#x}"),
        "please report it with the program and the input",
    )
}
