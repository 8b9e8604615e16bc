//! Reduction of a policy or program that shows a failure.
//!
//! The caller defines the failure by a function. The result is a fixed point: no candidate is smaller and still
//! fails. The candidates and their order depend on the input alone.
//!
//! Texts are reduced without a grammar: nearly all policy languages have lines, brackets, lists with commas, and
//! operators, and a candidate that does not parse does not show the failure. So no language needs a reducer of its
//! own.

mod program;
mod text;

pub use program::program;
pub use text::text;

use std::ops::Range;

/// Up to this length, sequences of every length are tried at every place.
const MAX_SHORT: usize = 4;

/// Removes sequences of a list, long ones first, if `without` accepts the rest and has shortened the list. `len` is
/// called again each time. Returns whether anything was removed.
fn leave_out<T>(
    subject: &mut T,
    len: impl Fn(&T) -> usize,
    mut without: impl FnMut(&mut T, Range<usize>) -> bool,
) -> bool {
    let mut is_changed = false;
    let mut size = len(subject);
    while size > 0 {
        let mut start = 0;
        while start < len(subject) {
            let end = (start + size).min(len(subject));
            if without(subject, start..end) {
                is_changed = true;
            } else {
                start += if size > MAX_SHORT { size } else { 1 };
            }
        }
        size = match size {
            0..=MAX_SHORT => size - 1,
            long => (long / 2).max(MAX_SHORT),
        };
    }
    is_changed
}
