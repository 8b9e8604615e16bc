//! From text to tokens.
//!
//! Blanks, line breaks and comments only separate tokens; a token remembers whether it is the first of
//! its line, which error recovery uses. A character that no token begins with is reported and skipped.

use tamis_diag::{Diagnostic, SourceId, Span, code};

use super::sink::Sink;

/// What a token is. The text of names and numbers is that of the span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// `read`, `AF_UNIX`, `kill-process`.
    Name,
    /// `@basic-io`.
    SetName,
    /// `42`, `0x2a`: begins with a digit, not necessarily a valid number.
    Number,
    /// `"file.tamis"`, quotes included.
    Text,
    /// An operator, bracket or comma, by its spelling.
    Symbol(&'static str),
    /// After the last token.
    End,
}

/// A token with its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    /// What it is.
    pub(super) kind: TokenKind,
    /// Where it is.
    pub(super) span: Span,
    /// Whether it is the first of its line.
    pub(super) starts_line: bool,
}

/// Every symbol; a longer one stands before its own beginnings.
const SYMBOLS: [&str; 23] = [
    "&&", "||", "==", "!=", "<=", ">=", "<<", "..", "<", ">", "&", "|", "!", "~", "-", "=", ",",
    "(", ")", "{", "}", "[", "]",
];

/// The tokens of a source, the last of which is [`TokenKind::End`].
pub(super) fn tokens(source: SourceId, text: &str, sink: &mut Sink) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut starts_line = true;
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let start = at;
        let span = |end: usize| Span {
            source,
            start: start as u32,
            end: end as u32,
        };
        if first == '\n' {
            starts_line = true;
        }
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        if first == '#' {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        let Some((kind, length)) = token(rest) else {
            at += first.len_utf8();
            sink.report(unexpected(first, span(at)));
            continue;
        };
        at += length;
        tokens.push(Token {
            kind,
            span: span(at),
            starts_line,
        });
        starts_line = false;
    }
    let end = text.len() as u32;
    tokens.push(Token {
        kind: TokenKind::End,
        span: Span {
            source,
            start: end,
            end,
        },
        starts_line: true,
    });
    tokens
}

/// The token at the beginning of a text that begins with neither blank nor comment, and its length.
fn token(text: &str) -> Option<(TokenKind, usize)> {
    let bytes = text.as_bytes();
    match bytes[0] {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => Some((TokenKind::Name, name_length(bytes))),
        b'@' if bytes.get(1).is_some_and(|byte| is_word(*byte)) => {
            Some((TokenKind::SetName, 1 + name_length(&bytes[1..])))
        }
        b'0'..=b'9' => {
            let length = bytes.iter().take_while(|byte| is_word(**byte)).count();
            Some((TokenKind::Number, length))
        }
        b'"' => {
            let inside = text[1..].find(['"', '\n'])?;
            (bytes[1 + inside] == b'"').then_some((TokenKind::Text, inside + 2))
        }
        _ => SYMBOLS
            .into_iter()
            .find(|symbol| text.starts_with(symbol))
            .map(|symbol| (TokenKind::Symbol(symbol), symbol.len())),
    }
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
    let diagnostic = Diagnostic::error(
        code::TAMIS_SYNTAX,
        format!("unexpected character `{}`", character.escape_default()),
    );
    if character == '"' {
        diagnostic
            .label(span, "this text has no end")
            .help("close it with `\"` on the same line")
    } else {
        diagnostic.label(span, "no word or operator begins so")
    }
}
