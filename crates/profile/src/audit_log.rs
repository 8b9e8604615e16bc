//! Logs with audit records of seccomp: finds the records in every form in which tools print them.
//!
//! The kernel writes a record once. It is then printed by the kernel's log, the journal, auditd, syslog daemons and wrappers
//! of containers, each with words of its own around it, as lines, as fields of an entry or in JSON. This module takes the
//! words away: `header` judges who wrote a line, `entry` reads entries of fields, `json` reads JSON, and `record` reads
//! the record that is left. A line that looks like a record and isn't read is handed over, too, with the reason.
//!
//! Anyone can have a line logged that looks like a record. So a record says whether its line names the kernel or its audit as
//! the writer, or nobody; lines of other programs are never read.
//!
//! Linear in the text; no I/O. Other kinds of records, of the same event or not, are skipped: SECCOMP records have no
//! arguments, and the kernel writes the SYSCALL record that has them only for calls that an audit rule watches.

mod entry;
mod header;
mod json;
mod record;

use std::borrow::Cow;

use tamis_abi::Arch;
use tamis_diag::SourceId;

pub(crate) use header::is_of_system;
pub(crate) use json::of_entry;
pub use record::Record;

use crate::collect::{Word, lines};
use entry::Entries;

/// Who wrote a line, as far as it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Writer {
    /// Nobody is named: the line was printed without its header, or by the wrapper of a container.
    Unnamed,
    /// The kernel or its audit, by the line's own words.
    System,
}

/// Why something that looks like a record isn't read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unread {
    /// Another program than the kernel and its audit wrote it.
    Program,
    /// It is a summary without the call.
    Summary,
    /// The call or its architecture is missing, or isn't known.
    Call,
    /// It is in a form that isn't known.
    Form,
}

impl Unread {
    /// The reason, as the end of a sentence.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Unread::Program => {
                "neither the kernel nor its audit wrote them, and anyone can have such a line logged"
            }
            Unread::Summary => {
                "this form leaves out the call: print records with `ausearch --format raw`"
            }
            Unread::Call => "the call of the record is missing or isn't known",
            Unread::Form => "the words around the record are of no known form",
        }
    }
}

/// A record with its writer, or why there is none.
pub(crate) type Found = Result<(Record, Writer), Unread>;

/// What is done with each place of a log that is a record or looks like one.
pub(crate) type Take<'a, 't> = &'a mut dyn FnMut(Word<'t>, Found);

/// What `ausearch --format text` and `csv` call a record.
const SUMMARIES: [&str; 2] = ["violated-seccomp-policy", ",SECCOMP,"];

/// Hands over each record of a log, and each line that looks like one. `assumed` is the architecture of records that have none:
/// those of kernels before 3.16, and those of tools that print the name of the call alone.
pub(crate) fn each<'t>(text: &'t str, source: SourceId, assumed: Arch, take: Take<'_, 't>) {
    let mut entries = Entries::new(assumed);
    let mut values = Values {
        text,
        source,
        assumed,
        is_within_lines: false,
    };
    let mut next = 0;
    for line in lines(text) {
        if line.start < next {
            continue;
        }
        if let Some(end) = values.read(line, take) {
            next = end;
        } else if !entries.add(line, take)
            && let Some(found) = line_of(line.text, assumed)
        {
            take(line, found);
        }
    }
    entries.finish(take);
}

/// The JSON values of a log.
struct Values<'t> {
    text: &'t str,
    source: SourceId,
    assumed: Arch,
    /// Whether values are looked for within lines alone: after one that doesn't end or isn't JSON, so that no text is read
    /// more often than twice.
    is_within_lines: bool,
}

impl<'t> Values<'t> {
    /// Where the value that begins with a line ends, if it does: nothing stands behind it. Its records are handed over.
    fn read(&mut self, line: Word<'t>, take: Take<'_, 't>) -> Option<usize> {
        // A sequence of texts has a byte before each, server-sent events a word.
        let begun = line.text.trim_start_matches(['\u{1e}', ' ', '\t']);
        let begun = begun.strip_prefix("data: ").unwrap_or(begun);
        if !begun.starts_with(['{', '[']) {
            return None;
        }
        let start = line.start + (line.text.len() - begun.len());
        let rest = match self.is_within_lines {
            true => begun,
            false => &self.text[start..],
        };
        let Some(len) = json::len(rest) else {
            self.is_within_lines = true;
            return None;
        };
        let (value, behind) = rest.split_at(len);
        let is_last = behind.lines().next().unwrap_or_default().trim().is_empty();
        let text = self.text;
        let is_read = is_last
            && json::read(value, self.source, self.assumed, &mut |range, found| {
                let (start, end) = (start + range.start, start + range.end);
                let text = &text[start..end];
                take(Word { text, start }, found);
            });
        self.is_within_lines |= !is_read && len > begun.len();
        is_read.then_some(start + len)
    }
}

/// The record of a line of text; `None` if it looks like nothing of the sort.
pub(crate) fn line_of(line: &str, assumed: Arch) -> Option<Found> {
    let line = without_colours(line);
    let line = line.trim_end();
    if let Some(found) = record::of_enricher(line, assumed) {
        return Some(found);
    }
    let Some((header, body)) = header::split(line) else {
        return without_beginning(line, assumed);
    };
    let Some(writer) = header::writer(header, body) else {
        return Some(Err(Unread::Program));
    };
    Some(record::read(body, assumed).map(|record| (record, writer)))
}

/// What is found in a line in which no record begins: fields alone, a summary, or what has the words of a record.
fn without_beginning(line: &str, assumed: Arch) -> Option<Found> {
    if SUMMARIES.iter().any(|words| line.contains(words)) {
        return Some(Err(Unread::Summary));
    }
    let fields = [" syscall=", " compat=", " ip=", " code="];
    let has_fields = fields.iter().all(|field| line.contains(field));
    if has_fields && line.starts_with("auid=") {
        return Some(record::read(line, assumed).map(|record| (record, Writer::Unnamed)));
    }
    let types = ["type=1326 ", "type=SECCOMP "];
    let is_alike = has_fields || types.iter().any(|words| line.contains(words));
    is_alike.then_some(Err(Unread::Form))
}

/// A line without the sequences by which terminals colour it.
fn without_colours(line: &str) -> Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line);
    }
    let mut parts = line.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_final = |c: char| ('\u{40}'..='\u{7e}').contains(&c);
        plain.push_str(match part.strip_prefix('[') {
            Some(sequence) => sequence.split_once(is_final).map_or("", |(_, rest)| rest),
            None => part.get(1..).unwrap_or_default(),
        });
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests;
