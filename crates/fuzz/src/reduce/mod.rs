//! Reduction of a policy or program that shows a failure.
//!
//! The caller defines the failure with a function. The result is a fixed point: no candidate is smaller and
//! still fails. The candidates and their order depend on the input alone.
//!
//! Texts are cut without a grammar: nearly all languages of policies have lines, brackets, lists with commas,
//! and operators in between, and what is cut wrongly doesn't parse, so it doesn't show the failure. So a
//! language needs no reducer of its own.

mod program;
mod text;

pub use program::program;
pub use text::text;

use std::ops::Range;

/// Up to this length, runs of every length are tried at every place.
const MAX_SHORT: usize = 4;

/// Leaves out runs of a list, long ones first, as long as `without` says that the rest still fails; then it has
/// shortened the list. `len` is asked anew each time. Says whether anything was left out.
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
