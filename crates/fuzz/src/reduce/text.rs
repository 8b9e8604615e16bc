//! Reduction of texts: lines, elements of lists, brackets, words and numbers.

use std::ops::Range;

use super::leave_out;

/// The smallest text found for which `fails` holds, as it does for the given one. Each candidate is shorter, or has
/// the same length and sorts earlier.
///
/// ```
/// let text = "default deny\nallow read, write, ioctl(cmd in {0x5401, 0x5413})\n";
/// let small = tamis_fuzz::reduce::text(text, &mut |text| text.contains("0x5413"));
/// assert_eq!(small, "0x5413\n");
/// ```
pub fn text(given: &str, fails: &mut impl FnMut(&str) -> bool) -> String {
    let mut current = given.to_owned();
    loop {
        let mut is_changed = cut_lists(&mut current, fails);
        is_changed |= cut_brackets(&mut current, fails);
        is_changed |= cut_words(&mut current, fails);
        is_changed |= lower_numbers(&mut current, fails);
        if !is_changed {
            return current;
        }
    }
}

/// Accepts a smaller text if it still fails.
fn try_text(current: &mut String, candidate: String, fails: &mut impl FnMut(&str) -> bool) -> bool {
    let is_smaller = (candidate.len(), &candidate) < (current.len(), &*current);
    let takes = is_smaller && fails(&candidate);
    if takes {
        *current = candidate;
    }
    takes
}

/// The text without some elements of a list and without the separators next to them.
fn without(text: &str, list: &[Range<usize>], gone: Range<usize>) -> String {
    let cut = match list.get(gone.end) {
        Some(next) => list[gone.start].start..next.start,
        None => {
            let before = gone.start.checked_sub(1).map(|before| list[before].end);
            before.unwrap_or(list[gone.start].start)..list[gone.end - 1].end
        }
    };
    [&text[..cut.start], &text[cut.end..]].concat()
}

/// Removes elements of a list that is located again after each change.
fn cut(
    current: &mut String,
    list: impl Fn(&str) -> Vec<Range<usize>>,
    fails: &mut impl FnMut(&str) -> bool,
) -> bool {
    leave_out(
        current,
        |text| list(text).len(),
        |text, gone| {
            let candidate = without(text, &list(text), gone);
            try_text(text, candidate, fails)
        },
    )
}

fn cut_lists(current: &mut String, fails: &mut impl FnMut(&str) -> bool) -> bool {
    let mut is_changed = cut(current, lines, fails);
    let mut number = 0;
    while number < Structure::parse(current).lists.len() {
        let list = |text: &str| {
            let lists = Structure::parse(text).lists;
            lists.into_iter().nth(number).unwrap_or_default()
        };
        is_changed |= cut(current, list, fails);
        number += 1;
    }
    is_changed
}

/// Removes brackets with their content, or the brackets alone.
fn cut_brackets(current: &mut String, fails: &mut impl FnMut(&str) -> bool) -> bool {
    let mut is_changed = false;
    let mut number = 0;
    while let Some((all, inside)) = Structure::parse(current).brackets.into_iter().nth(number) {
        let (before, after) = (&current[..all.start], &current[all.end..]);
        let candidates = [
            [before, after].concat(),
            [before, &current[inside], after].concat(),
        ];
        let mut candidates = candidates.into_iter();
        if candidates.any(|candidate| try_text(current, candidate, fails)) {
            is_changed = true;
        } else {
            number += 1;
        }
    }
    is_changed
}

fn cut_words(current: &mut String, fails: &mut impl FnMut(&str) -> bool) -> bool {
    let words = |text: &str| {
        let tokens = tokens(text).into_iter();
        tokens.map(|token| token.place).collect::<Vec<_>>()
    };
    cut(current, words, fails)
}

/// Replaces numbers by 0 or 1.
fn lower_numbers(current: &mut String, fails: &mut impl FnMut(&str) -> bool) -> bool {
    let mut is_changed = false;
    let mut number = 0;
    while let Some(Token { place, .. }) = tokens(current).into_iter().nth(number) {
        number += 1;
        if !current[place.clone()].starts_with(|first: char| first.is_ascii_digit()) {
            continue;
        }
        let (before, after) = (&current[..place.start], &current[place.end..]);
        let candidates = ["0", "1"].map(|small| [before, small, after].concat());
        let mut candidates = candidates.into_iter();
        is_changed |= candidates.any(|candidate| try_text(current, candidate, fails));
    }
    is_changed
}

fn lines(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        let place = start..start + line.len();
        start = place.end;
        place
    });
    lines.collect()
}

/// A word, a string or an operator.
struct Token {
    place: Range<usize>,
    kind: TokenKind,
}

/// The role of a token in the structure of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Open,
    Close,
    /// It separates elements of a list; different separators form different lists.
    Separator(u8),
    Other,
}

