//! Strict JSON with spans: objects, arrays, strings and integers, and errors for other values.
//!
//! The text is parsed by `jsonc-parser` with every extension off; it keeps the text of numbers, so
//! 64-bit values are exact. The nesting is bounded before that, as the parser is recursive, and
//! duplicate keys are looked for after it.

use std::borrow::Cow;

use jsonc_parser::ast::{Array, Object, ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Severity};
use crate::limits::{MAX_TOKENS, too_many_tokens};
use crate::source::{SourceId, Span};
use crate::suggest;

/// The diagnostics and limits of a language of JSON documents.
#[derive(Debug)]
pub struct Dialect {
    /// The name of a document in messages: `a profile`.
    pub document: &'static str,
    /// The most bytes of a text.
    pub max_bytes: usize,
    /// The deepest nesting of objects and arrays.
    pub max_depth: usize,
    /// The text is too large.
    pub too_large: Code,
    /// The text is not JSON.
    pub syntax: Code,
    /// The nesting is too deep.
    pub nesting: Code,
    /// An object has a key twice.
    pub duplicate_key: Code,
    /// A value has the wrong type.
    pub wrong_type: Code,
    /// A number is not an integer or out of range.
    pub range: Code,
    /// A required key is missing.
    pub missing: Code,
    /// A string is not one of the known names.
    pub unknown_name: Code,
    /// A key is not known.
    pub unknown_member: Code,
    /// The effect of an unknown member: `container engines ignore this`.
    pub unknown_member_label: &'static str,
}

/// Collects the errors of one text.
#[derive(Debug)]
pub struct Reader {
    dialect: &'static Dialect,
    source: SourceId,
    /// Whether ignored input is an error.
    strict: bool,
    /// The diagnostics, in the order of discovery.
    pub diagnostics: Vec<Diagnostic>,
}

impl Reader {
    /// A parser of one text; with `strict`, ignored input is an error.
    pub fn new(dialect: &'static Dialect, source: SourceId, strict: bool) -> Reader {
        Reader {
            dialect,
            source,
            strict,
            diagnostics: Vec::new(),
        }
    }

    /// The span of a range of the text.
    pub fn span(&self, range: Range) -> Span {
        Span::new(self.source, range.start, range.end)
    }

    /// Reports an error at a place.
    pub fn error(&mut self, code: Code, range: Range, message: String, label: &str) {
        let diagnostic = Diagnostic::error(code, message).label(self.span(range), label);
        self.diagnostics.push(diagnostic);
    }

    /// Reports something that is ignored: an error if strict.
    pub fn ignored(&mut self, diagnostic: Diagnostic) {
        let severity = if self.strict {
            Severity::Error
        } else {
            Severity::Warning
        };
        self.diagnostics.push(Diagnostic {
            severity,
            ..diagnostic
        });
    }

