//! Text to tokens, line by line.

use std::fmt;

use tamis_diag::{Diagnostic, SourceId, Span, code};

use super::Step;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// A mnemonic, register, label or other name.
    Word(&'a str),
    /// A number, negative ones as two's complement.
    Number(u32),
    /// A punctuation character.
    Mark(char),
}

/// A token with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) span: Span,
}

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Word(word) => write!(f, "`{word}`"),
            Kind::Number(number) => write!(f, "`{number}`"),
            Kind::Mark(mark) => write!(f, "`{mark}`"),
        }
    }
}

/// The tokens of each line that has any; comments are gone.
///
/// Mistakes are added to `diagnostics`; a line with one is left out, and a block comment that spans
/// lines joins what stands before and behind it.
pub(super) fn lines<'a>(
    text: &'a str,
    source: SourceId,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Vec<Token<'a>>> {
    let mut lexer = Lexer {
        text,
        source,
        at: 0,
    };
    let mut lines = Vec::new();
    let mut line: Vec<Token<'a>> = Vec::new();
    while let Some(next) = lexer.rest().chars().next() {
        let start = lexer.at;
        let result = match next {
            '\n' => {
                lexer.at += 1;
                lines.push(std::mem::take(&mut line));
                continue;
            }
            '#' if line.is_empty() => lexer.skip_to_line_end(),
            ';' => lexer.skip_to_line_end(),
            _ if next.is_whitespace() => lexer.skip_char(next),
            '/' if lexer.rest().starts_with("/*") => lexer.skip_block_comment(),
            _ => lexer.token(next).map(|kind| {
                line.push(Token {
                    kind,
                    span: lexer.span_from(start),
                });
            }),
        };
        if let Err(diagnostic) = result {
            diagnostics.push(*diagnostic);
            line.clear();
            lexer.at = start;
            lexer.skip_past(next);
        }
    }
    lines.push(line);
    lines.retain(|line| !line.is_empty());
    lines
}

struct Lexer<'a> {
    text: &'a str,
    source: SourceId,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn span_from(&self, start: usize) -> Span {
        Span {
            source: self.source,
            start: start as u32,
            end: self.at as u32,
        }
    }

    fn skip_char(&mut self, next: char) -> Step<()> {
        self.at += next.len_utf8();
        Ok(())
    }

    fn skip_to_line_end(&mut self) -> Step<()> {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        Ok(())
    }

    /// Goes behind a mistake that began with `next`.
    fn skip_past(&mut self, next: char) {
        self.at = match next {
            '/' => self.text.len(),
            _ => self.at + self.rest().find('\n').unwrap_or(self.rest().len()),
        };
    }

    fn skip_block_comment(&mut self) -> Step<()> {
        let start = self.at;
        let Some(length) = self.rest()[2..].find("*/") else {
            self.at += 2;
            let opened = self.span_from(start);
            let diagnostic = Diagnostic::error(code::ASSEMBLER_SYNTAX, "comment without an end")
                .label(opened, "opened here")
                .help("close it with `*/`");
            return Err(Box::new(diagnostic));
        };
        self.at += 2 + length + 2;
        Ok(())
    }

    fn token(&mut self, next: char) -> Step<Kind<'a>> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let start = self.at;
        self.at += next.len_utf8();
        if next.is_ascii_digit() || next == '-' {
            self.at += self
                .rest()
                .find(|c| !is_word(c))
                .unwrap_or(self.rest().len());
            number(&self.text[start..self.at], self.span_from(start)).map(Kind::Number)
        } else if is_word(next) {
            self.at += self
                .rest()
                .find(|c| !is_word(c))
                .unwrap_or(self.rest().len());
            Ok(Kind::Word(&self.text[start..self.at]))
        } else if "[](),:#%+*&".contains(next) {
            Ok(Kind::Mark(next))
        } else {
            let message = format!("unexpected character `{}`", next.escape_default());
            let diagnostic = Diagnostic::error(code::ASSEMBLER_SYNTAX, message);
            let diagnostic = diagnostic.label(self.span_from(start), "not part of the language");
            Err(Box::new(diagnostic))
        }
    }
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
    let negative = digits.strip_prefix('-').filter(|_| radix == 10);
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
