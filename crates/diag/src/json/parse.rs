//! From a text of JSON to a [`Document`], or the first error.
//!
//! The grammar is parsed without recursion, so that nesting has no limit but that of the reader.

use super::scan::{Misplaced, Mistake, Scanner, Token, in_text};
use crate::document::{Builder, Document, Opened, Range, Scalar};
use crate::limits::MAX_TOKENS;

/// The exceeded limit, and the place of the first excess.
pub(super) enum Excess {
    Depth(usize),
    Count(usize),
}

/// The most values and keys that a text can have; or the first bracket that opens a level too many, or the first value
/// too many.
pub(super) fn count(text: &str, max_depth: usize) -> Result<usize, Excess> {
    let mut depth = 0_usize;
    let mut commas = 0_usize;
    let mut values = 1_usize;
    for (at, byte) in outside_strings(text) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                values += 1;
                if depth > max_depth {
                    return Err(Excess::Depth(at));
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => {
                commas += 1;
                values += 1;
                if commas > MAX_TOKENS {
                    return Err(Excess::Count(at));
                }
            }
            b':' => values += 1,
            _ => {}
        }
    }
    // The least value or key has a sign behind it.
    Ok(values.min(text.len() / 2 + 1))
}

/// Why a text is no JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where.
    pub range: Range,
    /// The error at that place.
    pub label: String,
    /// Whether only the value is missing.
    pub(super) is_json: bool,
}

impl From<Misplaced> for SyntaxError {
    fn from((range, mistake): Misplaced) -> SyntaxError {
        SyntaxError {
            range,
            label: mistake.to_string(),
            is_json: mistake == Mistake::NoValue,
        }
    }
}

impl SyntaxError {
    /// The mistake with the line and the column of its place in the text.
    pub fn in_text(&self, text: &str) -> String {
        let before = &text[..self.range.start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = 1 + before.matches('\n').count();
        let column = 1 + before[line_start..].chars().count();
        format!("{} at line {line}, column {column}", self.label)
    }
}

/// Parses a text, one value, without a limit but that of its size.
///
/// # Errors
/// If it isn't one value of JSON.
pub fn parse_unlimited(text: &str) -> Result<Document<'_>, SyntaxError> {
    parse(text, 0)
}

pub(super) fn parse(text: &str, values: usize) -> Result<Document<'_>, SyntaxError> {
    let mut parser = Parser {
        text,
        scanner: Scanner::new(text),
        builder: Builder::new(text, values),
    };
    parser.value()?;
    if parser.builder.len() == 0 {
        return Err((Range::new(text.len(), text.len()), Mistake::NoValue).into());
    }
    if parser.scan()?.is_some() {
        return Err(parser.scanner.mistake(Mistake::SecondValue).into());
    }
    let Parser { builder, .. } = parser;
    Ok(builder.finish().expect("the value is closed"))
}

/// From tokens to a document, without recursion.
struct Parser<'t> {
    text: &'t str,
    scanner: Scanner<'t>,
    builder: Builder<'t>,
}

