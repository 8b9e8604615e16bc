//! Strict JSON with spans: objects, arrays, strings and integers, and errors for other values.
//!
//! Nothing beyond RFC 8259 is accepted, and the text of numbers is kept, so
//! 64-bit values are exact. Nesting and values are counted before that, and duplicate keys are looked for after it.
//! What is made is a [`Document`], whose size is in proportion to the text.

mod parse;
mod scan;

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Severity};
use crate::document::{Array, Content, Document, Member, Object, Range, Value};
use crate::limits::{MAX_DIAGNOSTICS, too_many_tokens};
use crate::source::{SourceId, Span};
use crate::suggest;

use parse::{Excess, count, parse};
pub use parse::{SyntaxError, parse_unlimited};

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
        self.push(diagnostic);
    }

    /// Reports something that is ignored: an error if strict.
    pub fn ignored(&mut self, diagnostic: Diagnostic) {
        let severity = if self.strict {
            Severity::Error
        } else {
            Severity::Warning
        };
        self.push(Diagnostic {
            severity,
            ..diagnostic
        });
    }

    /// Reports a diagnostic, unless the limit of its kind is reached: an untrusted text must not fill the memory.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if !self.has_enough(diagnostic.severity) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Whether as many errors, or others, are there as are reported.
    fn has_enough(&self, severity: Severity) -> bool {
        let is_error = |severity| severity == Severity::Error;
        let alike = self
            .diagnostics
            .iter()
            .filter(|diagnostic| is_error(diagnostic.severity) == is_error(severity));
        alike.count() >= MAX_DIAGNOSTICS
    }

    /// Whether [`ignored`](Self::ignored) has no effect any more.
    pub fn has_enough_ignored(&self) -> bool {
        self.has_enough(match self.strict {
            true => Severity::Error,
            false => Severity::Warning,
        })
    }

    /// Parses the text, one value; `None` after an error without a partial result.
    pub fn parse<'t>(&mut self, text: &'t str) -> Option<Document<'t>> {
        if !self.check_size(text) {
            return None;
        }
        let most_values = match count(text, self.dialect.max_depth) {
            Ok(values) => values,
            Err(Excess::Depth(at)) => {
                self.too_deep(at);
                return None;
            }
            Err(Excess::Count(at)) => {
                self.too_many(at);
                return None;
            }
        };
        match parse(text, most_values) {
            Ok(document) => {
                self.check_keys(&document);
                Some(document)
            }
            Err(error) => {
                let message = match error.is_json {
                    true => "the text is empty".to_owned(),
                    false => "not valid JSON".to_owned(),
                };
                self.error(self.dialect.syntax, error.range, message, &error.label);
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
    pub(crate) fn check_keys(&mut self, document: &Document<'_>) {
        let mut keys: Vec<(&str, Range)> = Vec::new();
        for object in document.objects() {
            keys.clear();
            keys.extend(
                object
                    .members()
                    .map(|member| (member.name, member.name_range)),
            );
            keys.sort_unstable_by_key(|(name, range)| (*name, range.start));
            for pair in keys.windows(2) {
                let [(first, first_range), (second, second_range)] = pair else {
                    continue;
                };
                if first == second {
                    let message = format!("`{first}` is given twice");
                    let diagnostic = Diagnostic::error(self.dialect.duplicate_key, message)
                        .label(self.span(*second_range), "given again here")
                        .label(self.span(*first_range), "first given here")
                        .help("delete one of them");
                    self.push(diagnostic);
                }
            }
        }
    }

    /// Reports a value of the wrong type.
    fn wrong_type(&mut self, value: Value<'_>, what: &str, expected: &str) {
        let message = format!("{what} must be {expected}");
        let label = format!("this is {}", type_name(value));
        self.error(self.dialect.wrong_type, value.range(), message, &label);
    }

    /// The value as an object.
    pub fn object<'d>(&mut self, value: Value<'d>, what: &str) -> Option<Object<'d>> {
        let object = value.as_object();
        if object.is_none() {
            self.wrong_type(value, what, "an object");
        }
        object
    }

    /// The value as an array.
    pub fn array<'d>(&mut self, value: Value<'d>, what: &str) -> Option<Array<'d>> {
        let array = value.as_array();
        if array.is_none() {
            self.wrong_type(value, what, "an array");
        }
        array
    }

    /// The value as a string.
    pub fn string<'d>(&mut self, value: Value<'d>, what: &str) -> Option<&'d str> {
        let string = value.as_text();
        if string.is_none() {
            self.wrong_type(value, what, "a string");
        }
        string
    }

    /// The value as an array of strings, each with its place; other elements are reported and left out.
    pub fn strings<'d>(
        &mut self,
        value: Value<'d>,
        what: &str,
    ) -> impl Iterator<Item = (&'d str, Range)> + use<'d> {
        let array = self.array(value, what);
        let element = format!("an element of {what}");
        for value in array.into_iter().flat_map(Array::elements) {
            self.string(value, &element);
        }
        let elements = array.into_iter().flat_map(Array::elements);
        elements.filter_map(|value| Some((value.as_text()?, value.range())))
    }

    /// The value as an unsigned integer of at most `max`.
    pub fn unsigned(&mut self, value: Value<'_>, what: &str, max: u64) -> Option<u64> {
        let Some(number) = value.as_number() else {
            self.wrong_type(value, what, "a non-negative integer");
            return None;
        };
        let has_leading_zero = number.len() > 1 && number.starts_with('0');
        let is_integer = !has_leading_zero && number.bytes().all(|byte| byte.is_ascii_digit());
        match number.parse::<u64>() {
            Ok(value) if is_integer && value <= max => return Some(value),
            _ if is_integer => {
                let message = format!("{what} must be at most {max}");
                self.error(self.dialect.range, value.range(), message, "this is larger");
            }
            _ => {
                let message = format!("{what} must be a non-negative integer");
                let label = "write it in decimal digits, without sign, point or exponent";
                self.error(self.dialect.range, value.range(), message, label);
            }
        }
        None
    }

    /// The value of a required member.
    pub fn required<'d>(&mut self, object: Object<'d>, key: &str, what: &str) -> Option<Value<'d>> {
        let value = member(object, key);
        if value.is_none() {
            let message = format!("{what} needs `{key}`");
            let label = format!("`{key}` is missing here");
            let place = start_of(object.range());
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
            self.push(diagnostic);
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
    pub fn unknown_member(&mut self, member: &Member<'_>, what: &str, known: &[&str]) {
        if self.has_enough_ignored() {
            return;
        }
        let key = member.name;
        let message = format!("{what} has no member `{key}`");
        let label = self.dialect.unknown_member_label;
        let span = self.span(member.name_range);
        let diagnostic = Diagnostic::warning(self.dialect.unknown_member, message);
        let diagnostic = diagnostic.label(span, label);
        self.ignored(match suggest::nearest(key, known.iter().copied()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic,
        });
    }
}

/// The value of a member; `null` counts as absent.
pub fn member<'d>(object: Object<'d>, key: &str) -> Option<Value<'d>> {
    let value = object.get(key)?.value;
    (!value.is_null()).then_some(value)
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

fn type_name(value: Value<'_>) -> &'static str {
    match value.content() {
        Content::Text(_) => "a string",
        Content::Number(_) => "a number",
        Content::Boolean(_) => "a boolean",
        Content::Object(_) => "an object",
        Content::Array(_) => "an array",
        Content::Null => "null",
    }
}
