//! Differential fuzzing of seccomp filters: two subjects, the same inputs, and coverage.
//!
//! A [`Campaign`] runs two subjects - policies, programs, stacks - side by side on inputs that are made from their
//! constants ([`Dictionary`]) and guided by coverage (`path`). Differences are confirmed by the reference evaluators
//! and minimised (`witness`). For places that are not reached, the prover (`feasible`) either proves that they are
//! unreachable or finds an input. So a campaign ends with a result for every instruction and both outcomes of every
//! branch. With [`Campaign::run_plain`] random calls are evaluated without coverage, by the caller's evaluators. [`reduce`] shrinks policies and programs that show a failure.
//!
//! [`agreement`] uses no random inputs: it tests whether two filters agree on calls that take every branch each
//! feasible way.
//!
//! The results depend only on the subjects, a seed and the number of evaluations: there is no clock and no I/O. An
//! agreement is not a proof; the prover makes proofs.
#![forbid(unsafe_code)]

mod agreement;
mod campaign;
mod coverage;
mod dictionary;
mod feasible;
mod path;
mod plain;
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
