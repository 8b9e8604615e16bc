//! Tokens of the ruleset text form.

use tamis_diag::limits::{MAX_DIAGNOSTICS, MAX_TOKENS, too_many_tokens};
use tamis_diag::{Cursor, Diagnostic, SourceId, Span};

use crate::code;

/// The kinds of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A keyword, name or operand: letters, digits, `_`, `-` and inner dots.
    Word,
    /// An unsigned integer.
    Integer(u64),
    /// A quoted text, unescaped.
    Text(String),
    /// An operator or bracket.
    Punctuation,
    /// The end of a line that has tokens.
    Newline,
}

/// A token with its span.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Span,
}

/// Operators and brackets, longest first.
const PUNCTUATION: [&str; 16] = [
    "==", "!=", "<=", ">=", "..", "<", ">", "&", "{", "}", "(", ")", ",", ":", "@", "=",
];

/// Splits a text into tokens. The last one, if any, is a newline; invalid characters are reported and skipped. It ends
/// early at the limits of tokens and errors.
pub(super) fn lex(text: &str, source: SourceId) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut tokens: Vec<Token> = Vec::new();
    let mut diagnostics = Vec::new();
    let mut cursor = Cursor::new(source, text);
    while let Some(first) = cursor.first() {
        let start = cursor.at();
        if diagnostics.len() == MAX_DIAGNOSTICS {
            break;
        }
        if tokens.len() >= MAX_TOKENS {
            let span = cursor.span_from(start);
            let message = too_many_tokens();
            diagnostics.push(Diagnostic::error(code::RULESET_SYNTAX, message).label(span, ""));
            break;
        }
        let kind = token(&mut cursor, first);
        let span = cursor.span_from(start);
        match kind {
            Ok(Some(TokenKind::Newline)) => end_line(&mut tokens, span),
            Ok(Some(kind)) => tokens.push(Token { kind, span }),
            Ok(None) => {}
            Err(message) => {
                diagnostics.push(Diagnostic::error(code::RULESET_SYNTAX, message).label(span, ""));
            }
        }
    }
    end_line(&mut tokens, cursor.span_from(text.len()));
    (tokens, diagnostics)
}

/// Ends a line that has tokens.
fn end_line(tokens: &mut Vec<Token>, span: Span) {
    if tokens
        .last()
        .is_some_and(|last| last.kind != TokenKind::Newline)
    {
        let kind = TokenKind::Newline;
        tokens.push(Token { kind, span });
    }
}

/// Consumes the token, space or comment that begins with `first`; `None` for space and comments.
fn token(cursor: &mut Cursor<'_>, first: char) -> Result<Option<TokenKind>, String> {
    match first {
        '\n' => {
            cursor.take_char();
            Ok(Some(TokenKind::Newline))
        }
        '#' => {
            cursor.take_line();
            Ok(None)
        }
        '"' => {
            let quoted = cursor.take(text_length(cursor.rest()));
            unquote(quoted).map(|text| Some(TokenKind::Text(text)))
        }
        _ if first.is_ascii_digit() => {
            integer(cursor.take_while(|c| c.is_ascii_alphanumeric())).map(Some)
        }
        _ if first.is_ascii_alphabetic() || first == '_' => {
            cursor.take(word_length(cursor.rest()));
            Ok(Some(TokenKind::Word))
        }
        _ if first.is_whitespace() => {
            cursor.take_while(|c| c.is_whitespace() && c != '\n');
            Ok(None)
        }
        _ if cursor.take_symbol(&PUNCTUATION).is_some() => Ok(Some(TokenKind::Punctuation)),
        _ => {
            cursor.take_char();
            Err(format!("unexpected character {first:?}"))
        }
    }
}

fn integer(written: &str) -> Result<TokenKind, String> {
    let value = match written.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => written.parse(),
    };
    value
        .map(TokenKind::Integer)
        .map_err(|_| format!("`{written}` is not a 64-bit unsigned integer"))
}

/// A word may contain single dots (`arg0.low`) but stops before the two of a range.
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

/// A quoted text with its quotes; up to the end of the line if it is unterminated.
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

/// Undoes Rust's `{:?}` of a string, with which the printer quotes file names.
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
