//! A line or a part of it, possibly joined from several lines, with the places of its bytes; and its words.
//!
//! systemd splits values in two ways. In both, a backslash escapes the next character, which may be white space. Lists
//! of calls and of namespaces keep quotes, so `"read"` is no call; lists of architectures and address families remove
//! them anywhere in a word.

use std::borrow::Cow;
use std::ops::Range;

use tamis_diag::{SourceId, Span};

use super::unit::{Piece, WHITE_SPACE};

/// Text with the places of its bytes.
#[derive(Clone, Debug)]
pub(super) struct Value<'t> {
    text: Cow<'t, str>,
    source: SourceId,
    /// The offset of the first byte in the source.
    start: u32,
    /// The first byte of each continuation line: its index in `text` and in the source. Few values have any.
    joined: Vec<(usize, usize)>,
}

/// The treatment of quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quotes {
    /// They are ordinary characters.
    Kept,
    /// They are removed, and white space between them belongs to the word.
    Removed,
}

/// A word without escapes and, if requested, without quotes.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) span: Span,
}

impl Word {
    pub(super) fn piece(&self) -> Piece<'_> {
        Piece {
            text: &self.text,
            span: self.span,
        }
    }
}

/// The words of a value.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) words: Vec<Word>,
    /// An unterminated last word, which systemd ignores.
    pub(super) unfinished: Option<Span>,
}

impl<'t> Value<'t> {
    /// A text that starts at this byte of a source.
    pub(super) fn new(source: SourceId, start: usize, text: &'t str) -> Value<'t> {
        Value {
            text: Cow::Borrowed(text),
            source,
            start: start as u32,
            joined: Vec::new(),
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn into_text(self) -> Cow<'t, str> {
        self.text
    }

    /// The span of the whole value.
    pub(super) fn span(&self) -> Span {
        self.place(0..self.text.len())
    }

    pub(super) fn piece(&self) -> Piece<'_> {
        Piece {
            text: &self.text,
            span: self.span(),
        }
    }

    /// The span of a range of bytes.
    pub(super) fn place(&self, range: Range<usize>) -> Span {
        let start = self.place_of(range.start);
        let end = match range.end.checked_sub(1) {
            Some(last) if range.start < range.end => self.place_of(last) + 1,
            _ => start,
        };
        Span::new(self.source, start, end)
    }

    fn place_of(&self, index: usize) -> usize {
        let later = self.joined.partition_point(|(start, _)| *start <= index);
        match later.checked_sub(1).map(|last| self.joined[last]) {
            Some((start, place)) => place + (index - start),
            None => self.start as usize + index,
        }
    }

    /// A part of the value.
    pub(super) fn slice(&self, range: Range<usize>) -> Value<'t> {
        let later = self.joined.iter();
        let later = later.filter(|(start, _)| *start > range.start && *start < range.end);
        let later = later.map(|(start, place)| (start - range.start, *place));
        let joined = later.collect();
        let start = self.place_of(range.start) as u32;
        let text = match &self.text {
            Cow::Borrowed(text) => Cow::Borrowed(&text[range]),
            Cow::Owned(text) => Cow::Owned(text[range].to_owned()),
        };
        Value {
            text,
            source: self.source,
            start,
            joined,
        }
    }

    /// The value without surrounding white space.
    pub(super) fn trim(&self) -> Value<'t> {
        let kept = self.text.trim_start_matches(WHITE_SPACE);
        let start = self.text.len() - kept.len();
        self.slice(start..start + kept.trim_end_matches(WHITE_SPACE).len())
    }

    /// The value with a space instead of the trailing backslash.
    pub(super) fn without_last_byte(self) -> Value<'t> {
        let mut text = self.text.into_owned();
        text.pop();
        text.push(' ');
        Value {
            text: Cow::Owned(text),
            ..self
        }
    }

    /// The value joined with another line.
    pub(super) fn join(mut self, line: &Value<'t>) -> Value<'t> {
        let length = self.text.len();
        let later = line.joined.iter();
        let later = later.map(|(start, place)| (length + start, *place));
        self.joined.push((length, line.start as usize));
        self.joined.extend(later);
        let mut text = self.text.into_owned();
        text.push_str(&line.text);
        Value {
            text: Cow::Owned(text),
            ..self
        }
    }

    /// Whether the value begins with `~`, and the rest.
    pub(super) fn without_tilde(&self) -> (bool, Value<'t>) {
        let is_inverted = self.text.starts_with('~');
        (
            is_inverted,
            self.slice(usize::from(is_inverted)..self.text.len()),
        )
    }

    /// The words of the value.
    pub(super) fn words(&self, quotes: Quotes) -> Words {
        let mut words = Words::default();
        let mut chars = self.text.char_indices().peekable();
        loop {
            while chars.next_if(|(_, c)| WHITE_SPACE.contains(c)).is_some() {}
            let Some((start, _)) = chars.peek().copied() else {
                return words;
            };
            let mut text = String::new();
            let mut quote = None;
            let mut is_escaped = false;
            let mut end = self.text.len();
            for (at, c) in chars.by_ref() {
                if is_escaped {
                    is_escaped = false;
                    text.push(c);
                } else if c == '\\' {
                    is_escaped = true;
                } else if quote == Some(c) {
                    quote = None;
                } else if quote.is_some() {
                    text.push(c);
                } else if quotes == Quotes::Removed && ['"', '\''].contains(&c) {
                    quote = Some(c);
                } else if WHITE_SPACE.contains(&c) {
                    end = at;
                    break;
                } else {
                    text.push(c);
                }
            }
            let span = self.place(start..end);
            if is_escaped || quote.is_some() {
                words.unfinished = Some(span);
                return words;
            }
            words.words.push(Word { text, span });
        }
    }
}
