//! The tokens of C that occur in initialisers, without comments and preprocessor lines.

use tamis_diag::limits::MAX_TOKENS;
use tamis_diag::{Cursor, SourceId, Span};

/// A token with its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) text: &'t str,
    pub(super) kind: TokenKind,
    pub(super) span: Span,
}

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// An identifier or keyword.
    Name,
    /// A number, with its suffix.
    Number,
    /// Anything else: an operator, one character or two.
    Mark,
}

/// All tokens of a text; a few more than [`MAX_TOKENS`] if there are more.
pub(super) fn tokens(text: &str, source: SourceId) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut cursor = Cursor::new(source, text);
    let mut begins_line = true;
    while let Some(first) = cursor.first()
        && tokens.len() <= MAX_TOKENS
    {
        match first {
            _ if first.is_whitespace() => {
                begins_line |= first == '\n';
                cursor.take_char();
            }
            '#' if begins_line => directive(&mut cursor),
            '/' if cursor.is_before("//") => {
                cursor.take_line();
            }
            '/' if cursor.is_before("/*") => {
                let length = cursor.rest().find("*/").map_or(usize::MAX, |end| end + 2);
                cursor.take(length);
            }
            _ => {
                begins_line = false;
                tokens.push(token(&mut cursor, first));
            }
        }
    }
    tokens
}

/// Consumes a preprocessor line, including lines joined to it by backslashes.
fn directive(cursor: &mut Cursor<'_>) {
    for line in cursor.rest().split_inclusive('\n') {
        cursor.take(line.len());
        if !line.trim_end().ends_with('\\') {
            break;
        }
    }
}

fn token<'t>(cursor: &mut Cursor<'t>, first: char) -> Token<'t> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let start = cursor.at();
    let (kind, text) = if first.is_ascii_digit() {
        (TokenKind::Number, cursor.take_while(is_word))
    } else if is_word(first) {
        (TokenKind::Name, cursor.take_while(is_word))
    } else if cursor.is_before("<<") || cursor.is_before(">>") {
        (TokenKind::Mark, cursor.take(2))
    } else {
        (TokenKind::Mark, cursor.take(first.len_utf8()))
    };
    Token {
        text,
        kind,
        span: cursor.span_from(start),
    }
}
