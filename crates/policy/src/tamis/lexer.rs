//! From text to tokens.
//!
//! Blanks, line breaks and comments only separate tokens; the first token of a line remembers how far it
//! is indented, which error recovery uses. What is no token is reported here and becomes
//! [`TokenKind::Broken`], about which the parser need not complain again.

use tamis_diag::{Diagnostic, SourceId, Span, code};

use crate::sink::Sink;

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
    /// Not a token; reported.
    Broken,
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
    /// If it is the first of its line, how many bytes stand before it.
    pub(super) indent: Option<usize>,
}

/// Every symbol; a longer one stands before its own beginnings.
const SYMBOLS: [&str; 24] = [
    "&&", "||", "==", "!=", "<=", ">=", "<<", "..", "<", ">", "&", "|", "!", "~", "-", "=", ",",
    "(", ")", "{", "}", "[", "]", ":",
];

/// The tokens of a source, the last of which is [`TokenKind::End`].
pub(super) fn tokens(source: SourceId, text: &str, sink: &mut Sink) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut line_start = Some(0);
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let start = at;
        if first.is_whitespace() || first == '#' {
            at += match first {
                '#' => rest.find('\n').unwrap_or(rest.len()),
                _ => first.len_utf8(),
            };
            if first == '\n' {
                line_start = Some(at);
            }
            continue;
        }
        let (kind, length) =
            token(rest).unwrap_or_else(|| (TokenKind::Broken, broken_length(rest)));
        at += length;
        let span = Span {
            source,
            start: start as u32,
            end: at as u32,
        };
        if kind == TokenKind::Broken {
            sink.report(unexpected(first, span));
        }
        tokens.push(Token {
            kind,
            span,
            indent: line_start.take().map(|line| start - line),
        });
    }
    let end = text.len() as u32;
    tokens.push(Token {
        kind: TokenKind::End,
        span: Span {
            source,
            start: end,
            end,
        },
        indent: None,
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

/// How much to skip of what is no token: a text without end up to the end of its line, else one
/// character.
fn broken_length(text: &str) -> usize {
    match text.chars().next() {
        Some('"') => text.find('\n').unwrap_or(text.len()),
        Some(character) => character.len_utf8(),
        None => 0,
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
    if character == '"' {
        return Diagnostic::error(code::TAMIS_SYNTAX, "text without an end")
            .label(span, "")
            .help("close it with `\"` on the same line");
    }
    let message = format!("unexpected character `{}`", character.escape_default());
    Diagnostic::error(code::TAMIS_SYNTAX, message).label(span, "not a valid token")
}
