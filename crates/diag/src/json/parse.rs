//! From a text of JSON to a [`Document`], and what is wrong with one that isn't.
//!
//! The scanner of `jsonc-parser` gives the tokens, with every extension off; the grammar is here, without recursion, so
//! that nesting has no limit but that of the reader.

use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::tokens::Token;
use jsonc_parser::{Scanner, ScannerOptions};

use crate::document::{Builder, Document, Opened, Range, Scalar};
use crate::limits::MAX_TOKENS;

/// What a text has too many of, and where the first of them is.
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
    /// What is wrong there.
    pub label: String,
    /// Whether only the value is missing.
    pub(super) is_json: bool,
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
    if let Some(at) = first_foreign(text) {
        return Err(SyntaxError {
            range: in_text(text, at, at + 1),
            label: "this character can only be in a string".to_owned(),
            is_json: false,
        });
    }
    let strict = ScannerOptions {
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let mut parser = Parser {
        text,
        scanner: Scanner::new(text, &strict),
        builder: Builder::new(text, values),
    };
    parser.value()?;
    if parser.builder.len() == 0 {
        return Err(SyntaxError {
            range: Range::new(text.len(), text.len()),
            label: "expected a JSON object".to_owned(),
            is_json: true,
        });
    }
    if parser.scan()?.is_some() {
        return Err(parser.mistake(&ParseErrorKind::MultipleRootJsonValues));
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
        match self.scanner.scan() {
            Ok(Some(Token::CommentLine(_) | Token::CommentBlock(_))) => {
                Err(self.mistake(&ParseErrorKind::CommentsNotAllowed))
            }
            Ok(token) => Ok(token),
            Err(error) => Err(self.of_scanner(&error)),
        }
    }

    fn range(&self) -> Range {
        Range::new(self.scanner.token_start(), self.scanner.token_end())
    }

    fn of_scanner(&self, error: &ParseError) -> SyntaxError {
        let range = error.range();
        self.mistake_at(range.start, range.end, error.kind())
    }

    /// A mistake at the token.
    fn mistake(&self, kind: &ParseErrorKind) -> SyntaxError {
        let range = self.range();
        self.mistake_at(range.start, range.end.max(range.start + 1), kind)
    }

    fn mistake_at(&self, start: usize, end: usize, kind: &ParseErrorKind) -> SyntaxError {
        let kind = kind.to_string();
        SyntaxError {
            range: in_text(self.text, start, end),
            label: kind[..1].to_lowercase() + &kind[1..],
            is_json: false,
        }
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
            Token::String(text) => self.builder.add(Scalar::Text(text), range),
            Token::Number(_) => self.builder.add(Scalar::Number, range),
            Token::Boolean(value) => self.builder.add(Scalar::Boolean(*value), range),
            Token::Null => self.builder.add(Scalar::Null, range),
            Token::CloseBracket => {
                return Err(self.mistake(&ParseErrorKind::UnexpectedCloseBracket));
            }
            Token::CloseBrace => return Err(self.mistake(&ParseErrorKind::UnexpectedCloseBrace)),
            Token::Comma => return Err(self.mistake(&ParseErrorKind::UnexpectedComma)),
            Token::Colon => return Err(self.mistake(&ParseErrorKind::UnexpectedColon)),
            Token::Word(_) => return Err(self.mistake(&ParseErrorKind::UnexpectedWord)),
            Token::CommentLine(_) | Token::CommentBlock(_) => {
                return Err(self.mistake(&ParseErrorKind::UnexpectedToken));
            }
        }
        Ok(())
    }

    /// The token behind a comma, or the first one of an array or object; the mistake is that of a missing comma or of
    /// one too many.
    fn next(&mut self, closing: &Token<'_>) -> Result<Option<Token<'t>>, SyntaxError> {
        if self.builder.is_empty_innermost() {
            return self.scan();
        }
        let end = self.scanner.token_end();
        match self.scan()? {
            Some(Token::Comma) => {
                let comma = self.range();
                let token = self.scan()?;
                if token.as_ref() == Some(closing) {
                    let kind = ParseErrorKind::TrailingCommasNotAllowed;
                    return Err(self.mistake_at(comma.start, comma.end, &kind));
                }
                Ok(token)
            }
            Some(token) if may_follow_comma(&token, closing) => {
                Err(self.mistake_at(end, end, &ParseErrorKind::ExpectedComma))
            }
            token => Ok(token),
        }
    }

    /// Reads an element of an array or its end.
    fn element(&mut self) -> Result<(), SyntaxError> {
        match self.next(&Token::CloseBracket)? {
            None => Err(self.unterminated(&ParseErrorKind::UnterminatedArray)),
            Some(Token::CloseBracket) => {
                self.builder.close(self.scanner.token_end());
                Ok(())
            }
            Some(token) => self.begin(&token),
        }
    }

    /// Reads a member of an object, or its end.
    fn member(&mut self) -> Result<(), SyntaxError> {
        match self.next(&Token::CloseBrace)? {
            None => return Err(self.unterminated(&ParseErrorKind::UnterminatedObject)),
            Some(Token::CloseBrace) => {
                self.builder.close(self.scanner.token_end());
                return Ok(());
            }
            Some(Token::String(name)) => {
                let range = self.range();
                self.builder.add(Scalar::Text(&name), range);
            }
            Some(Token::Word(_) | Token::Number(_) | Token::Boolean(_) | Token::Null) => {
                return Err(self.mistake(&ParseErrorKind::ExpectedStringObjectProperty));
            }
            Some(_) => return Err(self.mistake(&ParseErrorKind::UnexpectedTokenInObject)),
        }
        if self.scan()? != Some(Token::Colon) {
            return Err(self.mistake(&ParseErrorKind::ExpectedColonAfterObjectKey));
        }
        match self.scan()? {
            None => Err(self.mistake(&ParseErrorKind::ExpectedObjectValue)),
            Some(token) => self.begin(&token),
        }
    }

    /// The text ends within an array or object.
    fn unterminated(&self, kind: &ParseErrorKind) -> SyntaxError {
        let start = self.builder.innermost_start();
        self.mistake_at(start, start + 1, kind)
    }
}