    /// Parses the text; `None` after an error without a partial result.
    pub fn parse<'t>(&mut self, text: &'t str) -> Option<Value<'t>> {
        if !self.check_size(text) {
            return None;
        }
        match first_excess(text, self.dialect.max_depth) {
            Some(Excess::Depth(at)) => {
                self.too_deep(at);
                return None;
            }
            Some(Excess::Count(at)) => {
                self.too_many(at);
                return None;
            }
            None => {}
        }
        if let Some(at) = first_foreign(text) {
            let range = in_text(text, Range::new(at, at + 1));
            let message = "not valid JSON".to_owned();
            let label = "this character can only be in a string";
            self.error(self.dialect.syntax, range, message, label);
            return None;
        }
        let strict = ParseOptions {
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
        };
        match parse_to_ast(text, &CollectOptions::default(), &strict) {
            Ok(parsed) => {
                if let Some(value) = &parsed.value {
                    self.check_keys(value);
                } else {
                    let message = "the text is empty".to_owned();
                    let range = Range::new(text.len(), text.len());
                    self.error(
                        self.dialect.syntax,
                        range,
                        message,
                        "expected a JSON object",
                    );
                }
                parsed.value
            }
            Err(error) => {
                let range = in_text(text, error.range());
                let message = "not valid JSON".to_owned();
                let kind = error.kind().to_string();
                let label = kind[..1].to_lowercase() + &kind[1..];
                self.error(self.dialect.syntax, range, message, &label);
                None
            }
        }
    }

    /// Whether the text is not too large; if it is, that is reported.
    pub fn check_size(&mut self, text: &str) -> bool {
        let Dialect {
            document,
            max_bytes,
            too_large,
            ..
        } = self.dialect;
        let fits = text.len() <= *max_bytes;
        if !fits {
            let message = format!("{document} has at most {max_bytes} bytes");
            self.error(*too_large, Range::new(0, 0), message, "");
        }
        fits
    }

    /// Reports that a level too many is opened at this byte.
    pub fn too_deep(&mut self, at: usize) {
        let max_depth = self.dialect.max_depth;
        let message = format!("nested more than {max_depth} levels deep");
        let range = Range::new(at, at);
        let label = "this is one level too many";
        self.error(self.dialect.nesting, range, message, label);
    }

    /// Reports that the text has too many values.
    pub fn too_many(&mut self, at: usize) {
        let range = Range::new(at, at);
        self.error(self.dialect.nesting, range, too_many_tokens(), "");
    }

    /// The diagnostics and limits of the text's language.
    pub fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    /// Reports every key that an object has twice.
    pub fn check_keys(&mut self, value: &Value) {
        match value {
            Value::Array(array) => array
                .elements
                .iter()
                .for_each(|value| self.check_keys(value)),
            Value::Object(object) => {
                let mut props: Vec<&ObjectProp> = object.properties.iter().collect();
                props.sort_by_key(|prop| prop.name.as_str());
                for pair in props.windows(2) {
                    let [first, second] = pair else { continue };
                    if first.name.as_str() == second.name.as_str() {
                        let message = format!("`{}` is given twice", first.name.as_str());
                        let diagnostic = Diagnostic::error(self.dialect.duplicate_key, message)
                            .label(self.span(second.name.range()), "given again here")
                            .label(self.span(first.name.range()), "first given here")
                            .help("delete one of them");
                        self.diagnostics.push(diagnostic);
                    }
                }
                for prop in &object.properties {
                    self.check_keys(&prop.value);
                }
            }
            Value::StringLit(_)
            | Value::NumberLit(_)
            | Value::BooleanLit(_)
            | Value::NullKeyword(_) => {}
        }
    }

    /// Reports a value of the wrong type.
    fn wrong_type(&mut self, value: &Value, what: &str, expected: &str) {
        let message = format!("{what} must be {expected}");
        let label = format!("this is {}", type_name(value));
        self.error(self.dialect.wrong_type, value.range(), message, &label);
    }

    /// The value as an object.
    pub fn object<'v, 't>(&mut self, value: &'v Value<'t>, what: &str) -> Option<&'v Object<'t>> {
        let object = value.as_object();
        if object.is_none() {
            self.wrong_type(value, what, "an object");
        }
        object
    }

    /// The value as an array.
    pub fn array<'v, 't>(&mut self, value: &'v Value<'t>, what: &str) -> Option<&'v Array<'t>> {
        let array = value.as_array();
        if array.is_none() {
            self.wrong_type(value, what, "an array");
        }
        array
    }

    /// The value as a string.
    pub fn string<'v, 't>(&mut self, value: &'v Value<'t>, what: &str) -> Option<&'v Cow<'t, str>> {
        let string = value.as_string_lit();
        if string.is_none() {
            self.wrong_type(value, what, "a string");
        }
        string.map(|literal| &literal.value)
    }

    /// The value as an array of strings, each with its place.
    pub fn strings<'v, 't>(
        &mut self,
        value: &'v Value<'t>,
        what: &str,
    ) -> Vec<(&'v Cow<'t, str>, Range)> {
        let Some(array) = self.array(value, what) else {
            return Vec::new();
        };
        let element = format!("an element of {what}");
        let mut strings = Vec::with_capacity(array.elements.len());
        for value in &array.elements {
            strings.extend(
                self.string(value, &element)
                    .map(|text| (text, value.range())),
            );
        }
        strings
    }

    /// The value as an unsigned integer of at most `max`.
    pub fn unsigned(&mut self, value: &Value, what: &str, max: u64) -> Option<u64> {
        let Some(number) = value.as_number_lit() else {
            self.wrong_type(value, what, "a non-negative integer");
            return None;
        };
        let has_leading_zero = number.value.len() > 1 && number.value.starts_with('0');
        let is_integer =
            !has_leading_zero && number.value.bytes().all(|byte| byte.is_ascii_digit());
        match number.value.parse::<u64>() {
            Ok(value) if is_integer && value <= max => return Some(value),
            _ if is_integer => {
                let message = format!("{what} must be at most {max}");
                self.error(self.dialect.range, number.range, message, "this is larger");
            }
            _ => {
                let message = format!("{what} must be a non-negative integer");
                let label = "write it in decimal digits, without sign, point or exponent";
                self.error(self.dialect.range, number.range, message, label);
            }
        }
        None
    }

    /// The value of a required member.
    pub fn required<'v, 't>(
        &mut self,
        object: &'v Object<'t>,
        key: &str,
        what: &str,
    ) -> Option<&'v Value<'t>> {
        let value = member(object, key);
        if value.is_none() {
            let message = format!("{what} needs `{key}`");
            let label = format!("`{key}` is missing here");
            let place = start_of(object.range);
            self.error(self.dialect.missing, place, message, &label);
        }
        value
    }

    /// The meaning of a name by a table, or an error.
    pub fn lookup<T: Copy>(
        &mut self,
        what: &str,
        name: &str,
        range: Range,
        table: &[(&str, T)],
    ) -> Option<T> {
        let found = table.iter().find(|(known, _)| *known == name);
        if found.is_none() {
            let known: Vec<&str> = table.iter().map(|(known, _)| *known).collect();
            let diagnostic = self.unknown_name(what, name, range, &known);
            self.diagnostics.push(diagnostic);
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// The error for an unknown name.
    pub fn unknown_name(&self, what: &str, name: &str, range: Range, known: &[&str]) -> Diagnostic {
        let message = format!("unknown {what} `{name}`");
        let diagnostic = Diagnostic::error(self.dialect.unknown_name, message)
            .label(self.span(range), "not one of the known names");
        match suggest::nearest_after_prefix(name, known) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic,
        }
    }

    /// Reports a member with an unknown key.
    pub fn unknown_member(&mut self, member: &ObjectProp, what: &str, known: &[&str]) {
        let key = member.name.as_str();
        let message = format!("{what} has no member `{key}`");
        let label = self.dialect.unknown_member_label;
        let span = self.span(member.name.range());
        let diagnostic = Diagnostic::warning(self.dialect.unknown_member, message);
        let diagnostic = diagnostic.label(span, label);
        self.ignored(match suggest::nearest(key, known.iter().copied()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic,
        });
    }
}

