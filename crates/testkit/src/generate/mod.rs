//! Generators of random values for property tests and fuzzers, one file per kind of value.
//!
//! A generator is a function of an [`Rng`](crate::rng::Rng) and possibly a size. The same seed gives the same value
//! on every machine, so a failing test only needs to name its seed.

pub mod assembly;
pub mod damage;
pub mod degenerate;
pub mod extended;
pub mod hostile;
pub mod input;
pub mod kafel;
pub mod minijail;
pub mod mutant;
pub mod oci;
pub mod options;
pub mod packet;
pub mod plain;
pub mod profile;
pub mod program;
pub mod ruleset;
pub mod shape;
pub mod spo;
pub mod unit;
pub mod variables;
