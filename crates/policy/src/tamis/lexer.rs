//! From text to tokens.
//!
//! Blanks, line breaks and comments only separate tokens. The first token of a line has its indentation, which
//! error recovery uses. Invalid characters are reported here and become [`TokenKind::Broken`], which the parser
//! doesn't report again.

use tamis_diag::limits::{MAX_TOKENS, too_many_tokens};
use tamis_diag::{Cursor, Diagnostic, SourceId, Span};

use crate::code;
use crate::sink::Sink;

/// The kinds of tokens. The text of names and numbers is that of the span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// `read`, `AF_UNIX`, `kill-process`.
    Name,
    /// `@basic-io`.
    SetName,
    /// `42`, `0x2a`, a version such as `6.18`: begins with a digit, not necessarily a valid number.
    Number,
    /// `"file.tamis"`, quotes included.
    Text,
    /// An operator, bracket or comma, by its spelling.
    Symbol(&'static str),
    /// An invalid token, already reported.
    Broken,
    /// The end of the text.
    End,
}

/// A token with its span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    /// Its kind.
    pub(super) kind: TokenKind,
    /// Its span.
    pub(super) span: Span,
    /// The indentation in bytes, for the first token of a line.
    pub(super) indent: Option<usize>,
}

/// All symbols; a symbol precedes its own prefixes.
const SYMBOLS: [&str; 25] = [
    "&&", "||", "==", "!=", "<=", ">=", "<<", "..", "->", "<", ">", "&", "|", "!", "~", "-", "=",
    ",", "(", ")", "{", "}", "[", "]", ":",
];

/// The tokens of a source, terminated by [`TokenKind::End`].
pub(super) fn tokens(source: SourceId, text: &str, sink: &mut Sink) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut cursor = Cursor::new(source, text);
    let mut line_start = Some(0);
    while let Some(first) = cursor.first() {
        if first.is_whitespace() {
            cursor.take_char();
            if first == '\n' {
                line_start = Some(cursor.at());
            }
            continue;
        }
        if first == '#' {
            cursor.take_line();
            continue;
        }
        let start = cursor.at();
        if tokens.len() >= MAX_TOKENS {
            let diagnostic = Diagnostic::error(code::TAMIS_LIMIT, too_many_tokens());
            sink.stop(diagnostic.label(cursor.span_from(start), ""));
        }
        if sink.is_finished() {
            break;
        }
        let kind = token(&mut cursor, first);
        let span = cursor.span_from(start);
        if kind == TokenKind::Broken {
            sink.report(unexpected(first, span));
        }
        tokens.push(Token {
            kind,
            span,
            indent: line_start.take().map(|line| start - line),
        });
    }
    tokens.push(Token {
        kind: TokenKind::End,
        span: cursor.span_from(text.len()),
        indent: None,
    });
    tokens
}

/// Consumes the token that begins with `first`. An unterminated text is broken up to the end of its line, any other
/// invalid token for one character.
fn token(cursor: &mut Cursor<'_>, first: char) -> TokenKind {
    let second = cursor.rest().as_bytes().get(1);
    match first {
        'a'..='z' | 'A'..='Z' | '_' => {
            cursor.take(name_length(cursor.rest().as_bytes()));
            TokenKind::Name
        }
        '@' if second.is_some_and(|byte| is_word(*byte)) => {
            cursor.take(1 + name_length(&cursor.rest().as_bytes()[1..]));
            TokenKind::SetName
        }
        '0'..='9' => {
            cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
            while begins_fraction(cursor.rest().as_bytes()) {
                cursor.take_char();
                cursor.take_while(|c| c.is_ascii_digit());
            }
            TokenKind::Number
        }
        '"' => {
            cursor.take_char();
            cursor.take_while(|c| c != '"' && c != '\n');
            match cursor.take_symbol(&["\""]) {
                Some(_) => TokenKind::Text,
                None => TokenKind::Broken,
            }
        }
        _ => match cursor.take_symbol(&SYMBOLS) {
            Some(symbol) => TokenKind::Symbol(symbol),
            None => {
                cursor.take_char();
                TokenKind::Broken
            }
        },
    }
}

/// Whether a text continues a version: a single dot and a digit.
fn begins_fraction(bytes: &[u8]) -> bool {
    matches!(bytes, [b'.', digit, ..] if digit.is_ascii_digit())
}

/// The length of a name: words joined by single hyphens.
fn name_length(bytes: &[u8]) -> usize {
    let belongs = |at: usize| {
        is_word(bytes[at]) || bytes[at] == b'-' && bytes.get(at + 1).is_some_and(|b| is_word(*b))
    };
    (0..bytes.len())
        .find(|at| !belongs(*at))
        .unwrap_or(bytes.len())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn unexpected(character: char, span: Span) -> Diagnostic {
    if character == '"' {
        return Diagnostic::error(code::TAMIS_SYNTAX, "text without an end")
            .label(span, "")
            .help("close it with `\"` on the same line");
    }
    let message = format!("unexpected character `{}`", character.escape_default());
    Diagnostic::error(code::TAMIS_SYNTAX, message).label(span, "not a valid token")
}
