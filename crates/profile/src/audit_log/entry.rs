//! Entries of the journal as fields, a line each: `journalctl -o verbose` and `-o export`.
//!
//! Only the journal itself can set fields with a leading `_`, so they identify the writer. In `verbose`, the lines of a
//! long message are indented more than fields. In `export`, a message with line feeds is written as bytes after its
//! length. Text doesn't preserve the length, so the end of the entry is unknown, and from then on no writer is trusted.

use tamis_abi::Arch;

use super::{RecordSink, Writer, json::Sender};
use crate::collect::Word;

/// Reads entries, line by line.
pub(super) struct Entries<'t> {
    assumed: Arch,
    entry: Option<Entry<'t>>,
    /// Whether a field of bytes has been read.
    has_bytes: bool,
}

/// The relevant fields of an entry.
#[derive(Default)]
struct Entry<'t> {
    indent: usize,
    sender: Sender,
    message: Option<Word<'t>>,
    /// Whether the last line named a field with following bytes.
    is_open: bool,
}

impl<'t> Entries<'t> {
    pub(super) fn new(assumed: Arch) -> Entries<'t> {
        Entries {
            assumed,
            entry: None,
            has_bytes: false,
        }
    }

    /// Whether a line belongs to an entry; calls `take` for the record of a completed one.
    pub(super) fn add(&mut self, line: Word<'t>, take: RecordSink<'_, 't>) -> bool {
        let text = line.text.trim_start_matches(' ');
        let indent = line.text.len() - text.len();
        if let Some(entry) = &mut self.entry {
            if entry.is_open {
                (entry.is_open, entry.message) = (false, Some(line));
                return true;
            }
            // A continuation line of a value.
            if indent > entry.indent {
                return true;
            }
        }
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        if !is_name(name) || (value.is_none() && self.entry.is_none()) {
            self.finish(take);
            return false;
        }
        let entry = self.entry.get_or_insert_with(|| Entry {
            indent,
            ..Entry::default()
        });
        match value {
            None => {
                self.has_bytes = true;
                entry.is_open = name == "MESSAGE";
            }
            Some(value) if name == "MESSAGE" => {
                let start = line.start + (line.text.len() - value.len());
                entry.message = Some(Word { text: value, start });
            }
            Some(value) => entry.sender.set(name, value),
        }
        true
    }

    /// Calls `take` for the record of the last entry.
    pub(super) fn finish(&mut self, take: RecordSink<'_, 't>) {
        let Some(entry) = self.entry.take() else {
            return;
        };
        let Some(message) = entry.message else {
            return;
        };
        if let Some(found) = entry.sender.judged(message.text, self.assumed) {
            let found = found.map(|(record, writer)| match self.has_bytes {
                true => (record, Writer::Unnamed),
                false => (record, writer),
            });
            take(message, found);
        }
    }
}

/// Whether a text is the name of a field: capitals, digits and `_`.
fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    text.starts_with(|first: char| first.is_ascii_uppercase() || first == '_')
        && text.chars().all(is_part)
}