/// The separators of elements.
const SEPARATORS: [&str; 6] = [",", ";", "||", "&&", "|", "&"];

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let is_word = |c: char| c.is_alphanumeric() || "_.@$".contains(c);
        let separator = SEPARATORS.iter().position(|sign| rest.starts_with(sign));
        let (len, kind) = match (first, separator) {
            (_, Some(index)) => (SEPARATORS[index].len(), TokenKind::Separator(index as u8)),
            ('(' | '[' | '{', _) => (1, TokenKind::Open),
            (')' | ']' | '}', _) => (1, TokenKind::Close),
            ('"', _) => (string_len(rest), TokenKind::Other),
            _ if is_word(first) => (
                rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                TokenKind::Other,
            ),
            _ => (first.len_utf8(), TokenKind::Other),
        };
        if !first.is_whitespace() {
            let place = at..at + len;
            tokens.push(Token { place, kind });
        }
        at += len;
    }
    tokens
}

/// The length of the string at the beginning of a text, up to the end of the line if it is not closed.
fn string_len(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return at,
            '"' if !is_escaped => return at + 1,
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    text.len()
}

/// The brackets of a text and the lists in them.
#[derive(Default)]
struct Structure {
    /// Elements of lists, within one pair of brackets or on one line outside of all brackets.
    lists: Vec<Vec<Range<usize>>>,
    /// Pairs of brackets with their content, and the content alone.
    brackets: Vec<(Range<usize>, Range<usize>)>,
}

/// An open bracket: its beginning, the beginning of its content, and its separators.
struct Frame {
    start: usize,
    inside: usize,
    separators: Vec<(u8, Range<usize>)>,
}

impl Structure {
    fn parse(text: &str) -> Structure {
        let mut structure = Structure::default();
        let outermost = |start| Frame {
            start,
            inside: start,
            separators: Vec::new(),
        };
        let mut open = vec![outermost(0)];
        let mut end = 0;
        for Token { place, kind } in tokens(text) {
            if let [line] = open.as_slice()
                && text[end..place.start].contains('\n')
            {
                structure.add_lists(text, line, end);
                open = vec![outermost(place.start)];
            }
            end = place.end;
            match kind {
                TokenKind::Open => open.push(Frame {
                    inside: place.end,
                    ..outermost(place.start)
                }),
                TokenKind::Close if open.len() > 1 => {
                    if let Some(frame) = open.pop() {
                        structure.add_lists(text, &frame, place.start);
                        let all = frame.start..place.end;
                        structure.brackets.push((all, frame.inside..place.start));
                    }
                }
                TokenKind::Separator(sign) => {
                    if let Some(frame) = open.last_mut() {
                        frame.separators.push((sign, place));
                    }
                }
                TokenKind::Close | TokenKind::Other => {}
            }
        }
        if let Some(line) = open.first() {
            structure.add_lists(text, line, end);
        }
        // Outer lists come first: removing their elements also removes inner ones.
        structure.lists.sort_by_key(|list| list[0].start);
        structure.brackets.sort_by_key(|(all, _)| all.start);
        structure
    }

    /// Adds the lists of a frame that ends at `end`, one for each separator.
    fn add_lists(&mut self, text: &str, frame: &Frame, end: usize) {
        for sign in 0..SEPARATORS.len() as u8 {
            let mut list = Vec::new();
            let mut start = frame.inside;
            let own = frame.separators.iter().filter(|(other, _)| *other == sign);
            for (_, place) in own {
                list.push(trimmed(text, start..place.start));
                start = place.end;
            }
            if !list.is_empty() {
                list.push(trimmed(text, start..end));
                self.lists.push(list);
            }
        }
    }
}

/// A range without the white space at its ends.
fn trimmed(text: &str, place: Range<usize>) -> Range<usize> {
    let part = &text[place.clone()];
    let start = place.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_go_with_their_separators() {
        let text = "allow a, b(x in {1, 2} || y)\nkill c\n";
        let structure = Structure::parse(text);
        let lists: Vec<Vec<&str>> = structure
            .lists
            .iter()
            .map(|list| list.iter().map(|place| &text[place.clone()]).collect())
            .collect();
        let expected = [
            vec!["allow a", "b(x in {1, 2} || y)"],
            vec!["x in {1, 2}", "y"],
            vec!["1", "2"],
        ];
        assert_eq!(lists, expected);
        assert_eq!(
            without(text, &structure.lists[0], 1..2),
            "allow a\nkill c\n"
        );
        assert_eq!(
            without(text, &structure.lists[2], 0..1),
            text.replace("1, ", "")
        );
    }

    #[test]
    fn json_stays_json_while_members_are_cut() {
        let text = r#"{"a": [1, {"b": "},"}, 3], "c": {"d": 77, "e": 5}}"#;
        let is_json = |text: &str| {
            // Brackets are balanced, and no comma is left over.
            let depth = tokens(text)
                .iter()
                .try_fold(0_u32, |depth, token| match token.kind {
                    TokenKind::Open => Some(depth + 1),
                    TokenKind::Close => depth.checked_sub(1),
                    _ => Some(depth),
                });
            depth == Some(0) && !text.contains(",]") && !text.contains("[,")
        };
        let small = super::text(text, &mut |text| {
            is_json(text) && text.starts_with('{') && text.contains("\"d\": ")
        });
        assert_eq!(small, r#"{"d": }"#);
    }
}
