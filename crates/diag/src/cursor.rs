//! A cursor in a text, for lexers.
//!
//! Every language has a separate lexer, because tokens and comments differ. Shared are the rest of the text, steps
//! over characters, words, lines and symbols, and spans.

use crate::{SourceId, Span};

/// A position in a text of the [`Sources`](crate::Sources), always on a character boundary.
///
/// ```
/// use tamis_diag::{Cursor, Sources};
///
/// let mut sources = Sources::new();
/// let source = sources.add("policy", "allow  read");
/// let mut cursor = Cursor::new(source, "allow  read");
/// assert_eq!(cursor.take_while(char::is_alphanumeric), "allow");
/// cursor.take_while(char::is_whitespace);
/// let start = cursor.at();
/// cursor.take_line();
/// assert_eq!(sources.snippet(cursor.span_from(start)), "read");
/// assert_eq!(cursor.first(), None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'t> {
    source: SourceId,
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    /// A cursor before the first character of a source's text.
    pub const fn new(source: SourceId, text: &'t str) -> Cursor<'t> {
        Cursor {
            source,
            text,
            at: 0,
        }
    }

    /// The offset in the text, in bytes.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// The same cursor for a text that ends after `length` more bytes. Offsets stay those of the whole text.
    ///
    /// # Panics
    /// If the rest is shorter, or a character would be split.
    #[must_use]
    pub fn limited_to(self, length: usize) -> Cursor<'t> {
        Cursor {
            text: &self.text[..self.at + length],
            ..self
        }
    }

    /// The rest of the text.
    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The next character; `None` at the end.
    pub fn first(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Whether the rest begins with this.
    pub fn is_before(&self, prefix: &str) -> bool {
        self.rest().starts_with(prefix)
    }

    /// Consumes this many bytes, or all that are left, and returns them.
    ///
    /// # Panics
    /// If a character would be split.
    pub fn take(&mut self, length: usize) -> &'t str {
        let rest = self.rest();
        let taken = &rest[..length.min(rest.len())];
        self.at += taken.len();
        taken
    }

    /// Consumes one character, if there is one.
    pub fn take_char(&mut self) -> Option<char> {
        let first = self.first()?;
        self.at += first.len_utf8();
        Some(first)
    }

    /// Consumes the characters for which `belongs` holds, and returns them.
    pub fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        self.take_until(|c: char| !belongs(c))
    }

    /// Consumes the rest of the line, without its line break, and returns it.
    pub fn take_line(&mut self) -> &'t str {
        self.take_until(|c| c == '\n')
    }

    /// Consumes the first of these symbols with which the rest begins, and returns it. Longer symbols must precede
    /// their own prefixes.
    pub fn take_symbol(&mut self, symbols: &[&'static str]) -> Option<&'static str> {
        let found = symbols.iter().find(|symbol| self.is_before(symbol))?;
        self.at += found.len();
        Some(found)
    }

    /// Consumes everything up to and including `end`, and returns it; `None`, and consumes nothing, if the rest
    /// doesn't contain it.
    pub fn take_through(&mut self, end: &str) -> Option<&'t str> {
        let before = self.rest().find(end)?;
        Some(self.take(before + end.len()))
    }

    /// The text from an earlier offset to here.
    pub fn text_from(&self, start: usize) -> &'t str {
        &self.text[start..self.at]
    }

    /// The span from an earlier offset to here.
    pub const fn span_from(&self, start: usize) -> Span {
        Span::new(self.source, start, self.at)
    }

    fn take_until(&mut self, ends: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        self.take(rest.find(ends).unwrap_or(rest.len()))
    }
}
