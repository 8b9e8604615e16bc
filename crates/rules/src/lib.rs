//! The meaning of a policy.
//!
//! A [`Ruleset`] has, per architecture, an ordered list of [`Rule`]s, each a set of numbers, a [`Predicate`] over
//! the arguments and an action; the first match decides. [`Ruleset::decide`] *is* the meaning: compiler, prover and
//! kernel are compared with it.
//!
//! A ruleset has no names, files or languages, except for the [`Origin`] of each rule.
#![forbid(unsafe_code)]

pub mod code;
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
pub use predicate::{CmpOp, Operand, OperandSource, Part, Predicate, Test};
pub use ruleset::{Origin, Rule, Ruleset, Section};
pub use set::IntervalSet;
pub use variable::{BindError, Variable, VariableWidth};
