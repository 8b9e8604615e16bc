//! Decides whether two seccomp filters are equivalent for every input, or returns an input for which they differ.
//!
//! A filter is a function of 512 input bits to a 32-bit value. A [`Space`] represents such functions as canonical
//! decision diagrams, so that equal functions are equal [`Function`]s: rulesets are translated from their
//! definition ([`Space::ruleset`]), programs by symbolic execution ([`Space::program`]), stacks by combining their
//! programs ([`Space::stack`]). For two functions that differ, both diagrams are walked to an input for which they
//! do ([`Space::witness`]). The crate only decides; tools that explain filters inspect functions by
//! [`Space::view`].
//!
//! The crate shares no code with the compiler: it depends only on the types of programs and rulesets, so it can't
//! repeat a mistake of a pass or of layout. The answer is *unknown* if the diagrams become too large ([`Limits`])
//! and gates are inconclusive too ([`decide`], [`prove`]), never a wrong *equal*.
//!
//! Prior art: R. E. Bryant, "Graph-Based Algorithms for Boolean Function Manipulation" (1986);
//! M. Fujita et al., "Multi-Terminal Binary Decision Diagrams" (1997).
#![forbid(unsafe_code)]

mod assignment;
mod bits;
mod code;
mod comparison;
mod diagram;
mod explore;
mod gates;
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
mod sat;
mod space;
mod stack;
mod stop;
mod subject;
mod symbolic;
mod value;
mod view;
mod witness;
mod word_test;

pub use comparison::{Comparison, ComparisonResult, Pair, Scope};
pub use diagram::{LimitReached, Limited, Variable};
pub use gates::{Branches, Composed, agree_on_packets};
pub use prove::{
    Answer, Method, Report, decide, decide_by_gates, decide_until, equality_by_diagrams,
    equality_by_gates, prove, prove_by_gates, refutation,
};
pub use relation::Relation;
pub use sat::Refutation;
pub use space::{Equality, Function, Limits, Space};
pub use stop::Stop;
pub use subject::Subject;
pub use symbolic::{Successor, SymbolicBlock};
pub use view::{VariableKind, View};