impl<'t> Parser<'t> {
    /// The next token.
    fn scan(&mut self) -> Result<Option<Token<'t>>, SyntaxError> {
        Ok(self.scanner.scan()?)
    }

    fn range(&self) -> Range {
        self.scanner.range()
    }

    /// A mistake at the token.
    fn mistake(&self, mistake: Mistake) -> SyntaxError {
        self.scanner.mistake(mistake).into()
    }

    fn mistake_at(&self, start: usize, end: usize, mistake: Mistake) -> SyntaxError {
        (in_text(self.text, start, end), mistake).into()
    }

    /// Reads one value; none at the end of the text.
    fn value(&mut self) -> Result<(), SyntaxError> {
        let Some(first) = self.scan()? else {
            return Ok(());
        };
        self.begin(&first)?;
        while let Some(opened) = self.builder.innermost() {
            match opened {
                Opened::Array => self.element()?,
                Opened::Object => self.member()?,
            }
        }
        Ok(())
    }

    /// Adds a value, of an array or object its beginning.
    fn begin(&mut self, token: &Token<'t>) -> Result<(), SyntaxError> {
        let range = self.range();
        match token {
            Token::OpenBrace => self.builder.open(Opened::Object, range),
            Token::OpenBracket => self.builder.open(Opened::Array, range),
            Token::Text(text) => self.builder.add(Scalar::Text(text), range),
            Token::Number => self.builder.add(Scalar::Number, range),
            Token::Boolean(value) => self.builder.add(Scalar::Boolean(*value), range),
            Token::Null => self.builder.add(Scalar::Null, range),
            Token::CloseBracket => return Err(self.mistake(Mistake::Unexpected("close bracket"))),
            Token::CloseBrace => return Err(self.mistake(Mistake::Unexpected("close brace"))),
            Token::Comma => return Err(self.mistake(Mistake::Unexpected("comma"))),
            Token::Colon => return Err(self.mistake(Mistake::Unexpected("colon"))),
            Token::Word => return Err(self.mistake(Mistake::Word)),
        }
        Ok(())
    }

    /// The token behind a comma, or the first one of an array or object; the mistake is that of a missing comma or of
    /// one too many.
    fn next(&mut self, closing: &Token<'_>) -> Result<Option<Token<'t>>, SyntaxError> {
        if self.builder.is_empty_innermost() {
            return self.scan();
        }
        let end = self.scanner.end();
        match self.scan()? {
            Some(Token::Comma) => {
                let comma = self.range();
                let token = self.scan()?;
                if token.as_ref() == Some(closing) {
                    return Err(self.mistake_at(comma.start, comma.end, Mistake::TrailingComma));
                }
                Ok(token)
            }
            Some(token) if may_follow_comma(&token, closing) => {
                Err(self.mistake_at(end, end, Mistake::Comma))
            }
            token => Ok(token),
        }
    }

    /// Reads an element of an array or its end.
    fn element(&mut self) -> Result<(), SyntaxError> {
        match self.next(&Token::CloseBracket)? {
            None => Err(self.unterminated(Mistake::UnterminatedArray)),
            Some(Token::CloseBracket) => {
                self.builder.close(self.scanner.end());
                Ok(())
            }
            Some(token) => self.begin(&token),
        }
    }

    /// Reads a member of an object, or its end.
    fn member(&mut self) -> Result<(), SyntaxError> {
        match self.next(&Token::CloseBrace)? {
            None => return Err(self.unterminated(Mistake::UnterminatedObject)),
            Some(Token::CloseBrace) => {
                self.builder.close(self.scanner.end());
                return Ok(());
            }
            Some(Token::Text(name)) => {
                let range = self.range();
                self.builder.add(Scalar::Text(&name), range);
            }
            Some(Token::Word | Token::Number | Token::Boolean(_) | Token::Null) => {
                return Err(self.mistake(Mistake::PropertyName));
            }
            Some(_) => return Err(self.mistake(Mistake::UnexpectedInObject)),
        }
        if self.scan()? != Some(Token::Colon) {
            return Err(self.mistake(Mistake::Colon));
        }
        match self.scan()? {
            None => Err(self.mistake(Mistake::Value)),
            Some(token) => self.begin(&token),
        }
    }

    /// The text ends within an array or object.
    fn unterminated(&self, mistake: Mistake) -> SyntaxError {
        let start = self.builder.innermost_start();
        self.mistake_at(start, start + 1, mistake)
    }
}

/// Whether an element before `closing` may begin with this token, in an object also a name without quotes.
fn may_follow_comma(token: &Token<'_>, closing: &Token<'_>) -> bool {
    match token {
        Token::Text(_) | Token::Number | Token::Boolean(_) | Token::Null => true,
        Token::Word => *closing == Token::CloseBrace,
        Token::OpenBrace | Token::OpenBracket => *closing == Token::CloseBracket,
        _ => false,
    }
}

