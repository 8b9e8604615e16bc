//! From a text to lines of tokens.
//!
//! A backslash at the end of a line joins it with the next. The dialects differ in comments: for the compile tool
//! `#` begins a comment anywhere, and a backslash at its end still joins lines; for the library only a line that
//! begins with `#` is a comment, including the lines joined to it.

use tamis_diag::limits::MAX_TOKENS;
use tamis_diag::{Cursor, Diagnostic, SourceId, Span};

use super::Dialect;
use crate::code;
use crate::sink::Sink;

/// A word or symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Span,
}

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// `@include` and the like.
    Directive,
    /// A file: begins with `/` or `./`.
    Path,
    /// A number with an optional minus sign.
    Number,
    /// A name of a call, constant, action or argument, or a keyword.
    Name,
    /// One of [`SYMBOLS`].
    Symbol(&'static str),
}

/// Longer ones first.
const SYMBOLS: [&str; 21] = [
    "||", "&&", "==", "!=", "<=", ">=", ":", ";", ",", "~", "(", ")", "{", "}", "[", "]", "|", "&",
    "<", ">", "=",
];

/// Calls a function with the tokens of each non-empty line. A line with invalid characters is omitted. Returns the
/// place at which a text with too many tokens was cut.
pub(super) fn each_line(
    source: SourceId,
    text: &str,
    dialect: Dialect,
    sink: &mut Sink,
    take: &mut dyn FnMut(&[Token], &mut Sink),
) -> Option<Span> {
    let mut cursor = Cursor::new(source, text);
    let mut tokens = Vec::new();
    let mut count = 0;
    let mut is_broken = false;
    let mut is_comment = false;
    for line in text.split_inclusive('\n') {
        if sink.is_finished() {
            return None;
        }
        let content = line.trim_end_matches(['\r', '\n']);
        let continues = content.ends_with('\\');
        let content = content.strip_suffix('\\').unwrap_or(content);
        // For the library a comment continues on joined lines.
        is_comment |= dialect == Dialect::C && tokens.is_empty() && is_comment_line(content);
        let content = cursor.limited_to(content.len());
        if !is_comment && let Err(diagnostic) = add_tokens(content, dialect, &mut tokens) {
            sink.report(*diagnostic);
            is_broken = true;
        }
        cursor.take(line.len());
        if !continues {
            count += tokens.len();
            if count > MAX_TOKENS {
                return Some(cursor.span_from(cursor.at()));
            }
            if !tokens.is_empty() && !is_broken {
                take(&tokens, sink);
            }
            tokens.clear();
            (is_broken, is_comment) = (false, false);
        }
    }
    if !tokens.is_empty() && !is_broken {
        take(&tokens, sink);
    }
    None
}

fn is_comment_line(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

/// Adds the tokens of a line.
fn add_tokens(
    mut line: Cursor<'_>,
    dialect: Dialect,
    tokens: &mut Vec<Token>,
) -> Result<(), Box<Diagnostic>> {
    while let Some(first) = line.first() {
        let start = line.at();
        if first.is_whitespace() {
            line.take_char();
        } else if first == '#' {
            line.take_line();
            if dialect == Dialect::C && !tokens.is_empty() {
                return Err(Box::new(late_comment(line.span_from(start))));
            }
        } else {
            let kind = token(&mut line, first);
            let span = line.span_from(start);
            let kind = kind.ok_or_else(|| Box::new(unexpected(first, span)))?;
            tokens.push(Token { kind, span });
        }
    }
    Ok(())
}

fn unexpected(character: char, span: Span) -> Diagnostic {
    let message = format!("unexpected character `{}`", character.escape_default());
    Diagnostic::error(code::MINIJAIL_SYNTAX, message).label(span, "not a valid token")
}

fn late_comment(span: Span) -> Diagnostic {
    let message = "a comment at the end of a line";
    Diagnostic::error(code::MINIJAIL_NOT_IN_DIALECT, message)
        .label(span, "minijail's library treats this as part of the line")
        .help("put the comment on its own line")
}

/// Consumes the token that begins with `first`, or one character if there is none.
fn token(line: &mut Cursor<'_>, first: char) -> Option<TokenKind> {
    let second = line.rest().as_bytes().get(1);
    let kind = match first {
        '@' => TokenKind::Directive,
        '/' => TokenKind::Path,
        '.' if second == Some(&b'/') => TokenKind::Path,
        '-' if second.is_some_and(u8::is_ascii_digit) => TokenKind::Number,
        '0'..='9' => TokenKind::Number,
        'a'..='z' | 'A'..='Z' | '_' => TokenKind::Name,
        _ => {
            let symbol = line.take_symbol(&SYMBOLS);
            if symbol.is_none() {
                line.take_char();
            }
            return symbol.map(TokenKind::Symbol);
        }
    };
    line.take_char();
    match kind {
        TokenKind::Path => line.take_while(|c| !c.is_whitespace()),
        TokenKind::Number => line.take_while(is_word),
        _ => line.take_while(is_name),
    };
    Some(kind)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Names of actions contain hyphens, names of groups an `@`.
fn is_name(c: char) -> bool {
    is_word(c) || c == '-' || c == '@'
}
