//! The tokens of a text of JSON, by RFC 8259 to the letter.
//!
//! Programs that read such files differ in what they accept beyond the standard, so nothing beyond it is a token: comments,
//! single quotes, names without quotes, control characters in strings, halves of surrogate pairs. The text of numbers
//! isn't converted, so that 64-bit values stay exact.

use std::borrow::Cow;
use std::fmt;

use crate::document::Range;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    OpenBrace,
    CloseBrace,
    OpenBracket,
    CloseBracket,
    Comma,
    Colon,
    Text(Cow<'t, str>),
    Number,
    Boolean(bool),
    Null,
    /// Letters that are no value.
    Word,
}

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    Comment,
    SingleQuotes,
    OutsideString,
    Sign,
    UnterminatedString,
    ControlCharacter,
    Escape,
    Surrogate,
    LeadingZero,
    Digit,
    DecimalPoint,
    Word,
    Unexpected(&'static str),
    UnexpectedInObject,
    Comma,
    TrailingComma,
    PropertyName,
    Colon,
    Value,
    UnterminatedArray,
    UnterminatedObject,
    SecondValue,
    NoValue,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mistake::Comment => "comments are not allowed",
            Mistake::SingleQuotes => "single-quoted strings are not allowed",
            Mistake::OutsideString => "this character can only be in a string",
            Mistake::Sign => "unexpected token",
            Mistake::UnterminatedString => "unterminated string literal",
            Mistake::ControlCharacter => "control character in a string; write it as an escape",
            Mistake::Escape => "invalid escape in a string",
            Mistake::Surrogate => "half of a surrogate pair",
            Mistake::LeadingZero => "leading zeros are not allowed",
            Mistake::Digit => "expected digit",
            Mistake::DecimalPoint => {
                "leading or trailing decimal points on numbers are not allowed"
            }
            Mistake::Word => "unexpected word",
            Mistake::Unexpected(sign) => return write!(f, "unexpected {sign}"),
            Mistake::UnexpectedInObject => "unexpected token in object",
            Mistake::Comma => "expected comma",
            Mistake::TrailingComma => "trailing commas are not allowed",
            Mistake::PropertyName => "expected string for object property",
            Mistake::Colon => "expected colon after the string or word in object property",
            Mistake::Value => "expected value after colon in object property",
            Mistake::UnterminatedArray => "unterminated array",
            Mistake::UnterminatedObject => "unterminated object",
            Mistake::SecondValue => "text cannot contain more than one JSON value",
            Mistake::NoValue => "expected a JSON object",
        })
    }
}

/// A mistake with its place.
pub(super) type Misplaced = (Range, Mistake);

