//! TOML with places: words and lists with spans.
//!
//! Tables are in the order of the text. A value of the wrong type is reported with the expected type, and omitted.

use std::ops::Range;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};
use tamis_diag::{Diagnostic, SourceId, Span, suggest};

use super::Name;
use crate::code;
use crate::limits::MAX_MATRIX_SIGNS;
use crate::sink::Sink;

/// A value with its place.
pub(super) type Value<'t> = Spanned<DeValue<'t>>;

/// An entry of a table.
pub(super) type Entry<'a, 't> = (Name, &'a Value<'t>);

/// Converts values of a tree and reports those of the wrong type.
pub(super) struct Toml<'a> {
    pub(super) source: SourceId,
    pub(super) sink: &'a mut Sink,
}

impl Toml<'_> {
    /// The tree of the valid part of a text.
    pub(super) fn parse<'t>(&mut self, text: &'t str) -> DeTable<'t> {
        let is_sign = |byte: &u8| matches!(byte, b'=' | b',' | b'[' | b'{' | b'.' | b'\n');
        let mut signs = text.bytes().enumerate().filter(|(_, byte)| is_sign(byte));
        if let Some((at, _)) = signs.nth(MAX_MATRIX_SIGNS) {
            let message = format!("a matrix has at most {MAX_MATRIX_SIGNS} keys, values and lines");
            self.sink.stop(
                Diagnostic::error(code::MATRIX_LIMIT, message)
                    .label(self.span(&(at..at)), "reading stops here"),
            );
            return DeTable::new();
        }
        let (tree, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let span = self.span(&error.span().unwrap_or(text.len()..text.len()));
            let message = error
                .message()
                .lines()
                .next()
                .unwrap_or("not TOML")
                .to_owned();
            self.sink.report(
                Diagnostic::error(code::MATRIX_SYNTAX, message)
                    .label(span, "")
                    .note("a matrix of options is a TOML file"),
            );
        }
        tree.into_inner()
    }

    pub(super) fn span(&self, range: &Range<usize>) -> Span {
        Span::new(self.source, range.start, range.end)
    }

    pub(super) fn span_of<T>(&self, value: &Spanned<T>) -> Span {
        self.span(&value.span())
    }

    /// The entries of a table in the order of the text.
    pub(super) fn entries<'v, 't>(&self, table: &'v DeTable<'t>) -> Vec<Entry<'v, 't>> {
        let named = table.iter().map(|(key, value)| {
            let name = key.get_ref().to_string();
            let span = self.span_of(key);
            (Name { value: name, span }, value)
        });
        let mut entries: Vec<Entry<'v, 't>> = named.collect();
        entries.sort_by_key(|(name, _)| name.span);
        entries
    }

    /// The entries of a value that has to be a table.
    pub(super) fn table<'v, 't>(&mut self, key: &Name, value: &'v Value<'t>) -> Vec<Entry<'v, 't>> {
        match value.get_ref() {
            DeValue::Table(table) => self.entries(table),
            _ => {
                self.mistyped(key, value, "a table");
                Vec::new()
            }
        }
    }

    /// The same for a table with a limit of entries.
    pub(super) fn bounded_table<'v, 't>(
        &mut self,
        key: &Name,
        value: &'v Value<'t>,
        max_entries: usize,
    ) -> Vec<Entry<'v, 't>> {
        let mut entries = self.table(key, value);
        if let Some((name, _)) = entries.get(max_entries) {
            self.sink.report(
                Diagnostic::error(code::MATRIX_LIMIT, format!("`{key}` has too many entries"))
                    .label(name.span, "this and the following entries are ignored")
                    .note(format!(
                        "there are {}, and {max_entries} are possible",
                        entries.len()
                    )),
            );
            entries.truncate(max_entries);
        }
        entries
    }

    /// A text.
    pub(super) fn text(&mut self, key: &Name, value: &Value<'_>) -> Option<Name> {
        match value.get_ref() {
            DeValue::String(text) => Some(Name {
                value: text.to_string(),
                span: self.span_of(value),
            }),
            _ => {
                self.mistyped(key, value, "a text in quotes");
                None
            }
        }
    }

    /// A text, or a list of texts.
    pub(super) fn texts(&mut self, key: &Name, value: &Value<'_>) -> Vec<Name> {
        match value.get_ref() {
            DeValue::Array(list) => {
                let texts = list.iter().filter_map(|element| self.text(key, element));
                texts.collect()
            }
            _ => self.text(key, value).into_iter().collect(),
        }
    }

    /// Reports a value of the wrong type.
    pub(super) fn mistyped(&mut self, key: &Name, value: &Value<'_>, wanted: &str) {
        let found = match value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a number",
            DeValue::Float(_) => "a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.sink.report(
            Diagnostic::error(code::MATRIX_VALUE, format!("`{key}` has to be {wanted}"))
                .label(self.span_of(value), format!("this is {found}")),
        );
    }

    /// Reports an unknown key.
    pub(super) fn unknown_key(&mut self, key: &Name, whose: &str, known: &[&str]) {
        let diagnostic = Diagnostic::error(code::MATRIX_KEY, format!("{whose} has no key `{key}`"))
            .label(key.span, "");
        let near = suggest::nearest(&key.value, known.iter().copied());
        self.sink.report(match near {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help(format!("there are {}", known.join(", "))),
        });
    }
}
