//! The judge: the checks of a result before it is returned.
//!
//! Results compiled from a policy are proved, and pass two additional cheap checks ([`compiled`]). Results made from
//! programs, which the prover itself has read, need a second judge ([`judge`], with the feature `foreign`).

mod compiled;
mod cover;
#[cfg(feature = "foreign")]
mod narrowed;
#[cfg(feature = "foreign")]
mod second;

use std::fmt;

use tamis_prover::{Answer, Method};

use crate::error::CompileError;

pub use compiled::compiled;
pub use cover::cover;
#[cfg(feature = "foreign")]
pub(crate) use second::confirm;
#[cfg(feature = "foreign")]
pub use second::{Filter, Judged, judge, judge_reading};

/// The reason why only the prover could confirm that two subjects are equivalent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unjudged {
    /// The number of outcomes of branches without a known call that are not proved infeasible either.
    Edges(usize),
    /// A policy is too large to be run as a program.
    TooLarge,
}

/// The prover's answer as the result of a compilation.
pub(crate) fn proved(answer: Answer) -> Result<Method, CompileError> {
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

impl fmt::Display for Unjudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unjudged::Edges(1) => f.write_str("it is not settled whether 1 edge can be taken"),
            Unjudged::Edges(edges) => {
                write!(f, "it is not settled whether {edges} edges can be taken")
            }
            Unjudged::TooLarge => f.write_str("the policy is too large to be run as a program"),
        }
    }
}
