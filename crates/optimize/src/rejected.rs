//! Rejections: methods of improving an input that were tried but not chosen, with the reasons.

use std::fmt;

use tamis_analysis::Undecompilable;
use tamis_prover::LimitReached;

use super::proved::Method;
use super::rating::Rating;
use tamis_compiler::Size;
use tamis_compiler::Unjudged;

/// A method that was not chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejected {
    /// The method.
    pub how: Method,
    /// The reason.
    pub why: RejectionReason,
}

/// The reason why a method was not chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum RejectionReason {
    /// No ruleset is equivalent to the input.
    Unliftable(Undecompilable),
    /// The method gives no program.
    NoProgram,
    /// The result is not better than the input, or than the chosen result.
    NotBetter(Box<Rating>),
    /// The result is much longer than the input.
    TooLong {
        /// Its length.
        length_insns: usize,
    },
    /// The result could not be proved equivalent.
    Unproven(LimitReached),
    /// The result was proved equivalent, but the proof could not be confirmed.
    Unjudged(Unjudged),
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.how {
            Method::LaidOutAnew | Method::Split | Method::Unchanged => "not recompiled",
            Method::Redispatched => "dispatch not rebuilt",
            Method::Passes => "not cleaned up",
        };
        write!(f, "{what}: {}", self.why)
    }
}

impl fmt::Display for RejectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RejectionReason::Unliftable(reason) => reason.fmt(f),
            RejectionReason::NoProgram => {
                f.write_str("it treats unnamed architectures differently, or has too many paths")
            }
            RejectionReason::NotBetter(rating) => {
                let length = Size::Program {
                    length_insns: rating.cost.length_insns,
                    cost: None,
                };
                let steps = rating.cost.all().mean_steps();
                write!(
                    f,
                    "{length} and {steps:.1} steps on average would be no better"
                )
            }
            RejectionReason::TooLong { length_insns } => {
                write!(
                    f,
                    "{length_insns} instructions would be more than twice as many"
                )
            }
            RejectionReason::Unjudged(unjudged) => {
                write!(
                    f,
                    "the proof that it does the same could not be confirmed: {unjudged}"
                )
            }
            RejectionReason::Unproven(limit) => {
                write!(f, "the result could not be proved equivalent: {limit}")
            }
        }
    }
}
