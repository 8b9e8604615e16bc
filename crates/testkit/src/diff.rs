//! The difference between two texts, line by line, in the unified format.

use similar::TextDiff;

/// Unchanged lines shown around a change.
const CONTEXT_LINES: usize = 3;

/// The difference as text: missing lines after `-`, unexpected ones after `+`; empty if there is none. The end of the
/// last line doesn't matter.
///
/// ```
/// use tamis_testkit::diff::unified;
/// assert_eq!(unified("1\n2\n3\n", "1\ntwo\n3"), "@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n");
/// assert_eq!(unified("a\n", "a"), "");
/// ```
pub fn unified(expected: &str, actual: &str) -> String {
    let old: Vec<&str> = expected.lines().collect();
    let new: Vec<&str> = actual.lines().collect();
    let difference = TextDiff::from_slices(&old, &new);
    let mut unified = difference.unified_diff();
    unified.context_radius(CONTEXT_LINES).to_string()
}
