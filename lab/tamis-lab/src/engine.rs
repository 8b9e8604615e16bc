//! Failures of evaluators.

use std::fmt;

use tamis_engine::Error;

use tamis_cli::Failure;

/// The failure of an evaluator that can't be prepared for the named filter.
pub(crate) fn unusable(name: &str, error: &Error) -> Failure {
    match error {
        Error::Jit(_) => Failure::environment(error.to_string()),
        _ => Failure::input(format!("{name}: {error}")),
    }
}

/// The failure of an evaluator that returns another value than the reference interpreter.
pub(crate) fn disagreement(engine: impl fmt::Display, ret: u32, expected: u32) -> Failure {
    Failure::bug(
        format!("{engine} gives {ret:#x}, the reference interpreter {expected:#x}"),
        "please report it with the program and the input",
    )
}
