//! Entries of the journal as fields, a line each: `journalctl -o verbose` and `-o export`.
//!
//! Fields whose names begin with `_` are the journal's own, so an entry says who wrote it. In `verbose` the lines of a long
//! message are indented more than fields. In `export` a message with line feeds is written as bytes behind its length, which
//! text doesn't keep: from then on nothing says where an entry ends, and no writer is believed.

use tamis_abi::Arch;

use super::{Take, Writer, json::Sender};
use crate::collect::Word;

/// Reads entries, line by line.
pub(super) struct Entries<'t> {
    assumed: Arch,
    entry: Option<Entry<'t>>,
    /// Whether a field of bytes has been seen.
    has_bytes: bool,
}

/// The fields of an entry that count.
#[derive(Default)]
struct Entry<'t> {
    indent: usize,
    sender: Sender,
    message: Option<Word<'t>>,
    /// Whether the last line named a field whose bytes follow.
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

    /// Whether a line belongs to an entry. What ends an entry is handed over.
    pub(super) fn add(&mut self, line: Word<'t>, take: Take<'_, 't>) -> bool {
        let text = line.text.trim_start_matches(' ');
        let indent = line.text.len() - text.len();
        if let Some(entry) = &mut self.entry {
            if entry.is_open {
                (entry.is_open, entry.message) = (false, Some(line));
                return true;
            }
            // A further line of a value.
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

    /// Hands over what the last entry has.
    pub(super) fn finish(&mut self, take: Take<'_, 't>) {
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

/// Whether this is the name of a field: capitals, digits and `_`.
fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    text.starts_with(|first: char| first.is_ascii_uppercase() || first == '_')
        && text.chars().all(is_part)
}
