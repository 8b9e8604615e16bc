//! "Did you mean": the known name nearest to a misspelt one. Without the feature `excerpts` no name is near.

/// The largest edit distance of a suggestion, per typed character.
const MAX_EDITS_PER_CHAR: f64 = 0.34;

/// Longer words are not treated as misspelt names: comparing them with every name would be slow.
const MAX_TYPED_CHARS: usize = 64;

/// The candidate nearest to `typed`, if one is near enough to be a misspelling of it.
///
/// Of equally near candidates the first in alphabetical order is returned, so the result does not depend on the
/// order of the candidates.
///
/// ```
/// # #[cfg(feature = "excerpts")]
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
    let typed_letters = letters(&typed);
    candidates
        .into_iter()
        // Most names are too different for a cheap look already. An edit changes the length by one at most, and two
        // letters.
        .filter(|name| name.chars().count().abs_diff(typed_chars) <= max_edits)
        .filter(|name| (letters(name) ^ typed_letters).count_ones() as usize <= 2 * max_edits)
        .filter_map(|name| Some((edits(&typed, &name.to_ascii_lowercase())?, name)))
        .filter(|(edits, _)| *edits <= max_edits)
        .min()
        .map(|(_, name)| name)
}

/// The edits from one name to another: characters inserted, deleted, replaced, or swapped with a neighbour.
#[cfg(feature = "excerpts")]
fn edits(one: &str, other: &str) -> Option<usize> {
    Some(strsim::osa_distance(one, other))
}

#[cfg(not(feature = "excerpts"))]
fn edits(_: &str, _: &str) -> Option<usize> {
    None
}

/// The characters of a name as a set of bits, in which some share one.
fn letters(name: &str) -> u64 {
    name.chars().fold(0, |set, c| {
        set | 1 << (u32::from(c.to_ascii_lowercase()) & 63)
    })
}

/// The same for names with a common prefix, such as `SCMP_ACT_`. The prefix does not distinguish them, so it
/// is left out of the comparison if the typed name has it too.
///
/// ```
/// let known = ["SCMP_ACT_ALLOW", "SCMP_ACT_LOG"];
/// let near = tamis_diag::suggest::nearest_after_prefix("SCMP_ACT_ALOW", &known);
/// # #[cfg(feature = "excerpts")]
/// assert_eq!(near, Some("SCMP_ACT_ALLOW"));
/// ```
pub fn nearest_after_prefix<'k>(typed: &str, known: &[&'k str]) -> Option<&'k str> {
    let first = known.first()?;
    let shared = first
        .bytes()
        .enumerate()
        .take_while(|(at, byte)| {
            known
                .iter()
                .all(|name| name.as_bytes().get(*at) == Some(byte))
        })
        .count();
    let Some(rest) = typed.strip_prefix(&first[..shared]) else {
        return nearest(typed, known.iter().copied());
    };
    let near = nearest(rest, known.iter().map(|name| &name[shared..]))?;
    known.iter().copied().find(|name| &name[shared..] == near)
}

#[cfg(all(test, feature = "excerpts"))]
mod tests {
    use super::*;

    /// All names at a distance of up to two edits are as near as they would be without the cheap look.
    #[test]
    fn no_near_name_is_passed_over() {
        let name = "sched_setattr";
        for at in 0..name.len() {
            let (before, after) = name.split_at(at);
            let typed = [
                format!("{before}Q{after}"),
                format!("{before}{}", &after[1..]),
                format!("{before}z{}", &after[1..]),
                format!("{before}zy{}", &after[1..]),
            ];
            for typed in typed {
                assert_eq!(nearest(&typed, ["read", name]), Some(name), "{typed}");
            }
        }
    }
}
