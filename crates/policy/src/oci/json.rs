//! Strict JSON with places: objects, arrays, strings and integers, and what to say when something
//! else is there.
//!
//! The text is parsed by `jsonc-parser` with every extension off; it keeps the text of numbers, so
//! 64-bit values are exact. The nesting is bounded before that, as the parser is recursive, and
//! duplicate keys are looked for after it.

use std::borrow::Cow;

use crate::limits;
use jsonc_parser::ast::{Array, Object, ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use tamis_diag::{Code, Diagnostic, Severity, SourceId, Span, code, suggest};

/// How deep objects and arrays may be nested.
const MAX_DEPTH: usize = limits::MAX_NESTING;

/// Collects what is wrong with one text.
#[derive(Debug)]
pub(super) struct Reader {
    source: SourceId,
    /// Whether what would be ignored is an error.
    strict: bool,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl Reader {
    pub(super) fn new(source: SourceId, strict: bool) -> Reader {
        Reader {
            source,
            strict,
            diagnostics: Vec::new(),
        }
    }

    /// The span of a range of the text.
    pub(super) fn span(&self, range: Range) -> Span {
        Span {
            source: self.source,
            start: range.start as u32,
            end: range.end as u32,
        }
    }

    /// Reports an error at a place.
    pub(super) fn error(&mut self, code: Code, range: Range, message: String, label: &str) {
        let diagnostic = Diagnostic::error(code, message).label(self.span(range), label);
        self.diagnostics.push(diagnostic);
    }

    /// Reports something that is ignored: an error if strict.
    pub(super) fn ignored(&mut self, diagnostic: Diagnostic) {
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

    /// Parses the text; `None` after an error that leaves nothing to look at.
    pub(super) fn parse<'t>(&mut self, text: &'t str) -> Option<Value<'t>> {
        if text.len() > limits::MAX_SOURCE_BYTES {
            let message = format!("a profile has at most {} bytes", limits::MAX_SOURCE_BYTES);
            self.error(code::FILE_TOO_LARGE, Range::new(0, 0), message, "");
            return None;
        }
        if let Some(at) = first_too_deep(text) {
            let range = Range::new(at, at + 1);
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            self.error(
                code::OCI_NESTING,
                range,
                message,
                "this is one level too many",
            );
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
                    self.error(code::JSON_SYNTAX, range, message, "expected a JSON object");
                }
                parsed.value
            }
            Err(error) => {
                let range = in_text(text, error.range());
                let message = "not valid JSON".to_owned();
                let kind = error.kind().to_string();
                let label = kind[..1].to_lowercase() + &kind[1..];
                self.error(code::JSON_SYNTAX, range, message, &label);
                None
            }
        }
    }

    /// Reports every key that an object has twice.
    fn check_keys(&mut self, value: &Value) {
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
                        let diagnostic = Diagnostic::error(code::OCI_DUPLICATE_KEY, message)
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
        self.error(code::OCI_TYPE, value.range(), message, &label);
    }

    /// The value as an object.
    pub(super) fn object<'v, 't>(
        &mut self,
        value: &'v Value<'t>,
        what: &str,
    ) -> Option<&'v Object<'t>> {
        let object = value.as_object();
        if object.is_none() {
            self.wrong_type(value, what, "an object");
        }
        object
    }

    /// The value as an array.
    pub(super) fn array<'v, 't>(
        &mut self,
        value: &'v Value<'t>,
        what: &str,
    ) -> Option<&'v Array<'t>> {
        let array = value.as_array();
        if array.is_none() {
            self.wrong_type(value, what, "an array");
        }
        array
    }

    /// The value as a string.
    pub(super) fn string<'v, 't>(
        &mut self,
        value: &'v Value<'t>,
        what: &str,
    ) -> Option<&'v Cow<'t, str>> {
        let string = value.as_string_lit();
        if string.is_none() {
            self.wrong_type(value, what, "a string");
        }
        string.map(|literal| &literal.value)
    }

    /// The value as an array of strings, each with its place.
    pub(super) fn strings<'v, 't>(
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
    pub(super) fn unsigned(&mut self, value: &Value, what: &str, max: u64) -> Option<u64> {
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
                self.error(code::OCI_RANGE, number.range, message, "this is larger");
            }
            _ => {
                let message = format!("{what} must be a non-negative integer");
                let label = "write it in decimal digits, without sign, point or exponent";
                self.error(code::OCI_RANGE, number.range, message, label);
            }
        }
        None
    }

    /// Reports members whose keys are known ones but for the case of letters.
    ///
    /// Engines written in Go take such a member for the known one, others ignore it, so there is no
    /// meaning to follow.
    pub(super) fn check_case(&mut self, object: &Object, known: &[&str]) {
        for prop in &object.properties {
            let key = prop.name.as_str();
            let Some(meant) = known_but_for_case(key, known) else {
                continue;
            };
            let message = format!("`{key}` is `{meant}` to some container engines only");
            let diagnostic = Diagnostic::error(code::OCI_MEMBER_CASE, message)
                .label(self.span(prop.name.range()), "its letters have the wrong case")
                .note("engines written in Go, such as runc, ignore case here; others, such as crun, don't")
                .help(format!("write `{meant}`"));
            self.diagnostics.push(diagnostic);
        }
    }

    /// Reports members whose keys are not known.
    pub(super) fn check_members(&mut self, object: &Object, what: &str, known: &[&str]) {
        self.check_case(object, known);
        for prop in &object.properties {
            let key = prop.name.as_str();
            if known.contains(&key) || known_but_for_case(key, known).is_some() {
                continue;
            }
            let message = format!("{what} has no member `{key}`");
            let mut diagnostic = Diagnostic::warning(code::OCI_UNKNOWN_MEMBER, message).label(
                self.span(prop.name.range()),
                "container engines ignore this",
            );
            if let Some(near) = suggest::nearest(key, known.iter().copied()) {
                diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
            }
            self.ignored(diagnostic);
        }
    }
}

/// The value of a member; `null` counts as absent.
pub(super) fn member<'v, 't>(object: &'v Object<'t>, key: &str) -> Option<&'v Value<'t>> {
    let prop = object
        .properties
        .iter()
        .find(|prop| prop.name.as_str() == key)?;
    (!matches!(prop.value, Value::NullKeyword(_))).then_some(&prop.value)
}

/// The known key that Go's `encoding/json` takes another one for.
fn known_but_for_case<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    // Beside the letters of ASCII, two characters fold to one: the long s and the sign for kelvin.
    let folded: String = key
        .chars()
        .map(|letter| match letter {
            '\u{17f}' => 's',
            '\u{212a}' => 'k',
            other => other.to_ascii_lowercase(),
        })
        .collect();
    let mut known = known.iter().copied();
    known.find(|known| *known != key && known.eq_ignore_ascii_case(&folded))
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

/// The place of the first bracket that opens a level too many.
fn first_too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Some(at);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// A range that lies in the text on character boundaries, whatever the parser reports.
fn in_text(text: &str, range: Range) -> Range {
    let start = text.floor_char_boundary(range.start.min(text.len()));
    let end = text.ceil_char_boundary(range.end.clamp(start, text.len()));
    Range::new(start, end)
}
