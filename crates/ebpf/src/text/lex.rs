//! Text to tokens, line by line.

use std::fmt;

use tamis_diag::limits::{MAX_DIAGNOSTICS, MAX_TOKENS, too_many_tokens};
use tamis_diag::{Cursor, Diagnostic, SourceId, Span};

use crate::code;

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind<'a> {
    /// A register, keyword, type or label.
    Word(&'a str),
    /// A number without its sign.
    Number(u64),
    /// An operator or other sign.
    Sign(&'static str),
}

/// A token with its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) span: Span,
}

impl fmt::Display for TokenKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenKind::Word(word) => write!(f, "`{word}`"),
            TokenKind::Number(number) => write!(f, "`{number}`"),
            TokenKind::Sign(sign) => write!(f, "`{sign}`"),
        }
    }
}

/// All signs, longer ones before their beginnings.
const SIGNS: [&str; 26] = [
    "<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "==", "!=", ">=", "<=", ">", "<",
    "=", "+", "-", "*", "&", "(", ")", "[", "]", ",",
];

/// The lines that have tokens. A label is a word with a colon at its end. The rest of a line behind an error is omitted.
pub(super) fn lines<'a>(
    text: &'a str,
    source: SourceId,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Vec<Token<'a>>> {
    let mut cursor = Cursor::new(source, text);
    let mut lines = Vec::new();
    let mut line = Vec::new();
    let mut count = 0;
    while let Some(next) = cursor.first()
        && diagnostics.len() < MAX_DIAGNOSTICS
    {
        let start = cursor.at();
        if next == '\n' {
            cursor.take_char();
            lines.push(std::mem::take(&mut line));
        } else if next.is_whitespace() {
            cursor.take_char();
        } else if matches!(next, '#' | ';') || cursor.is_before("//") {
            cursor.take_line();
        } else {
            count += 1;
            let result = token(&mut cursor, next).and_then(|kind| match count {
                ..=MAX_TOKENS => Ok(kind),
                _ => Err(too_many_tokens()),
            });
            let span = cursor.span_from(start);
            match result {
                Ok(kind) => line.push(Token { kind, span }),
                Err(message) => {
                    let diagnostic = Diagnostic::error(code::EXTENDED_SYNTAX, message);
                    diagnostics.push(diagnostic.label(span, ""));
                    line.clear();
                    cursor.take_line();
                    if count > MAX_TOKENS {
                        break;
                    }
                }
            }
        }
    }
    lines.push(line);
    lines.retain(|line| !line.is_empty());
    lines
}

fn token<'a>(cursor: &mut Cursor<'a>, next: char) -> Result<TokenKind<'a>, String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | ':');
    if next.is_ascii_digit() {
        let written = cursor.take_while(is_word);
        // The number of a line in a listing.
        if written.ends_with(':') {
            return Ok(TokenKind::Word(written));
        }
        // The code in a listing of the kernel: two hexadecimal digits in parentheses.
        let is_code = written.len() == 2 && written.parse::<u64>().is_err();
        if is_code && u8::from_str_radix(written, 16).is_ok() && cursor.is_before(")") {
            return Ok(TokenKind::Word(written));
        }
        let digits = written.strip_prefix("0x");
        let number = match digits.or_else(|| written.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => written.parse(),
        };
        let message = |_| format!("`{written}` is not a number of at most 64 bits");
        return number.map(TokenKind::Number).map_err(message);
    }
    if is_word(next) {
        return Ok(TokenKind::Word(cursor.take_while(is_word)));
    }
    if cursor.is_before("/") && !cursor.is_before("/=") {
        cursor.take_char();
        return Err("unexpected character `/`".to_owned());
    }
    if let Some(sign) = cursor.take_symbol(&SIGNS) {
        return Ok(TokenKind::Sign(sign));
    }
    cursor.take_char();
    Err(format!("unexpected character `{}`", next.escape_default()))
}
