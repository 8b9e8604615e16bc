//! Bit tests: questions whether one of some bits of the word is set.
//!
//! A comparison cuts a line into two intervals; a bit test separates values wherever they lie. Its bits and its cost depend
//! on how much it leaves to decide:
//!
//! | yes and no | where it pays | bits | cost |
//! |---|---|---|---|
//! | two decisions ([`two_decisions`]) | decisions alternate, as of every fourth number | of the values of one decision, those that no value of the other has | exact: one question |
//! | a decision and a line ([`one_line`]) | single numbers stand out from a neighbourhood of one decision | of that decision's values, those that no other value has | upper bound: the line is halved, or a chain of equality questions |
//!
//! The tables of [`costs`](super::costs) take these costs for parts as they are; the tree that is built solves the line
//! anew, so it costs no more than its table says. [`rest`] computes what a test leaves of a run.
//!
//! Tests that leave a line on both sides are not tried: they saved 0.1 % of the weighted steps of `bench/goals.tsv`.

pub(super) mod one_line;
pub(super) mod rest;
pub(super) mod two_decisions;
