//! YAML as JSON values with source positions, for resources of Kubernetes.
//!
//! The events of `saphyr-parser` become the values that the [JSON reader](crate::json) gives, so one reader of a language
//! serves both. Plain scalars have the types that Kubernetes gives them: numbers, booleans (also `yes`, `off` and the
//! like), `null` or text. Anchors, aliases, tags and merge keys are rejected, because a reviewer would not see
//! their effect. Numbers keep their text, and the readers accept only decimal ones.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use crate::Code;
use crate::document::{Builder, Document, Opened, Range, Scalar};
use crate::json::Reader;
use crate::limits::{MAX_DIAGNOSTICS, MAX_TOKENS};

/// The documents of a text; `None` after an error that prevents further parsing. `unread` is the code for YAML
/// features that are rejected.
pub fn documents<'t>(reader: &mut Reader, text: &'t str, unread: Code) -> Option<Document<'t>> {
    if !reader.check_size(text) {
        return None;
    }
    let mut events = Events {
        reader,
        unread,
        offsets: Offsets::new(text),
        builder: Builder::new(text, 0),
        keys: Vec::new(),
        failed: false,
    };
    events.read()?;
    let Events {
        builder, failed, ..
    } = events;
    let documents = builder.finish()?;
    reader.check_keys(&documents);
    (!failed).then_some(documents)
}

/// Converts character offsets, which the parser gives, to byte offsets.
struct Offsets<'t> {
    text: &'t str,
    is_ascii: bool,
    /// The last character offset and its byte offset. Most queries are in ascending order.
    last: (usize, usize),
}

impl<'t> Offsets<'t> {
    fn new(text: &'t str) -> Offsets<'t> {
        Offsets {
            text,
            is_ascii: text.is_ascii(),
            last: (0, 0),
        }
    }

    fn byte(&mut self, character: usize) -> usize {
        if self.is_ascii {
            return character.min(self.text.len());
        }
        let (mut at, mut byte) = self.last;
        if character < at {
            (at, byte) = (0, 0);
        }
        let rest = &self.text[byte..];
        let ahead = rest.char_indices().nth(character - at);
        byte += ahead.map_or(rest.len(), |(offset, _)| offset);
        self.last = match ahead {
            Some(_) => (character, byte),
            None => (0, 0),
        };
        byte
    }

    fn range(&mut self, span: Span) -> Range {
        let start = self.byte(span.start.index());
        Range::new(start, self.byte(span.end.index()).max(start))
    }
}

struct Events<'r, 't> {
    reader: &'r mut Reader,
    unread: Code,
    offsets: Offsets<'t>,
    builder: Builder<'t>,
    /// For each open sequence or mapping, whether its next value is a key.
    keys: Vec<bool>,
    failed: bool,
}

impl Events<'_, '_> {
    /// Reads to the end, or to the first syntax error.
    fn read(&mut self) -> Option<()> {
        let mut parser = Parser::new_from_str(self.offsets.text);
        let mut count = 0;
        while let Some(event) = parser.next_event() {
            let (event, span) = match event {
                Ok(event) => event,
                Err(error) => {
                    let start = self.offsets.byte(error.marker().index());
                    let end = self.offsets.text.ceil_char_boundary(start + 1);
                    let range = Range::new(start, end.max(start));
                    let code = self.reader.dialect().syntax;
                    let message = "not valid YAML".to_owned();
                    self.reader.error(code, range, message, error.info());
                    return None;
                }
            };
            let range = self.offsets.range(span);
            count += 1;
            if count > MAX_TOKENS {
                self.reader.too_many(range.start);
                return None;
            }
            self.take(event, range)?;
            if self.reader.diagnostics.len() >= MAX_DIAGNOSTICS {
                return None;
            }
        }
        Some(())
    }

    fn take(&mut self, event: Event<'_>, range: Range) -> Option<()> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_anchor(anchor, range);
                self.refuse_tag(tag.is_some(), range);
                self.scalar(&text, style, range);
            }
            Event::Alias(_) => {
                self.refuse(range, "YAML aliases", "write its value");
                self.scalar("", ScalarStyle::Plain, range);
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_anchor(anchor, range);
                self.refuse_tag(tag.is_some(), range);
                self.enter(Opened::Array, range)?;
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_anchor(anchor, range);
                self.refuse_tag(tag.is_some(), range);
                self.enter(Opened::Object, range)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.leave(range)?,
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => {}
        }
        Some(())
    }

