//! The costs of the compiler and of its programs, on policies in use.
//!
//! Counts are exact and the same everywhere, so a test compares them with `counts.tsv`, and they are reviewed in
//! diffs. Times are not, so they are only shown as ratios: see [`ratio`].

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
