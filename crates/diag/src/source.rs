//! The texts that diagnostics point into.
//!
//! Every text gets a [`SourceId`]; a [`Span`] is a byte range of one of them. The text is UTF-8: the caller reads
//! and decodes it.

use std::sync::Arc;

/// The index of a text in [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(u32);

/// A byte range of one source; `start <= end`, both on character boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The source.
    pub source: SourceId,
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// The bytes from `start` to before `end`. Offsets have 32 bits, see [`Sources::add`].
    pub const fn new(source: SourceId, start: usize, end: usize) -> Span {
        Span {
            source,
            start: start as u32,
            end: end as u32,
        }
    }

    /// The empty span after it.
    #[must_use]
    pub const fn after(self) -> Span {
        Span {
            start: self.end,
            ..self
        }
    }

    /// The smallest span that covers both; `other` must be in the same source.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        debug_assert_eq!(self.source, other.source, "a span lies in one source");
        Span {
            source: self.source,
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

/// A line and a column, both counted from 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

/// One text with the name that diagnostics show for it.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name for the user: a path, or `<stdin>`.
    pub name: Arc<str>,
    /// The text.
    pub text: Arc<str>,
    /// The byte offset of each line's first character.
    line_starts: Vec<u32>,
    /// Whether every character is one byte.
    is_ascii: bool,
}

impl Source {
    /// The line of this number, from 1, with its newline, and its place in the text; `None` beyond the last line.
    pub fn line(&self, number: u32) -> Option<(usize, &str)> {
        let index = number.checked_sub(1)? as usize;
        let start = *self.line_starts.get(index)? as usize;
        let next = self.line_starts.get(index + 1);
        let end = next.map_or(self.text.len(), |next| *next as usize);
        (start < end).then(|| (start, &self.text[start..end]))
    }
}

/// All texts of one run, in the order of reading.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    /// No texts yet.
    pub fn new() -> Sources {
        Sources::default()
    }

    /// Registers a text. The caller must reject texts of 4 GiB or more: offsets have 32 bits.
    pub fn add(&mut self, name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> SourceId {
        let text: Arc<str> = text.into();
        let newlines = text.match_indices('\n');
        let line_starts = std::iter::once(0)
            .chain(newlines.map(|(at, _)| at as u32 + 1))
            .collect();
        self.files.push(Source {
            name: name.into(),
            is_ascii: text.is_ascii(),
            text,
            line_starts,
        });
        SourceId(self.files.len() as u32 - 1)
    }

    /// The source with this id, which must come from this collection.
    ///
    /// # Panics
    /// If the id is from another collection.
    pub fn get(&self, id: SourceId) -> &Source {
        &self.files[id.0 as usize]
    }

    /// All sources, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.files.iter()
    }

    /// All sources with their ids, in the order in which they were added.
    pub fn with_ids(&self) -> impl Iterator<Item = (SourceId, &Source)> {
        (0..).map(SourceId).zip(&self.files)
    }

    /// The source's name.
    pub fn name(&self, id: SourceId) -> &Arc<str> {
        &self.get(id).name
    }

    /// The text of a span.
    pub fn snippet(&self, span: Span) -> &str {
        &self.get(span.source).text[span.start as usize..span.end as usize]
    }

    /// The line and column of a span's beginning. Logarithmic in the number of lines; linear in the length of the
    /// line if the text is not all ASCII.
    pub fn position(&self, span: Span) -> Position {
        let source = self.get(span.source);
        let line = source
            .line_starts
            .partition_point(|start| *start <= span.start);
        let line_start = source.line_starts[line - 1] as usize;
        let before = &source.text[line_start..span.start as usize];
        Position {
            line: line as u32,
            column: if source.is_ascii {
                before.len() as u32 + 1
            } else {
                before.chars().count() as u32 + 1
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_counts_characters_not_bytes() {
        let mut sources = Sources::new();
        let source = sources.add("a", "x\näöü!\n");
        let span = Span {
            source,
            start: 8,
            end: 9,
        };
        assert_eq!(sources.snippet(span), "!");
        assert_eq!(sources.position(span), Position { line: 2, column: 4 });
    }

    #[test]
    fn lines_have_numbers_from_1() {
        let mut sources = Sources::new();
        let source = sources.add("a", "x\n\nyz");
        let line = |number| sources.get(source).line(number);
        assert_eq!(
            [line(1), line(2), line(3)],
            [Some((0, "x\n")), Some((2, "\n")), Some((3, "yz"))]
        );
        assert_eq!([line(0), line(4)], [None, None]);
        let ended = sources.add("b", "x\n");
        assert_eq!(sources.get(ended).line(2), None);
    }

    #[test]
    fn position_at_the_end_of_the_text_is_on_its_last_line() {
        let mut sources = Sources::new();
        let source = sources.add("a", "x\ny");
        let span = Span {
            source,
            start: 3,
            end: 3,
        };
        assert_eq!(sources.position(span), Position { line: 2, column: 2 });
    }
}
