//! Bit tests: questions whether one of some bits of the word is set.
//!
//! A comparison cuts a line into two intervals; a bit test separates values anywhere. Its bits and its cost depend on
//! the decisions that remain after it:
//!
//! | yes and no | use | bits | cost |
//! |---|---|---|---|
//! | two decisions ([`two_decisions`]) | alternating decisions, such as another one for every fourth number | of the values of one decision, those that no value of the other has | exact: one question |
//! | a decision and a line ([`one_line`]) | single numbers in a neighbourhood of one decision | of that decision's values, those that no other value has | upper bound: the line is halved, or a chain of equality questions |
//!
//! The tables of [`costs`](super::costs) use these costs for parts. The tree solves the remaining line again, so it
//! costs no more than its table entry. [`rest`] computes the rest of a run after a bit test.
//!
//! Tests that leave a line on both sides are not tried: they saved 0.1 % of the weighted steps of `bench/goals.tsv`.

pub(super) mod one_line;
pub(super) mod rest;
pub(super) mod two_decisions;
