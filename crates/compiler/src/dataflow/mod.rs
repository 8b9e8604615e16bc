//! Dataflow analysis of programs, shared by the bytecode passes.
//!
//! A program never jumps back, so each block runs at most once per input, and every value of a register has an
//! identity of its own: a [`Value`](value::Value). For each block `Flow` finds the values of A, X and
//! scratch memory on entry, and the `Fact`s that the tests passed so far establish about them; where
//! paths merge, only facts that hold on all of them are kept. [`Live`](live::Live) is the backward analysis: the
//! places that are still read.
//!
//! The flow of a block remains valid as long as nothing before the block changes, which is why passes that change
//! edges go from the end of the program to its beginning.

pub(crate) mod fact;
pub(crate) mod flow;
pub(crate) mod lists;
pub mod live;
pub mod state;
pub mod value;
