//! Bit tests: questions whether one of some bits of the word is set.
//!
//! A comparison cuts a line into two intervals; a bit test separates values anywhere. Its bits and its cost depend on
//! the decisions that remain after it:
//!
//! - Two decisions ([`two_decisions`]), where decisions alternate, such as another one for every fourth number. The
//!   bits are those of the values of one decision that no value of the other has. The cost is exact: one question.
//! - A decision and a line ([`one_line`]), where single numbers stand out from a neighbourhood of one decision. The
//!   bits are those of that decision's values that no other value has. The cost is an upper bound: the line is halved,
//!   or decided by a chain of equality questions.
//!
//! The tables of [`costs`](super::costs) use these costs for parts. The tree solves the remaining line again, so it
//! costs no more than its table entry. [`rest`] computes the rest of a run after a bit test.
//!
//! Tests that leave a line on both sides are not tried: they saved 0.1 % of the weighted steps of `bench/goals.tsv`.

pub(super) mod one_line;
pub(super) mod rest;
pub(super) mod two_decisions;
