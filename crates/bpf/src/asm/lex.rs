//! Text to tokens, line by line.

use std::fmt;

use tamis_diag::limits::{MAX_DIAGNOSTICS, MAX_TOKENS, too_many_tokens};
use tamis_diag::{Cursor, Diagnostic, SourceId, Span};

use super::Step;
use crate::code;

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind<'a> {
    /// A mnemonic, register, label or other name.
    Word(&'a str),
    /// A number, in two's complement if negative.
    Number(u32),
    /// A punctuation character.
    Mark(char),
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
            TokenKind::Mark(mark) => write!(f, "`{mark}`"),
        }
    }
}

/// The lines of a text as tokens, one after the other, without comments.
pub(super) struct Lines<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Lines<'a> {
    /// All lines.
    pub(super) fn new(text: &'a str, source: SourceId) -> Lines<'a> {
        Lines {
            cursor: Cursor::new(source, text),
        }
    }

    /// The next line that has tokens.
    ///
    /// Errors are added to `diagnostics`, and their lines are omitted. A block comment over several lines joins the
    /// text before and after it.
    pub(super) fn next(&mut self, diagnostics: &mut Vec<Diagnostic>) -> Option<Vec<Token<'a>>> {
        let cursor = &mut self.cursor;
        let mut line: Vec<Token<'a>> = Vec::new();
        while let Some(next) = cursor.first()
            && diagnostics.len() < MAX_DIAGNOSTICS
        {
            let start = cursor.at();
            let result = match next {
                '\n' => {
                    cursor.take_char();
                    if line.is_empty() {
                        continue;
                    }
                    break;
                }
                _ if next == ';' || next == '#' && line.is_empty() => {
                    cursor.take_line();
                    continue;
                }
                _ if next.is_whitespace() => {
                    cursor.take_char();
                    continue;
                }
                '/' if cursor.is_before("/*") => skip_block_comment(cursor),
                _ if line.len() >= MAX_TOKENS => {
                    let span = cursor.span_from(start);
                    let message = too_many_tokens();
                    let diagnostic = Diagnostic::error(code::ASSEMBLER_SYNTAX, message);
                    Err(Box::new(diagnostic.label(span, "")))
                }
                _ => token(cursor, next).map(|kind| {
                    line.push(Token {
                        kind,
                        span: cursor.span_from(start),
                    });
                }),
            };
            if let Err(diagnostic) = result {
                diagnostics.push(*diagnostic);
                line.clear();
                // An unterminated comment discards the rest of the text, any other error the rest of its line.
                match next {
                    '/' => cursor.take(usize::MAX),
                    _ => cursor.take_line(),
                };
            }
        }
        (!line.is_empty()).then_some(line)
    }
}

fn skip_block_comment(cursor: &mut Cursor<'_>) -> Step<()> {
    let start = cursor.at();
    cursor.take(2);
    let opened = cursor.span_from(start);
    if let Some(inside) = cursor.take_through("*/") {
        // To `bpf_asm` stars come in pairs, and the slash behind a pair is text.
        let stars = inside.trim_end_matches('/').bytes().rev();
        if stars.take_while(|byte| *byte == b'*').count() % 2 == 1 {
            return Ok(());
        }
        let message = "comment that `bpf_asm` does not end here";
        let diagnostic = Diagnostic::error(code::ASSEMBLER_SYNTAX, message)
            .label(opened, "opened here")
            .help("put a space before `*/`");
        return Err(Box::new(diagnostic));
    }
    let diagnostic = Diagnostic::error(code::ASSEMBLER_SYNTAX, "comment without an end")
        .label(opened, "opened here")
        .help("close it with `*/`");
    Err(Box::new(diagnostic))
}

fn is_hyphen_before_letter(rest: &str) -> bool {
    let after = rest.strip_prefix('-');
    after.is_some_and(|after| after.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn token<'a>(cursor: &mut Cursor<'a>, next: char) -> Step<TokenKind<'a>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let start = cursor.at();
    if is_word(next) && !next.is_ascii_digit() {
        cursor.take_while(is_word);
        // `kill-process` is a word, and `x-1` isn't one.
        while is_hyphen_before_letter(cursor.rest()) {
            cursor.take_char();
            cursor.take_while(is_word);
        }
        return Ok(TokenKind::Word(cursor.text_from(start)));
    }
    cursor.take_char();
    let has_digit = cursor.first().is_some_and(|c| c.is_ascii_digit());
    if next.is_ascii_digit() || next == '-' || next == '+' && has_digit {
        cursor.take_while(is_word);
        return number(cursor.text_from(start), cursor.span_from(start)).map(TokenKind::Number);
    }
    if "[](),:#%+*&".contains(next) {
        return Ok(TokenKind::Mark(next));
    }
    let message = format!("unexpected character `{}`", next.escape_default());
    let diagnostic = Diagnostic::error(code::ASSEMBLER_SYNTAX, message);
    let diagnostic = diagnostic.label(cursor.span_from(start), "not part of the language");
    Err(Box::new(diagnostic))
}

/// The value of a number as written.
pub(crate) fn number(written: &str, span: Span) -> Step<u32> {
    let lower = written.to_ascii_lowercase();
    let (digits, radix) = if let Some(digits) = lower.strip_prefix("0x") {
        (digits, 16)
    } else if let Some(digits) = lower.strip_prefix("0b") {
        (digits, 2)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (&lower[1..], 8)
    } else {
        (lower.as_str(), 10)
    };
    let is_digits = |digits: &str| !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    let negative = digits.strip_prefix(['-', '+']).filter(|_| radix == 10);
    if !is_digits(negative.unwrap_or(digits)) {
        let message = format!("`{written}` is not a number");
        let diagnostic = Diagnostic::error(code::ASSEMBLER_SYNTAX, message)
            .label(span, "")
            .note("numbers are decimal, hexadecimal (0x1f), octal (017) or binary (0b11)");
        return Err(Box::new(diagnostic));
    }
    let in_range = i64::from_str_radix(digits, radix)
        .ok()
        .filter(|value| (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(value));
    in_range.map(|value| value as u32).ok_or_else(|| {
        let message = format!("`{written}` does not fit 32 bits");
        let diagnostic = Diagnostic::error(code::NUMBER_TOO_LARGE, message)
            .label(span, "")
            .note("the constant of an instruction has 32 bits");
        Box::new(diagnostic)
    })
}