/// From a text to its tokens.
pub(super) struct Scanner<'t> {
    text: &'t str,
    start: usize,
    end: usize,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Scanner<'t> {
        Scanner {
            text,
            start: 0,
            end: 0,
        }
    }

    /// The place of the last token.
    pub(super) fn range(&self) -> Range {
        Range::new(self.start, self.end)
    }

    /// The end of the last token.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// The next token; none at the end of the text.
    ///
    /// # Errors
    /// If what follows is no token.
    pub(super) fn scan(&mut self) -> Result<Option<Token<'t>>, Misplaced> {
        self.skip(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
        self.start = self.end;
        let Some(first) = self.peek() else {
            return Ok(None);
        };
        let sign = match first {
            b'{' => Token::OpenBrace,
            b'}' => Token::CloseBrace,
            b'[' => Token::OpenBracket,
            b']' => Token::CloseBracket,
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => return self.string().map(Some),
            b'-' | b'0'..=b'9' => return self.number().map(Some),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => return Ok(Some(self.word())),
            _ => return Err(self.foreign(first)),
        };
        self.end += 1;
        Ok(Some(sign))
    }

    /// A mistake of the last token, and of one byte at least.
    pub(super) fn mistake(&self, mistake: Mistake) -> Misplaced {
        let end = self.end.max(self.start + 1);
        (in_text(self.text, self.start, end), mistake)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.end).copied()
    }

    fn skip(&mut self, is_part: impl Fn(u8) -> bool) {
        let rest = self.text.as_bytes()[self.end..].iter();
        self.end += rest.take_while(|byte| is_part(**byte)).count();
    }

    /// A mistake of the next character.
    fn here(&self, mistake: Mistake) -> Misplaced {
        (in_text(self.text, self.end, self.end + 1), mistake)
    }

    fn foreign(&self, byte: u8) -> Misplaced {
        let next = self.text.as_bytes().get(self.end + 1);
        self.here(match (byte, next) {
            (b'/', Some(b'/' | b'*')) => Mistake::Comment,
            (b'\'', _) => Mistake::SingleQuotes,
            (b'.', _) => Mistake::DecimalPoint,
            (b'!'..=b'~', _) => Mistake::Sign,
            _ => Mistake::OutsideString,
        })
    }

    fn word(&mut self) -> Token<'t> {
        self.skip(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-'));
        match &self.text[self.start..self.end] {
            "true" => Token::Boolean(true),
            "false" => Token::Boolean(false),
            "null" => Token::Null,
            _ => Token::Word,
        }
    }

    fn number(&mut self) -> Result<Token<'t>, Misplaced> {
        if self.peek() == Some(b'-') {
            self.end += 1;
        }
        let first = self.end;
        self.digits(Mistake::Digit)?;
        if self.text.as_bytes()[first] == b'0' && self.end > first + 1 {
            return Err(self.mistake(Mistake::LeadingZero));
        }
        if self.peek() == Some(b'.') {
            self.end += 1;
            self.digits(Mistake::DecimalPoint)?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.end += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.end += 1;
            }
            self.digits(Mistake::Digit)?;
        }
        Ok(Token::Number)
    }

    /// Passes at least one digit.
    fn digits(&mut self, missing: Mistake) -> Result<(), Misplaced> {
        let before = self.end;
        self.skip(|byte| byte.is_ascii_digit());
        match self.end == before {
            true => Err(self.here(missing)),
            false => Ok(()),
        }
    }

    fn string(&mut self) -> Result<Token<'t>, Misplaced> {
        self.end += 1;
        let mut text = Cow::Borrowed("");
        loop {
            let before = self.end;
            self.skip(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f));
            let plain = &self.text[before..self.end];
            match text.is_empty() {
                true => text = Cow::Borrowed(plain),
                false => text.to_mut().push_str(plain),
            }
            match self.peek() {
                None => return Err(self.mistake(Mistake::UnterminatedString)),
                Some(b'"') => {
                    self.end += 1;
                    return Ok(Token::Text(text));
                }
                Some(b'\\') => text.to_mut().push(self.escape()?),
                Some(_) => return Err(self.here(Mistake::ControlCharacter)),
            }
        }
    }

    /// The character of an escape.
    fn escape(&mut self) -> Result<char, Misplaced> {
        let start = self.end;
        let at = |own: &Self, mistake| (in_text(own.text, start, own.end), mistake);
        self.end += 1;
        let Some(kind) = self.peek() else {
            return Err(self.mistake(Mistake::UnterminatedString));
        };
        self.end += 1;
        Ok(match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self
                    .hexadecimal()
                    .ok_or_else(|| at(self, Mistake::Escape))?;
                let units = match first {
                    0xd800..=0xdbff if self.text[self.end..].starts_with("\\u") => {
                        self.end += 2;
                        let second = self
                            .hexadecimal()
                            .ok_or_else(|| at(self, Mistake::Escape))?;
                        vec![first, second]
                    }
                    _ => vec![first],
                };
                let mut decoded = char::decode_utf16(units);
                match decoded.next() {
                    Some(Ok(character)) => character,
                    _ => return Err(at(self, Mistake::Surrogate)),
                }
            }
            _ => return Err(at(self, Mistake::Escape)),
        })
    }

    /// Four hexadecimal digits.
    fn hexadecimal(&mut self) -> Option<u16> {
        let digits = self.text.as_bytes().get(self.end..self.end + 4)?;
        let mut value = 0;
        for digit in digits {
            let digit = char::from(*digit).to_digit(16)?;
            value = value << 4 | u16::try_from(digit).ok()?;
        }
        self.end += 4;
        Some(value)
    }
}

/// A range that lies in the text on character boundaries.
pub(super) fn in_text(text: &str, start: usize, end: usize) -> Range {
    let start = text.floor_char_boundary(start.min(text.len()));
    let end = text.ceil_char_boundary(end.clamp(start, text.len()));
    Range::new(start, end)
}
