//! Changes of a text by lines.

use std::borrow::Cow;

/// A change at a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The line, from 1: before which a text is inserted, or in which one is deleted.
    pub line: u32,
    /// The column of a deleted text in characters, from 1; 1 for an inserted line.
    pub column: u32,
    /// Insertion or deletion.
    pub kind: EditKind,
    /// The text: whole lines without the final newline, or the deleted part of a line or of several.
    pub text: String,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditKind {
    /// It is inserted as lines of its own, with the indentation of the line that follows.
    Insert,
    /// It is removed, with the comma of a list behind or before it.
    Delete,
}

/// The text after these changes.
pub(super) fn apply(text: &str, edits: &[Edit]) -> String {
    let mut lines: Vec<Cow<'_, str>> = text.lines().map(Cow::Borrowed).collect();
    let mut ordered: Vec<&Edit> = edits.iter().collect();
    ordered.sort_by_key(|edit| std::cmp::Reverse((edit.line, edit.column)));
    for edit in ordered {
        let at = (edit.line as usize - 1).min(lines.len());
        match edit.kind {
            EditKind::Insert => {
                let following = lines.get(at).map(AsRef::as_ref).unwrap_or_default();
                let text = following.trim_start();
                let indent = &following[..following.len() - text.len()];
                let own = edit.text.lines().map(|line| format!("{indent}{line}"));
                let own: Vec<Cow<'_, str>> = own.map(Cow::Owned).collect();
                lines.splice(at..at, own);
            }
            EditKind::Delete => delete(&mut lines, at, edit),
        }
    }
    lines.join("\n") + "\n"
}

/// The innermost object of a JSON text around a place outside of strings with braces.
pub(super) fn object_around(text: &str, at: usize) -> Option<&str> {
    let bytes = text.as_bytes();
    let mut closed = 0_usize;
    let start = bytes[..at].iter().rposition(|byte| match byte {
        b'{' if closed == 0 => true,
        b'{' => {
            closed -= 1;
            false
        }
        b'}' => {
            closed += 1;
            false
        }
        _ => false,
    })?;
    let mut depth = 0_usize;
    let length = bytes[start..].iter().position(|byte| {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    Some(&text[start..=start + length])
}

/// The deletion of a part of a text.
pub(super) fn deletion(text: &str, part: &str) -> Edit {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    let before = &text[..start];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    Edit {
        line: before.matches('\n').count() as u32 + 1,
        column: before[line_start..].chars().count() as u32 + 1,
        kind: EditKind::Delete,
        text: part.to_owned(),
    }
}

/// Removes a part of a line, and the comma that separated it from its neighbour. A line with nothing else is removed.
fn delete(lines: &mut Vec<Cow<'_, str>>, at: usize, edit: &Edit) {
    let Some(line) = lines.get(at).cloned() else {
        return;
    };
    let start = line
        .char_indices()
        .nth(edit.column as usize - 1)
        .map_or(line.len(), |(start, _)| start);
    // A deleted part of several lines is one of its first line, which the others are joined to.
    let further = edit.text.matches('\n').count();
    let end = (at + further).min(lines.len() - 1);
    let joined = lines[at..=end].join("\n");
    let Some(rest) = joined[start..].strip_prefix(edit.text.as_str()) else {
        return;
    };
    let before = line[..start].to_owned();
    lines.drain(at + 1..=end);
    let (after, had_comma) = match rest.trim_start().strip_prefix(',') {
        Some(after) => (after.trim_start().to_owned(), true),
        None => (rest.to_owned(), false),
    };
    let left = format!("{before}{after}");
    match left.trim().is_empty() {
        true => drop(lines.remove(at)),
        false => lines[at] = Cow::Owned(left),
    }
    if !had_comma {
        remove_comma_before(lines, at, &before);
    }
}

/// Removes the comma behind the last text before a place, if there is one.
fn remove_comma_before(lines: &mut [Cow<'_, str>], at: usize, before: &str) {
    if let Some(kept) = before.trim_end().strip_suffix(',') {
        let rest = &lines[at][before.len()..];
        lines[at] = Cow::Owned(format!("{kept}{rest}"));
        return;
    }
    if !before.trim().is_empty() {
        return;
    }
    if let Some(line) = lines[..at]
        .iter_mut()
        .rev()
        .find(|line| !line.trim().is_empty())
        && let Some(kept) = line.trim_end().strip_suffix(',')
    {
        *line = Cow::Owned(kept.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deleted(text: &str, line: u32, column: u32, part: &str) -> String {
        let edit = Edit {
            line,
            column,
            kind: EditKind::Delete,
            text: part.to_owned(),
        };
        apply(text, &[edit])
    }

    #[test]
    fn an_element_goes_with_its_comma() {
        let list = "[\n  \"a\",\n  \"b\",\n  \"c\"\n]";
        assert_eq!(deleted(list, 2, 3, "\"a\""), "[\n  \"b\",\n  \"c\"\n]\n");
        assert_eq!(deleted(list, 4, 3, "\"c\""), "[\n  \"a\",\n  \"b\"\n]\n");
        let line = "[\"a\", \"b\"]";
        assert_eq!(deleted(line, 1, 2, "\"a\""), "[\"b\"]\n");
        assert_eq!(deleted(line, 1, 7, "\"b\""), "[\"a\"]\n");
        assert_eq!(deleted("[\"a\"]", 1, 2, "\"a\""), "[]\n");
    }

    #[test]
    fn a_part_of_several_lines_goes_with_its_comma() {
        let list = "[\n  {\n    1\n  },\n  2\n]";
        assert_eq!(deleted(list, 2, 3, "{\n    1\n  }"), "[\n  2\n]\n");
        let last = "[\n  2,\n  {\n    1\n  }\n]";
        assert_eq!(deleted(last, 3, 3, "{\n    1\n  }"), "[\n  2\n]\n");
        // Another text is left as it is.
        assert_eq!(deleted(list, 2, 3, "{\n    2\n  }"), format!("{list}\n"));
    }

    #[test]
    fn the_object_around_a_place_is_the_innermost() {
        let text = "[{\"args\": [{\"index\": 0}], \"names\": [\"a\"]}, {}]";
        let around = |part: &str| object_around(text, text.find(part).unwrap());
        assert_eq!(around("\"a\""), Some(&text[1..text.len() - 5]));
        assert_eq!(around("\"index\""), Some("{\"index\": 0}"));
        assert_eq!(object_around(text, 0), None);
        let edit = deletion(text, around("\"a\"").unwrap());
        assert_eq!(apply(text, &[edit]), "[{}]\n");
    }

    #[test]
    fn inserted_lines_have_the_indentation_of_the_next() {
        let edit = Edit {
            line: 2,
            column: 1,
            kind: EditKind::Insert,
            text: "x\ny".to_owned(),
        };
        assert_eq!(apply("a\n  b\n", &[edit]), "a\n  x\n  y\n  b\n");
    }
}
