//! "Did you mean": the known name nearest to a misspelt one.

/// How different a name may be from what was typed, in edits per character typed.
const MAX_EDITS_PER_CHAR: f64 = 0.34;

/// Longer words are no misspelt names; comparing them with every name would take long.
const MAX_TYPED_CHARS: usize = 64;

/// The candidate nearest to `typed`, if one is near enough to be a misspelling of it.
///
/// Of equally near candidates the first in alphabetical order is taken, so the answer does not
/// depend on the order of the candidates.
///
/// ```
/// assert_eq!(tamis_diag::suggest::nearest("raed", ["write", "read"]), Some("read"));
/// assert_eq!(tamis_diag::suggest::nearest("xyzzy", ["write", "read"]), None);
/// ```
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed_chars = typed.chars().count();
    if typed_chars > MAX_TYPED_CHARS {
        return None;
    }
    let max_edits = ((typed_chars as f64 * MAX_EDITS_PER_CHAR) as usize).max(1);
    let typed = typed.to_ascii_lowercase();
    candidates
        .into_iter()
        .map(|name| {
            (
                strsim::osa_distance(&typed, &name.to_ascii_lowercase()),
                name,
            )
        })
        .filter(|(edits, _)| *edits <= max_edits)
        .min()
        .map(|(_, name)| name)
}
