//! What the compiler costs, and what its programs cost, on policies that people use.
//!
//! Counts are exact and the same everywhere, so they are checked by a test against `counts.tsv` and
//! reviewed in diffs. Times are not, so they are only ever shown as ratios: see [`ratio`].

pub mod book;
pub mod bounds;
pub mod goals;
pub mod growth;
pub mod gvisor;
pub mod large;
pub mod peers;
pub mod policies;
pub mod ratio;
pub mod requests;
pub mod runc;