    fn enter(&mut self, opened: Opened, range: Range) -> Option<()> {
        if self.builder.depth() >= self.reader.dialect().max_depth {
            self.reader.too_deep(range.start);
            return None;
        }
        self.builder.open(opened, range);
        self.keys.push(opened == Opened::Object);
        Some(())
    }

    fn leave(&mut self, range: Range) -> Option<()> {
        self.keys.pop();
        let at = self.builder.close(range.end)?;
        if self.is_key() {
            let start = Range::new(self.builder.start(at), self.builder.start(at));
            self.refuse(
                start,
                "keys that are not strings",
                "only a string can be a key",
            );
            self.builder.truncate(at);
            self.builder.add(Scalar::Text(""), start);
        }
        self.added();
        Some(())
    }

    /// Whether the next value is a key.
    fn is_key(&self) -> bool {
        self.builder.innermost() == Some(Opened::Object) && self.keys.last() == Some(&true)
    }

    /// Goes on behind a value or key.
    fn added(&mut self) {
        if self.builder.innermost() == Some(Opened::Object)
            && let Some(is_key) = self.keys.last_mut()
        {
            *is_key = !*is_key;
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, range: Range) {
        let written = self.offsets.text.get(range.start..range.end);
        let value = match style {
            ScalarStyle::Plain => plain(text, written),
            _ => Scalar::Text(text),
        };
        let value = match value {
            _ if !self.is_key() => value,
            Scalar::Text("<<") => {
                self.refuse(range, "YAML merge keys", "write the merged keys out");
                value
            }
            Scalar::Text(_) => value,
            // A key is a string, whatever it looks like.
            Scalar::Null | Scalar::Boolean(_) | Scalar::Number => {
                Scalar::Text(written.unwrap_or_default())
            }
        };
        self.builder.add(value, range);
        self.added();
    }

    fn refuse_anchor(&mut self, anchor: usize, range: Range) {
        if anchor != 0 {
            let start = Range::new(range.start, range.start);
            self.refuse(
                start,
                "YAML anchors",
                "this has one: delete `&` and the name",
            );
        }
    }

    fn refuse_tag(&mut self, is_tagged: bool, range: Range) {
        if is_tagged {
            let start = Range::new(range.start, range.start);
            self.refuse(start, "YAML tags", "this has one: delete `!` and the name");
        }
    }

    fn refuse(&mut self, range: Range, what: &str, label: &str) {
        self.failed = true;
        let message = format!("{what} are not supported");
        self.reader.error(self.unread, range, message, label);
    }
}

/// The scalar of a plain text; `written` is its form in the source, if it has no escapes.
fn plain<'s>(text: &'s str, written: Option<&str>) -> Scalar<'s> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        word if let Some(value) = boolean(word) => Scalar::Boolean(value),
        number if written == Some(number) && is_number(number) => Scalar::Number,
        text => Scalar::Text(text),
    }
}

/// The words that Kubernetes parses as booleans.
fn boolean(word: &str) -> Option<bool> {
    match word {
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// Whether a plain scalar is a number in any of YAML's notations.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = |text: &str, radix: u32| {
        let is_digit = |letter: char| letter == '_' || letter.is_digit(radix);
        text.chars().any(|letter| letter != '_') && text.chars().all(is_digit)
    };
    let (head, tail) = unsigned.split_at_checked(2).unwrap_or((unsigned, ""));
    match head {
        "0x" | "0X" => return digits(tail, 16),
        "0o" | "0O" => return digits(tail, 8),
        "0b" | "0B" => return digits(tail, 2),
        _ => {}
    }
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return true;
    }
    let begins = unsigned.trim_start_matches('.');
    begins.starts_with(|letter: char| letter.is_ascii_digit())
        && (digits(unsigned, 10) || unsigned.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_are_what_kubernetes_takes_them_for() {
        for number in [
            "0", "-1", "+1", "0x1f", "0o17", "017", "1_000", "1.5", ".5", "1e3",
        ] {
            assert!(is_number(number), "{number}");
        }
        for text in [
            "", "-", "0x", "0xg", "1.2.3", "read", "_", "e3", "..5", "1a",
        ] {
            assert!(!is_number(text), "{text}");
        }
        assert_eq!(boolean("Yes"), Some(true));
        assert_eq!(boolean("OFF"), Some(false));
        assert_eq!(boolean("yEs"), None);
        assert_eq!(boolean("ye"), None);
    }

    #[test]
    fn bytes_are_found_in_any_order() {
        let mut offsets = Offsets::new("aä€b");
        assert_eq!(
            [3, 1, 2, 4, 0, 9].map(|at| offsets.byte(at)),
            [6, 1, 3, 7, 0, 7]
        );
    }
}
