//! Decides whether two seccomp filters mean the same, for every input, or shows one where they don't.
//!
//! A filter is a function of 512 input bits to a 32-bit value. A [`Space`] represents such functions
//! as canonical decision diagrams, so that equal functions are equal [`Function`]s: rulesets are
//! translated from their definition ([`Space::ruleset`]), programs by running them on symbols
//! ([`Space::program`]), stacks by combining their programs ([`Space::stack`]). Two functions that
//! differ are told apart by walking both diagrams to an input where they do ([`Space::witness`]).
//! It decides and does nothing else: what reads filters for people looks at functions by [`Space::view`].
//!
//! The crate shares no code with the compiler: it depends on the types of programs and rulesets only,
//! and a mistake in a pass or in layout can't hide here. It answers *unknown* where a construct would
//! make the diagrams too large ([`Limits`]) and gates don't help either ([`decide`], [`prove`]), never a
//! wrong *equal*.
//!
//! Prior art: R. E. Bryant, "Graph-Based Algorithms for Boolean Function Manipulation" (1986);
//! M. Fujita et al., "Multi-Terminal Binary Decision Diagrams" (1997).
#![forbid(unsafe_code)]

mod bits;
mod code;
mod comparison;
mod diagram;
mod explore;
mod gates;
mod hash;
mod liveness;
#[doc(hidden)]
pub mod misreading;
mod order;
mod piecewise;
mod predicate;
mod program;
mod prove;
mod relation;
mod ruleset;
mod space;
mod stack;
mod stop;
mod subject;
mod symbolic;
mod value;
mod view;
mod witness;
mod word_test;

pub use comparison::{Comparison, Pair, Scope, Verdict};
pub use diagram::{LimitReached, Variable};
pub use gates::Branches;
pub use prove::{
    Answer, Method, Report, decide, decide_by_gates, decide_until, equality_by_diagrams,
    equality_by_gates, prove, prove_by_gates,
};
pub use relation::Relation;
pub use space::{Equality, Function, Limits, Space};
pub use stop::Stop;
pub use subject::Subject;
pub use symbolic::{Successor, SymbolicBlock};
pub use view::{VariableKind, View};
