//! From a text to lines of tokens.
//!
//! A backslash at the end of a line joins it with the next. The dialects differ in comments: to the
//! compile tool `#` begins one anywhere and the backslash at its end still counts; to the library only
//! a line that begins with `#` is a comment, with all that is joined to it.

use tamis_diag::{Diagnostic, SourceId, Span, code};

use super::Dialect;
use crate::sink::Sink;

/// A word or symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Span,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// `@include` and the like.
    Directive,
    /// A file: begins with `/` or `./`.
    Path,
    /// A number, perhaps negative.
    Number,
    /// A name of a call, constant, action or argument, or a keyword.
    Name,
    /// One of [`SYMBOLS`].
    Symbol(&'static str),
}

/// Longer ones first.
const SYMBOLS: [&str; 20] = [
    "||", "&&", "==", "!=", "<=", ">=", ":", ";", ",", "~", "(", ")", "{", "}", "[", "]", "|", "&",
    "<", ">",
];
const EQUAL: &str = "=";

/// The lines of a text that have tokens. A line with something that is none is left out.
pub(super) fn lines(
    source: SourceId,
    text: &str,
    dialect: Dialect,
    sink: &mut Sink,
) -> Vec<Vec<Token>> {
    let mut lexer = Lexer {
        source,
        text,
        dialect,
    };
    let mut lines = Vec::new();
    let mut tokens = Vec::new();
    let mut is_broken = false;
    let mut is_comment = false;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\r', '\n']);
        let continues = content.ends_with('\\');
        let content = content.strip_suffix('\\').unwrap_or(content);
        // To the library a comment goes on with the line.
        is_comment |= dialect == Dialect::C && tokens.is_empty() && is_comment_line(content);
        if !is_comment && let Err(diagnostic) = lexer.line(start, content, &mut tokens) {
            sink.report(*diagnostic);
            is_broken = true;
        }
        start += line.len();
        if !continues {
            let line = std::mem::take(&mut tokens);
            if !line.is_empty() && !is_broken {
                lines.push(line);
            }
            (is_broken, is_comment) = (false, false);
        }
    }
    if !tokens.is_empty() && !is_broken {
        lines.push(tokens);
    }
    lines
}

fn is_comment_line(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

struct Lexer<'t> {
    source: SourceId,
    text: &'t str,
    dialect: Dialect,
}

impl Lexer<'_> {
    /// Adds the tokens of a line that begins at `start`.
    fn line(
        &mut self,
        start: usize,
        line: &str,
        tokens: &mut Vec<Token>,
    ) -> Result<(), Box<Diagnostic>> {
        let end = start + line.len();
        let mut at = start;
        while at < end {
            let rest = &self.text[at..end];
            let first = rest.chars().next().unwrap_or(' ');
            if first.is_whitespace() {
                at += first.len_utf8();
                continue;
            }
            if first == '#' {
                if self.dialect == Dialect::C && !tokens.is_empty() {
                    return Err(Box::new(self.late_comment(at, end)));
                }
                return Ok(());
            }
            let Some((kind, length)) = token(rest) else {
                return Err(Box::new(self.unexpected(at, first)));
            };
            tokens.push(Token {
                kind,
                span: self.span(at, at + length),
            });
            at += length;
        }
        Ok(())
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span {
            source: self.source,
            start: start as u32,
            end: end as u32,
        }
    }

    fn unexpected(&self, at: usize, character: char) -> Diagnostic {
        let message = format!("unexpected character `{}`", character.escape_default());
        let span = self.span(at, at + character.len_utf8());
        Diagnostic::error(code::MINIJAIL_SYNTAX, message).label(span, "not a valid token")
    }

    fn late_comment(&self, start: usize, end: usize) -> Diagnostic {
        let message = "a comment at the end of a line";
        Diagnostic::error(code::MINIJAIL_NOT_IN_DIALECT, message)
            .label(
                self.span(start, end),
                "minijail's library treats this as part of the line",
            )
            .help("put the comment on its own line")
    }
}

/// The token at the beginning of a text that begins with neither blank nor comment, and its length.
fn token(text: &str) -> Option<(TokenKind, usize)> {
    let bytes = text.as_bytes();
    let length_of = |belongs: fn(u8) -> bool, from: usize| {
        let rest = bytes[from..].iter().take_while(|byte| belongs(**byte));
        from + rest.count()
    };
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    match bytes[0] {
        b'@' => Some((TokenKind::Directive, length_of(is_name, 1))),
        b'/' => Some((TokenKind::Path, path_length(text))),
        b'.' if bytes.get(1) == Some(&b'/') => Some((TokenKind::Path, path_length(text))),
        b'-' if is_digit(1) => Some((TokenKind::Number, length_of(is_word, 1))),
        b'0'..=b'9' => Some((TokenKind::Number, length_of(is_word, 0))),
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => Some((TokenKind::Name, length_of(is_name, 0))),
        _ => SYMBOLS
            .into_iter()
            .chain([EQUAL])
            .find(|symbol| text.starts_with(symbol))
            .map(|symbol| (TokenKind::Symbol(symbol), symbol.len())),
    }
}

fn path_length(text: &str) -> usize {
    text.find(char::is_whitespace).unwrap_or(text.len())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Names of actions have hyphens, those of groups an `@`.
fn is_name(byte: u8) -> bool {
    is_word(byte) || byte == b'-' || byte == b'@'
}
