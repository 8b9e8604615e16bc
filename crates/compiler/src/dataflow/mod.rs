//! What is known at each point of a program: the dataflow that bytecode passes share.
//!
//! A program never jumps back, so each block runs at most once per input, and every value that a
//! register holds has an identity of its own: a [`Value`](value::Value). [`Flow`](flow::Flow) finds for each
//! block what A, X and scratch memory hold when it is entered, and which [`Fact`](fact::Fact)s the tests
//! passed so far have established about those values; where paths meet, what they don't agree on is
//! forgotten. [`Live`](live::Live) looks the other way: which places are still read.
//!
//! The flow of a graph stays true for a block as long as nothing before that block is changed, which is
//! why passes that change edges go from the end of the program to its beginning.

pub(crate) mod fact;
pub(crate) mod flow;
pub(crate) mod lists;
pub(crate) mod live;
pub(crate) mod state;
pub(crate) mod value;
