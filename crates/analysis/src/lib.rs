//! Explains filters: the results of a filter, the differences of two, an equivalent ruleset.
//!
//! The [prover](tamis_prover) represents filters as functions and decides whether two are equal. This crate
//! inspects such functions: [`cases`] and [`differences`] group calls by result, [`decompile`] derives a ruleset,
//! [`find`] an example, [`dead_code`] unreachable instructions. It uses only the prover's public interface. No
//! proof depends on it: users compare all results again.
#![forbid(unsafe_code)]

mod arg_values;
mod cases;
mod complex;
mod condition;
mod decompile;
mod difference;
mod inspect;
mod passed;
mod reach;

pub use cases::{Case, CaseLimits, Cases, Machine, Wording, arches, cases};
pub use complex::{Simplified, without_complex_calls};
pub use decompile::{Undecompilable, decompile, narrowed};
pub use difference::{Difference, Differences, differences, differences_of};
pub use inspect::{find, with_bits, with_word, words};
pub use passed::Passed;
pub use reach::{DeadCode, dead_code};
