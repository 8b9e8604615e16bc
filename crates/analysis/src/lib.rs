//! Reads filters for people: what a filter answers, where two differ, which ruleset means the same.
//!
//! The [prover](tamis_prover) represents filters as functions and decides whether two are equal. This
//! crate reads such functions: [`cases`] and [`differences`] group calls by answer, [`decompile`] makes a
//! ruleset, [`find`] an example, [`dead_code`] names what no call executes. It uses what the prover offers
//! to everyone and nothing that it keeps to itself. No proof depends on it: what is made of a reading
//! is compared again by whoever uses it.
#![forbid(unsafe_code)]

mod arg_values;
mod cases;
mod condition;
mod decompile;
mod difference;
mod inspect;
mod reach;

pub use cases::{Case, CaseLimits, Cases, Machine, Wording, arches, cases};
pub use decompile::{Undecompilable, decompile, narrowed};
pub use difference::{Difference, Differences, differences, differences_of};
pub use inspect::{find, with_bits, with_word, words};
pub use reach::{DeadCode, dead_code};
