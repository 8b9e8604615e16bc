//! Differential fuzzing of seccomp filters: two subjects, the same inputs, and coverage.
//!
//! A [`Campaign`] runs two subjects - policies, programs, stacks - side by side on inputs that are made from
//! the constants in them ([`Dictionary`]) and led by what the inputs reached in them (`path`). What it
//! finds is confirmed by the reference evaluators and made as plain as it can be (`witness`). What it
//! doesn't reach is put to the prover (`feasible`): either nothing reaches it, or here is an input. So a
//! campaign ends with a statement about every instruction and both outcomes of every branch. [`reduce`] shrinks
//! policies and programs that show a failure.
//!
//! [`agreement`] is the question without chance: do two filters agree on calls that take every branch each way
//! that it can go?
//!
//! Everything depends on the subjects, a seed and the number of evaluations: there is no clock and no I/O.
//! An agreement is never a proof; that is the prover's work.
#![forbid(unsafe_code)]

mod agreement;
mod campaign;
mod coverage;
mod dictionary;
mod feasible;
mod path;
pub mod reduce;
mod refute;
pub mod rng;
mod side;
mod translate;
pub mod vectors;
mod witness;

pub use agreement::{Agreement, Disagreement, agreement};
pub use campaign::{Campaign, Found};
pub use coverage::{FilterCoverage, Gap, Place};
pub use dictionary::Dictionary;
pub use refute::refute;
pub use translate::program as translate;
