//! How many random cases a test tries: all of them where `TAMIS_SEEDS=full`, else a fifth.
//!
//! `.ci/run` sets the variable, so nothing is merged that has seen less. What a test expects of its cases together,
//! such as how many were refused, it states for all of them and takes the [`share`] or what is at [`least`] to be seen.

use std::env;
use std::ops::{Div, Range};

/// The part of all cases that is tried without the variable: one of so many.
const FEWER: u8 = 5;

/// The seeds to try, the first ones of `all`.
///
/// # Panics
/// If `TAMIS_SEEDS` is set to anything but `full`.
pub fn of(all: Range<u64>) -> Range<u64> {
    all.start..all.start + share(all.end - all.start)
}

/// The share of a count of cases that falls to those tried.
///
/// # Panics
/// If `TAMIS_SEEDS` is set to anything but `full`.
pub fn share<N: Div<Output = N> + From<u8>>(of_all: N) -> N {
    if is_full() {
        of_all
    } else {
        of_all / N::from(FEWER)
    }
}

/// A lower bound for what is counted among those tried, from one that holds for all cases. Few cases scatter more,
/// so it is half of their share.
///
/// # Panics
/// If `TAMIS_SEEDS` is set to anything but `full`.
pub fn least<N: Div<Output = N> + From<u8>>(of_all: N) -> N {
    if is_full() {
        of_all
    } else {
        of_all / N::from(2 * FEWER)
    }
}

fn is_full() -> bool {
    match env::var("TAMIS_SEEDS").as_deref() {
        Err(_) => false,
        Ok("full") => true,
        Ok(other) => panic!("TAMIS_SEEDS is `{other}`; write `full` or leave it out"),
    }
}
