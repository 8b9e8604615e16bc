//! The meaning of a policy.
//!
//! A [`Ruleset`] says, per architecture, what happens to a system call: an ordered list of [`Rule`]s,
//! each a set of numbers, a [`Predicate`] over the arguments and an action; the first that matches
//! decides. [`Ruleset::decide`] *is* the meaning: compiler, prover and kernel are judged against it.
//!
//! Names, files and languages are gone by now, except for the [`Origin`] that a rule remembers.
#![forbid(unsafe_code)]

pub mod eval;
pub mod input;
pub mod predicate;
pub mod ruleset;
pub mod set;
pub mod text;
pub mod variable;
mod walk;

pub use eval::{Cause, Decision};
pub use input::{Input, Values};
pub use predicate::{CmpOp, Operand, Part, Predicate, Subject, Test};
pub use ruleset::{Origin, Rule, Ruleset, Section};
pub use set::IntervalSet;
pub use variable::{BindError, Variable, VariableWidth};
