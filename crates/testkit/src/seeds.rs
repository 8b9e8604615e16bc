//! The number of random cases of a test: all of them with `TAMIS_SEEDS=full`, a 64th with `few`, else an eighth.
//!
//! `cargo xtask kernels` tries few, since emulated processors take twenty times as long.
//! `.ci/run` tries an eighth, which is what fits its time; `.ci/run full`, before a release, tries all, and the tables in
//! the book come from all. A test that expects counts over its cases, such as how many were rejected, states them for
//! all cases, and expects the [`share`] or at least [`least`] of them.

use std::env;
use std::ops::{Div, Range};

/// The seeds to try, the first ones of `all`.
///
/// # Panics
/// If `TAMIS_SEEDS` is set to anything but `full` or `few`.
pub fn selected(all: Range<u64>) -> Range<u64> {
    all.start..all.start + share(all.end - all.start)
}

/// The share of a count that belongs to the cases that are run.
///
/// # Panics
/// If `TAMIS_SEEDS` is set to anything but `full` or `few`.
pub fn share<N: Div<Output = N> + From<u8>>(of_all: N) -> N {
    of_all / N::from(divisor())
}

/// A lower bound of a count over the cases that are run, given a bound over all cases. Small numbers of cases vary
/// more, so the result is half of their share.
///
/// # Panics
/// If `TAMIS_SEEDS` is set to anything but `full` or `few`.
pub fn least<N: Div<Output = N> + From<u8>>(of_all: N) -> N {
    if is_full() {
        of_all
    } else {
        of_all / N::from(2 * divisor())
    }
}

/// The step through a list of so many cases that meets their share, and at least one.
///
/// # Panics
/// If `TAMIS_SEEDS` is set to anything but `full` or `few`.
pub fn step(cases: usize) -> usize {
    cases / share(cases).max(1)
}

/// The step through a list of cases that all belong to a full run: `step`, or 1.
///
/// Cases from loops repeat their kinds with the number of a loop's rounds. A step without a common divisor meets each
/// kind in turn: 5 for loops of 2, 3, 4, 7, 8 or 16 rounds.
///
/// # Panics
/// If `TAMIS_SEEDS` is set to anything but `full` or `few`.
pub fn every(step: usize) -> usize {
    if is_full() { 1 } else { step }
}

/// Whether all cases are tried.
///
/// # Panics
/// If `TAMIS_SEEDS` is set to anything but `full` or `few`.
pub fn is_full() -> bool {
    divisor() == 1
}

/// The number of cases of a test that leaves out none except on emulated processors, where it has a 64th of them.
///
/// # Panics
/// If `TAMIS_SEEDS` is set to anything but `full` or `few`.
pub fn unless_emulated(all: usize) -> usize {
    match divisor() {
        FEW => all.div_ceil(FEW.into()),
        _ => all,
    }
}

/// The divisor for emulated processors.
const FEW: u8 = 64;

/// The divisor of the number of all cases.
fn divisor() -> u8 {
    match env::var("TAMIS_SEEDS").as_deref() {
        Err(_) => 8,
        Ok("full") => 1,
        Ok("few") => FEW,
        Ok(other) => panic!("TAMIS_SEEDS is `{other}`; write `full` or `few`, or leave it out"),
    }
}
