//! The judge: the checks of a result before it is returned.
//!
//! Results compiled from a policy are proved, and pass two additional cheap checks ([`compiled`]). Results made from
//! programs, which the prover itself has read, need a second judge, which is in the crate `optimize`.

mod compiled;
mod cover;

use tamis_prover::{Answer, Method};

use crate::error::CompileError;

pub use compiled::compiled;
pub use cover::cover;

/// The prover's answer as the result of a compilation.
///
/// # Errors
/// If they differ or a limit was reached.
pub fn proved(answer: Answer) -> Result<Method, CompileError> {
    match answer {
        Answer::Equal(method) => Ok(method),
        Answer::Different {
            input, left, right, ..
        } => Err(CompileError::Miscompiled {
            witness: Box::new(input),
            expected_ret: left,
            actual_ret: right,
        }),
        Answer::Unknown(limit) => Err(CompileError::Unproven { limit }),
    }
}
