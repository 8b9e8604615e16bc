//! Policies combined by meaning.
//!
//! [`combine`] makes one ruleset of several, rule by rule; [`prove`] derives the same function from the functions of
//! the parts, without their rules where the operation has none, and compares the two. A result without that proof is
//! not for users.
//!
//! # Laws
//!
//! The parts are in order, the oldest first, as the filters of a stack. *Looser* is the kernel's order of actions:
//! kill_process, kill_thread, trap, errno, notify, trace, log, allow.
//!
//! | | intersect | union | overlay | minus |
//! |---|---|---|---|---|
//! | action | the strictest, as of a stack | the loosest | of the first rule of the newest part that has one for the call, else of the first part | of the first part; its default if it and another part execute the call |
//! | equal actions with different data (errno, trap, trace) | the newest part's | the newest part's | - | the first part's |
//! | default, numbers without a name | as the action | as the action | the first part's | as the action |
//! | architecture that some parts lack | their action for bad architectures takes part | the same | the first part's such action below the rules of the others | the same as intersect |
//! | flags | those of any part; `SPEC_ALLOW` if all have it | those of any part | the first part's | the first part's |
//! | listener | the only one that a part names | the same | the first part's | the first part's |
//!
//! All but minus are associative: `A, B, C` is `(A, B), C` and `A, (B, C)`. Intersect and union are commutative in
//! actions, and in data where no two parts have the same action with different data. The result of intersect and minus
//! is never looser than the parts that it restricts (all; the first one), that of union never stricter than any.
#![forbid(unsafe_code)]

mod combine;
mod function;
mod installation;
mod origin;
mod proof;

pub use combine::{Impossible, MAX_RULES, combine};
pub use installation::{TwoListeners, installation};
pub use origin::{Origin, may_execute, origins};
pub use proof::{Refuted, Unproved, prove, prove_by_gates};

/// An operation on policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The calls that all parts allow: the strictest action, as of a stack.
    Intersect,
    /// The calls that any part allows: the loosest action.
    Union,
    /// The rules of later parts before those of the first.
    Overlay,
    /// The calls that the first part allows and no other does.
    Minus,
}

impl Operation {
    /// All operations.
    pub const ALL: [Operation; 4] = [
        Operation::Intersect,
        Operation::Union,
        Operation::Overlay,
        Operation::Minus,
    ];

    /// The name: that of the option of `tamis combine`.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Intersect => "intersect",
            Operation::Union => "union",
            Operation::Overlay => "overlay",
            Operation::Minus => "minus",
        }
    }
}