/// The value of a member; `null` counts as absent.
pub fn member<'v, 't>(object: &'v Object<'t>, key: &str) -> Option<&'v Value<'t>> {
    let prop = object
        .properties
        .iter()
        .find(|prop| prop.name.as_str() == key)?;
    (!matches!(prop.value, Value::NullKeyword(_))).then_some(&prop.value)
}

/// Whether Go's `encoding/json` takes a name for this key: in any case of ASCII letters, with the long s for an s and
/// the sign of the unit kelvin for a k, which are their other cases in Unicode.
///
/// ```
/// use tamis_diag::json::is_alike_in_go;
/// assert!(is_alike_in_go("SECCOMP", "seccomp") && is_alike_in_go("\u{212a}ey", "key"));
/// assert!(!is_alike_in_go("\u{e9}", "\u{c9}"));
/// ```
pub fn is_alike_in_go(name: &str, key: &str) -> bool {
    let folded = |sign: char| match sign {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        sign => sign.to_ascii_lowercase(),
    };
    name.chars().map(folded).eq(key.chars().map(folded))
}

/// Where an object begins: a label on the whole would fill the screen.
pub fn start_of(range: Range) -> Range {
    Range::new(range.start, range.start)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::StringLit(_) => "a string",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "a boolean",
        Value::Object(_) => "an object",
        Value::Array(_) => "an array",
        Value::NullKeyword(_) => "null",
    }
}

/// What a text has too many of, and where the first of them is.
enum Excess {
    Depth(usize),
    Count(usize),
}

/// The first bracket that opens a level too many, or the first value too many.
fn first_excess(text: &str, max_depth: usize) -> Option<Excess> {
    let mut depth = 0_usize;
    let mut count = 0_usize;
    outside_strings(text).find_map(|(at, byte)| match byte {
        b'{' | b'[' => {
            depth += 1;
            (depth > max_depth).then_some(Excess::Depth(at))
        }
        b'}' | b']' => {
            depth = depth.saturating_sub(1);
            None
        }
        b',' => {
            count += 1;
            (count > MAX_TOKENS).then_some(Excess::Count(at))
        }
        _ => None,
    })
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
fn in_text(text: &str, range: Range) -> Range {
    let start = text.floor_char_boundary(range.start.min(text.len()));
    let end = text.ceil_char_boundary(range.end.clamp(start, text.len()));
    Range::new(start, end)
}