/// The bytes that are not in strings, with their places; the quotes are among them.
fn outside_strings(text: &str) -> impl Iterator<Item = (usize, u8)> {
    let mut in_string = false;
    let mut escaped = false;
    text.bytes().enumerate().filter(move |(_, byte)| {
        if !in_string {
            in_string = *byte == b'"';
            return true;
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = false,
            _ => {}
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use crate::document::{Content, Value};

    use super::*;

    const TEXTS: [&str; 6] = [
        r#"{"a": [1, -2.5e3, "x\ny", "\u0041", true, false, null], "b": {"c": {}, "d": []}, "": ""}"#,
        r#"[[], {}, [[["é"]]], {"k": "v"}, 0, "a b"]"#,
        r#""text""#,
        "12",
        " [ 1 , 2 ] ",
        r#"{"a":{"a":{"a":[{"b":1},{"b":2}]}}}"#,
    ];

    /// The value that another parser makes of the same text; its places lead to texts of the same value.
    fn converted(text: &str, value: Value<'_>) -> serde_json::Value {
        let Range { start, end } = value.range();
        let own = &text[start..end];
        let converted = match value.content() {
            Content::Null => serde_json::Value::Null,
            Content::Boolean(value) => value.into(),
            Content::Number(number) => {
                assert_eq!(number, own);
                serde_json::from_str(number).unwrap()
            }
            Content::Text(text) => text.into(),
            Content::Array(array) => {
                let elements = array.elements().map(|value| converted(text, value));
                elements.collect()
            }
            Content::Object(object) => {
                let members = object.members().map(|member| {
                    let Range { start, end } = member.name_range;
                    let name: String = serde_json::from_str(&text[start..end]).unwrap();
                    assert_eq!(name, member.name);
                    (name, converted(text, member.value))
                });
                members.collect()
            }
        };
        let of_place: serde_json::Value = serde_json::from_str(own).unwrap();
        assert_eq!(of_place, converted, "{own}");
        converted
    }

    /// What changes a text where it is put: signs, parts of tokens, blanks of other formats, control characters.
    const SIGNS: [&str; 27] = [
        "{", "}", "[", "]", ",", ":", "\"", "1", "-", "a", "/", "//", " ", "\\", "", "\\u",
        "\\ud83d", "\\ude00", "\u{feff}", "\u{a0}", "\n", "\u{b}", "\u{0}", "\u{7f}", "0", ".",
        "e+",
    ];

    #[test]
    fn texts_are_read_as_by_serde() {
        let (mut refused, mut read) = (0, 0);
        for text in TEXTS {
            for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                for sign in SIGNS {
                    let mut changed = text.to_owned();
                    if sign.is_empty() {
                        changed.truncate(at);
                    } else {
                        changed.insert_str(at, sign);
                    }
                    let theirs = serde_json::from_str::<serde_json::Value>(&changed);
                    match (parse_unlimited(&changed), theirs) {
                        (Ok(document), Ok(value)) => {
                            assert_eq!(converted(&changed, document.root()), value);
                            read += 1;
                        }
                        (Err(_), Err(_)) => refused += 1,
                        // It refuses numbers that no float holds.
                        (Ok(_), Err(error)) if error.to_string().contains("out of range") => {}
                        (ours, theirs) => panic!("{changed:?}: {ours:?}, {theirs:?}"),
                    }
                }
            }
        }
        assert!(read > 200 && refused > 2000, "{read}, {refused}");
    }

    #[test]
    fn a_value_takes_sixteen_bytes() {
        let text = format!("[{}0]", "0,".repeat(1000));
        let document = parse_unlimited(&text).expect("it is JSON");
        assert_eq!(
            document
                .root()
                .as_array()
                .map(|array| array.elements().count()),
            Some(1001)
        );
        assert_eq!(document.size_bytes(), 16 * 1002);
    }
}