/// Whether an element of what ends with `closing` begins with this token, in an object also a name without quotes.
fn may_follow_comma(token: &Token<'_>, closing: &Token<'_>) -> bool {
    match token {
        Token::String(_) | Token::Number(_) | Token::Boolean(_) | Token::Null => true,
        Token::Word(_) => *closing == Token::CloseBrace,
        Token::OpenBrace | Token::OpenBracket => *closing == Token::CloseBracket,
        _ => false,
    }
}

/// The place of the first character that JSON has in strings only: a parser may take it for a blank.
fn first_foreign(text: &str) -> Option<usize> {
    let is_foreign = |byte: u8| !matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    let mut bytes = outside_strings(text);
    bytes.find_map(|(at, byte)| is_foreign(byte).then_some(at))
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

/// A range that lies in the text on character boundaries, whatever the parser reports.
fn in_text(text: &str, start: usize, end: usize) -> Range {
    let start = text.floor_char_boundary(start.min(text.len()));
    let end = text.ceil_char_boundary(end.clamp(start, text.len()));
    Range::new(start, end)
}

#[cfg(test)]
mod tests {
    use crate::document::{Content, Value};
    use jsonc_parser::ast::Value as Node;
    use jsonc_parser::common::Ranged;
    use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

    use super::*;

    const TEXTS: [&str; 6] = [
        r#"{"a": [1, -2.5e3, "x\ny", "\u0041", true, false, null], "b": {"c": {}, "d": []}, "": ""}"#,
        r#"[[], {}, [[["é"]]], {"k": "v"}, 0, "a b"]"#,
        r#""text""#,
        "12",
        " [ 1 , 2 ] ",
        r#"{"a":{"a":{"a":[{"b":1},{"b":2}]}}}"#,
    ];

    /// A value with its places, as text.
    fn shown(value: Value<'_>) -> String {
        let Range { start, end } = value.range();
        let content = match value.content() {
            Content::Null => "null".to_owned(),
            Content::Boolean(value) => value.to_string(),
            Content::Number(text) => text.to_owned(),
            Content::Text(text) => format!("{text:?}"),
            Content::Array(array) => array.elements().map(shown).collect(),
            Content::Object(object) => {
                let members = object.members();
                let shown = members.map(|member| {
                    format!(
                        "{:?}{:?}{}",
                        member.name,
                        member.name_range.start,
                        shown(member.value)
                    )
                });
                shown.collect()
            }
        };
        format!("<{start} {content} {end}>")
    }

    fn shown_node(node: &Node<'_>) -> String {
        let range = node.range();
        let content = match node {
            Node::NullKeyword(_) => "null".to_owned(),
            Node::BooleanLit(literal) => literal.value.to_string(),
            Node::NumberLit(literal) => literal.value.to_owned(),
            Node::StringLit(literal) => format!("{:?}", literal.value),
            Node::Array(array) => array.elements.iter().map(shown_node).collect(),
            Node::Object(object) => {
                let properties = object.properties.iter();
                let shown = properties.map(|property| {
                    let (name, start) = (property.name.as_str(), property.name.range().start);
                    format!("{name:?}{start:?}{}", shown_node(&property.value))
                });
                shown.collect()
            }
        };
        format!("<{} {content} {}>", range.start, range.end)
    }

    fn strict() -> ParseOptions {
        ParseOptions {
            allow_comments: false,
            allow_loose_object_property_names: false,
            allow_trailing_commas: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        }
    }

    #[test]
    fn documents_and_mistakes_are_those_of_the_crates_own_tree() {
        let signs = [
            "{", "}", "[", "]", ",", ":", "\"", "1", "-", "a", "/", "//", " ", "\\", "",
        ];
        let (mut refused, mut read) = (0, 0);
        for text in TEXTS {
            for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                for sign in signs {
                    let mut changed = text.to_owned();
                    if sign.is_empty() {
                        changed.truncate(at);
                    } else {
                        changed.insert_str(at, sign);
                    }
                    let tree = parse_to_ast(&changed, &CollectOptions::default(), &strict());
                    match (parse_unlimited(&changed), tree.map(|tree| tree.value)) {
                        (Ok(document), Ok(Some(node))) => {
                            assert_eq!(shown(document.root()), shown_node(&node), "{changed}");
                            read += 1;
                        }
                        // The crate takes such a character for a blank, or finds something else first.
                        (Err(_), _) if first_foreign(&changed).is_some() => refused += 1,
                        (Err(ours), Err(theirs)) => {
                            let kind = theirs.kind().to_string().to_lowercase();
                            assert_eq!(ours.label.to_lowercase(), kind, "{changed}");
                            refused += 1;
                        }
                        (Err(ours), Ok(None)) => assert!(ours.is_json, "{changed}"),
                        (ours, theirs) => panic!("{changed}: {ours:?}, {theirs:?}"),
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
