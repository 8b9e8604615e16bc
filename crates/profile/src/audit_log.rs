//! Logs with seccomp audit records: finds the records in every output format of tools.
//!
//! The kernel writes a record once. The kernel's log, the journal, auditd, syslog daemons and wrappers of containers
//! then print it as a line, as fields of an entry or in JSON, each with its own header. This module removes the
//! headers: `header` determines the writer of a line, `entry` reads entries of fields, `json` reads JSON, and `record`
//! parses the remaining record. A line that resembles a record but can't be read is reported with the reason.
//!
//! Any program can log a line that resembles a record. So a record states whether its line names the kernel or its
//! audit as the writer, or no writer; lines of other programs are never read.
//!
//! Linear in the text; no I/O. Other kinds of records are skipped: SECCOMP records have no arguments, and the kernel
//! writes the SYSCALL record of the same event, which has them, only for calls with an audit rule.

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

/// The stated writer of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Writer {
    /// None: the line was printed without its header, or by the wrapper of a container.
    Unnamed,
    /// The kernel or its audit.
    System,
}

/// Why a text that resembles a record isn't read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UnreadReason {
    /// The writer is another program.
    Program,
    /// A summary without the call.
    Summary,
    /// The call or its architecture is missing or unknown.
    Call,
    /// The format is unknown.
    Form,
}

impl UnreadReason {
    /// The reason, as the end of a sentence.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            UnreadReason::Program => {
                "neither the kernel nor its audit wrote them, and anyone can have such a line logged"
            }
            UnreadReason::Summary => {
                "this form leaves out the call: print records with `ausearch --format raw`"
            }
            UnreadReason::Call => "the call of the record is missing or isn't known",
            UnreadReason::Form => "the words around the record are of no known form",
        }
    }
}

/// A record with its writer, or why it isn't read.
pub(crate) type ParseResult = Result<(Record, Writer), UnreadReason>;

/// The callback for each record, and for each text that resembles one.
pub(crate) type RecordSink<'a, 't> = &'a mut dyn FnMut(Word<'t>, ParseResult);

/// The marks of a record in `ausearch --format text` and `csv`.
const SUMMARIES: [&str; 2] = ["violated-seccomp-policy", ",SECCOMP,"];

/// Calls `take` for each record of a log, and for each line that resembles one. `assumed` is the architecture of
/// records without one: those of kernels before 3.16, and of tools that print only the name of the call.
pub(crate) fn each<'t>(text: &'t str, source: SourceId, assumed: Arch, take: RecordSink<'_, 't>) {
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
    /// Whether values must end in their line. Set after a value that doesn't end or isn't JSON, so that no text is read
    /// more than twice.
    is_within_lines: bool,
}

impl<'t> Values<'t> {
    /// Reads the value at the start of a line; returns its end if it ends at the end of a line.
    fn read(&mut self, line: Word<'t>, take: RecordSink<'_, 't>) -> Option<usize> {
        // JSON text sequences have a byte before each value, server-sent events a word.
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

/// The record of a line of text; `None` if the line doesn't resemble one.
pub(crate) fn line_of(line: &str, assumed: Arch) -> Option<ParseResult> {
    let line = without_colours(line);
    let line = line.trim_end();
    if let Some(found) = record::of_enricher(line, assumed) {
        return Some(found);
    }
    let Some((header, body)) = header::split(line) else {
        return without_beginning(line, assumed);
    };
    let Some(writer) = header::writer(header, body) else {
        return Some(Err(UnreadReason::Program));
    };
    Some(record::read(body, assumed).map(|record| (record, writer)))
}

/// The result for a line without the beginning of a record: fields alone, a summary, or parts of a record.
fn without_beginning(line: &str, assumed: Arch) -> Option<ParseResult> {
    if SUMMARIES.iter().any(|words| line.contains(words)) {
        return Some(Err(UnreadReason::Summary));
    }
    // snappy-debug writes a word before the fields, and the call without the name of its field.
    let snappy = line.trim_start().strip_prefix("Log: ");
    let call = match snappy {
        Some(_) => " arch=",
        None => " syscall=",
    };
    let fields = [call, " compat=", " ip=", " code="];
    let has_fields = fields.iter().all(|field| line.contains(field));
    let line = snappy.unwrap_or(line);
    if has_fields && line.starts_with("auid=") {
        return Some(record::read(line, assumed).map(|record| (record, Writer::Unnamed)));
    }
    let types = ["type=1326 ", "type=SECCOMP "];
    let is_alike = has_fields || types.iter().any(|words| line.contains(words));
    is_alike.then_some(Err(UnreadReason::Form))
}

/// Removes the terminal's colour sequences from a line.
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
