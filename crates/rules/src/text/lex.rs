//! Tokens of the ruleset text form.

use tamis_diag::{Diagnostic, SourceId, Span, code};

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A keyword, name or operand: letters, digits, `_`, `-` and inner dots.
    Word,
    /// An unsigned integer.
    Integer(u64),
    /// A quoted text, unescaped.
    Text(String),
    /// An operator or bracket.
    Punctuation,
    /// The end of a line that holds tokens.
    Newline,
}

/// A token with its place.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

/// Operators and brackets, longest first.
const PUNCTUATION: [&str; 16] = [
    "==", "!=", "<=", ">=", "..", "<", ">", "&", "{", "}", "(", ")", ",", ":", "@", "=",
];

/// Splits a text into tokens, of which the last, if any, is a newline; what is no token is reported
/// and skipped.
pub(super) fn lex(text: &str, source: SourceId) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut tokens: Vec<Token> = Vec::new();
    let mut diagnostics = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let first = rest.chars().next().unwrap_or('\n');
        let length = token_length(rest, first);
        let span = Span {
            source,
            start: at as u32,
            end: (at + length) as u32,
        };
        at += length;
        match token_kind(&rest[..length], first) {
            Ok(Some(Kind::Newline)) => {
                if tokens.last().is_some_and(|last| last.kind != Kind::Newline) {
                    tokens.push(Token {
                        kind: Kind::Newline,
                        span,
                    });
                }
            }
            Ok(Some(kind)) => tokens.push(Token { kind, span }),
            Ok(None) => {}
            Err(message) => {
                diagnostics.push(Diagnostic::error(code::RULESET_SYNTAX, message).label(span, ""));
            }
        }
    }
    if tokens.last().is_some_and(|last| last.kind != Kind::Newline) {
        let (start, end) = (at as u32, at as u32);
        tokens.push(Token {
            kind: Kind::Newline,
            span: Span { source, start, end },
        });
    }
    (tokens, diagnostics)
}

/// How many bytes the token, space or comment at the start of `rest` has; at least one character.
fn token_length(rest: &str, first: char) -> usize {
    let while_char = |holds: fn(char) -> bool| rest.find(|c| !holds(c)).unwrap_or(rest.len());
    match first {
        '\n' => 1,
        '#' => while_char(|c| c != '\n'),
        '"' => text_length(rest),
        _ if first.is_ascii_digit() => while_char(|c| c.is_ascii_alphanumeric()),
        _ if first.is_ascii_alphabetic() || first == '_' => word_length(rest),
        _ if first.is_whitespace() => while_char(|c| c.is_whitespace() && c != '\n'),
        _ => PUNCTUATION
            .iter()
            .find(|punctuation| rest.starts_with(**punctuation))
            .map_or(first.len_utf8(), |punctuation| punctuation.len()),
    }
}

/// A word may hold single dots (`arg0.low`) but stops before a range's two.
fn word_length(rest: &str) -> usize {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let bytes = rest.as_bytes();
    let mut length = 0;
    while length < bytes.len() {
        let is_dot =
            bytes[length] == b'.' && bytes.get(length + 1).is_some_and(u8::is_ascii_alphabetic);
        if !is_dot && !is_inner(char::from(bytes[length])) {
            break;
        }
        length += 1;
    }
    length
}

/// A quoted text with its quotes; up to the end of the line if it isn't closed.
fn text_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '\n' => return at,
            '"' if !escaped => return at + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    rest.len()
}

/// The kind of a token; `None` for space and comments.
fn token_kind(token: &str, first: char) -> Result<Option<Kind>, String> {
    if first == '\n' {
        return Ok(Some(Kind::Newline));
    }
    if first == '#' || first.is_whitespace() {
        return Ok(None);
    }
    if first == '"' {
        return unquote(token).map(|text| Some(Kind::Text(text)));
    }
    if first.is_ascii_digit() {
        let value = match token.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => token.parse(),
        };
        return match value {
            Ok(value) => Ok(Some(Kind::Integer(value))),
            Err(_) => Err(format!("`{token}` is not a 64-bit unsigned integer")),
        };
    }
    if first.is_ascii_alphabetic() || first == '_' {
        return Ok(Some(Kind::Word));
    }
    if PUNCTUATION.contains(&token) {
        return Ok(Some(Kind::Punctuation));
    }
    Err(format!("unexpected character {first:?}"))
}

/// Undoes Rust's `{:?}` of a string, which is how the printer quotes file names.
fn unquote(token: &str) -> Result<String, String> {
    let inner = token
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .filter(|_| token.len() > 1)
        .ok_or("the quoted text has no end on its line")?;
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        let unescaped = match chars.next() {
            Some('n') => Some('\n'),
            Some('t') => Some('\t'),
            Some('r') => Some('\r'),
            Some('0') => Some('\0'),
            Some('u') => {
                let digits: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                u32::from_str_radix(&digits, 16)
                    .ok()
                    .and_then(char::from_u32)
            }
            Some(c @ ('\\' | '"' | '\'')) => Some(c),
            _ => None,
        };
        text.push(unescaped.ok_or("unknown escape in the quoted text")?);
    }
    Ok(text)
}
