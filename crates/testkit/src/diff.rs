//! The difference between two texts, line by line, in the unified format.
//!
//! Lines are matched by a longest common subsequence, after common beginnings and ends are removed. The time is
//! quadratic in the rest, so long texts that differ a lot are shown as completely removed and added.

/// Unchanged lines shown around a change.
const CONTEXT_LINES: usize = 3;
/// The largest table of the longest common subsequence.
const MAX_CELLS: usize = 4_000_000;

/// The change of a line from the expected to the actual text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Same,
    Removed,
    Added,
}

/// The difference as text: missing lines after `-`, unexpected ones after `+`; empty if there is none.
pub fn unified(expected: &str, actual: &str) -> String {
    let old: Vec<&str> = expected.lines().collect();
    let new: Vec<&str> = actual.lines().collect();
    let script = script(&old, &new);
    let is_near_change = |index: usize| {
        let first = index.saturating_sub(CONTEXT_LINES);
        let last = (index + CONTEXT_LINES).min(script.len() - 1);
        let mut near = script[first..=last].iter();
        near.any(|(change, _)| *change != Change::Same)
    };
    let mut text = String::new();
    let (mut old_line, mut new_line) = (1, 1);
    let mut is_inside_hunk = false;
    for (index, (change, line)) in script.iter().enumerate() {
        let is_shown = is_near_change(index);
        if is_shown && !is_inside_hunk {
            text += &format!("@@ -{old_line} +{new_line} @@\n");
        }
        is_inside_hunk = is_shown;
        if is_shown {
            let mark = match change {
                Change::Same => ' ',
                Change::Removed => '-',
                Change::Added => '+',
            };
            text += &format!("{mark}{line}\n");
        }
        old_line += usize::from(*change != Change::Added);
        new_line += usize::from(*change != Change::Removed);
    }
    text
}

/// All lines of both texts in order, each with its change.
fn script<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Change, &'a str)> {
    let shorter = old.len().min(new.len());
    let is_same_at = |index: &usize| old[*index] == new[*index];
    let prefix = (0..shorter).take_while(is_same_at).count();
    let is_same_from_end = |back: &usize| old[old.len() - back] == new[new.len() - back];
    let suffix = (1..=shorter - prefix).take_while(is_same_from_end).count();

    let (old_middle, new_middle) = (
        &old[prefix..old.len() - suffix],
        &new[prefix..new.len() - suffix],
    );
    let same = |line: &&'a str| (Change::Same, *line);
    let mut script: Vec<_> = old[..prefix].iter().map(same).collect();
    script.extend(middle_script(old_middle, new_middle));
    script.extend(old[old.len() - suffix..].iter().map(same));
    script
}

fn middle_script<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Change, &'a str)> {
    let lengths = common_lengths(old, new);
    let (mut i, mut j) = (0, 0);
    let mut script = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            script.push((Change::Same, old[i]));
            i += 1;
            j += 1;
        } else if j == new.len() || i < old.len() && lengths(i + 1, j) >= lengths(i, j + 1) {
            script.push((Change::Removed, old[i]));
            i += 1;
        } else {
            script.push((Change::Added, new[j]));
            j += 1;
        }
    }
    script
}

/// The length of the longest common subsequence of `old[i..]` and `new[j..]`, for all `i` and `j`; zero if the table
/// would be too large.
fn common_lengths(old: &[&str], new: &[&str]) -> impl Fn(usize, usize) -> u32 {
    let width = new.len() + 1;
    let cells = (old.len() + 1) * width;
    let is_small = cells <= MAX_CELLS;
    let mut table = vec![0_u32; if is_small { cells } else { 0 }];
    if is_small {
        for i in (0..old.len()).rev() {
            for j in (0..new.len()).rev() {
                table[i * width + j] = if old[i] == new[j] {
                    table[(i + 1) * width + j + 1] + 1
                } else {
                    table[(i + 1) * width + j].max(table[i * width + j + 1])
                };
            }
        }
    }
    move |i, j| table.get(i * width + j).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(unified("a\nb\n", "a\nb\n"), "");
        assert_eq!(unified("", ""), "");
    }

    #[test]
    fn a_changed_line_is_shown_with_its_neighbours() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n";
        let expected = "@@ -2 +2 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(unified(old, new), expected);
    }

    #[test]
    fn distant_changes_are_separate_hunks() {
        let old: String = (1..=40).map(|n| format!("{n}\n")).collect();
        let new = old.replacen("\n10\n", "\n", 1) + "41\n";
        let expected = "@@ -7 +7 @@\n 7\n 8\n 9\n-10\n 11\n 12\n 13\n\
                        @@ -38 +37 @@\n 38\n 39\n 40\n+41\n";
        assert_eq!(unified(&old, &new), expected);
    }

    #[test]
    fn texts_without_a_common_line_are_all_gone_and_all_new() {
        assert_eq!(unified("a\n", "b\nc\n"), "@@ -1 +1 @@\n-a\n+b\n+c\n");
        assert_eq!(unified("", "b\n"), "@@ -1 +1 @@\n+b\n");
    }
}
