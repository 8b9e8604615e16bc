//! The tokens of C, as far as initialisers need them: comments and preprocessor lines are gone.

use tamis_diag::{SourceId, Span};

use super::span;

/// A token with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) text: &'t str,
    pub(super) kind: Kind,
    pub(super) span: Span,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An identifier or keyword.
    Name,
    /// A number, with its suffix.
    Number,
    /// Anything else: an operator, one character or two.
    Mark,
}

/// All tokens of a text.
pub(super) fn tokens(text: &str, source: SourceId) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    let mut begins_line = true;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match first {
            '\n' => {
                begins_line = true;
                1
            }
            _ if first.is_whitespace() => first.len_utf8(),
            '#' if begins_line => directive_length(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ => {
                begins_line = false;
                let (kind, length) = token(rest, first);
                tokens.push(Token {
                    text: &rest[..length],
                    kind,
                    span: span(source, at, at + length),
                });
                length
            }
        };
        at += length;
    }
    tokens
}

/// A preprocessor line with those that a backslash joins to it.
fn directive_length(text: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        length += line.len();
        if !line.trim_end().ends_with('\\') {
            break;
        }
    }
    length
}

fn token(text: &str, first: char) -> (Kind, usize) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let word = || text.find(|c| !is_word(c)).unwrap_or(text.len());
    if first.is_ascii_digit() {
        (Kind::Number, word())
    } else if is_word(first) {
        (Kind::Name, word())
    } else if text.starts_with("<<") || text.starts_with(">>") {
        (Kind::Mark, 2)
    } else {
        (Kind::Mark, first.len_utf8())
    }
}
