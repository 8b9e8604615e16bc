//! Records in JSON: entries of the journal, the kernel's log by `dmesg --json`, and logs of containers with a line of
//! text in a member. Objects may be in separate lines, concatenated, or nested.
//!
//! An entry of the journal is recognised by the journal's own fields, and only its message is read. In other objects
//! every text is read as lines without a stated writer.

use tamis_abi::Arch;
use tamis_diag::SourceId;
use tamis_diag::document::{Content, Object, Range, Value};
use tamis_diag::json::{Reader, member};

use super::{ParseResult, UnreadReason, Writer, header, line_of, record};
use crate::json::DIALECT;

/// The callback for a record and its place in the JSON text.
pub(crate) type RangeSink<'a> = &'a mut dyn FnMut(Range, ParseResult);

/// The sender of an entry, according to fields that the journal sets itself.
#[derive(Debug, Default)]
pub(super) struct Sender {
    transport: Option<String>,
    /// Whether the journal recognised the entry as a seccomp record.
    is_record: bool,
    is_root: bool,
    is_dispatcher: bool,
}

impl Sender {
    /// Evaluates a field of an entry.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        match name {
            "_TRANSPORT" => self.transport = Some(value.to_owned()),
            "_AUDIT_TYPE" => self.is_record |= value == "1326",
            "_AUDIT_TYPE_NAME" => self.is_record |= value == "SECCOMP",
            "_UID" => self.is_root = value == "0",
            "SYSLOG_IDENTIFIER" => self.is_dispatcher = header::DISPATCHERS.contains(&value),
            _ => {}
        }
    }

    /// The record in a message of this sender.
    pub(super) fn judged(&self, message: &str, assumed: Arch) -> Option<ParseResult> {
        let writer = match self.transport.as_deref() {
            Some("kernel" | "audit") => Some(Writer::System),
            // The dispatcher of auditd sends its lines to the syslog.
            Some("syslog") if self.is_root && self.is_dispatcher => Some(Writer::System),
            Some(_) => None,
            None => Some(Writer::Unnamed),
        };
        let found = match self.is_record {
            // Some versions of the journal omit the type at the beginning of the text.
            true => Some(record::read(message, assumed).map(|record| (record, Writer::Unnamed))),
            false => line_of(message, assumed),
        };
        Some(match (found?, writer) {
            (_, None) => Err(UnreadReason::Program),
            (found, Some(writer)) => found.map(|(record, _)| (record, writer)),
        })
    }
}

/// The length of the JSON value at the beginning of a text; `None` if it doesn't end.
pub(super) fn len(text: &str) -> Option<usize> {
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            _ if is_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Calls `take` for the records of a JSON text; `false` if it isn't JSON.
pub(super) fn read(text: &str, source: SourceId, assumed: Arch, take: RangeSink<'_>) -> bool {
    let mut reader = Reader::new(&DIALECT, source, true);
    let document = reader.parse(text);
    if let Some(document) = &document {
        of_value(document.root(), false, assumed, take);
    }
    document.is_some()
}

/// Calls `take` for the records of a value. The writer of `dmesg --json` is the kernel.
fn of_value(value: Value<'_>, is_dmesg: bool, assumed: Arch, take: RangeSink<'_>) {
    match value.content() {
        Content::Object(object) => of_object(object, is_dmesg, assumed, take),
        Content::Array(array) => {
            for value in array.elements() {
                of_value(value, is_dmesg, assumed, take);
            }
        }
        Content::Text(text) => {
            for line in text.lines() {
                if let Some(found) = line_of(line, assumed) {
                    let named = |(record, writer): (record::Record, Writer)| match is_dmesg {
                        true => (record, writer.max(Writer::System)),
                        false => (record, Writer::Unnamed),
                    };
                    take(value.range(), found.map(named));
                }
            }
        }
        Content::Number(_) | Content::Boolean(_) | Content::Null => {}
    }
}

fn of_object(object: Object<'_>, is_dmesg: bool, assumed: Arch, take: RangeSink<'_>) {
    if member(object, "MESSAGE").is_some() {
        if let Some((range, found)) = of_entry(object, assumed) {
            take(range, found);
        }
        return;
    }
    for member in object.members() {
        let is_dmesg = is_dmesg || member.name == "dmesg";
        of_value(member.value, is_dmesg, assumed, take);
    }
}

/// The record of an entry of the journal, and its place.
pub(crate) fn of_entry(entry: Object<'_>, assumed: Arch) -> Option<(Range, ParseResult)> {
    let mut sender = Sender::default();
    for member in entry.members() {
        if let Some(text) = member.value.as_text() {
            sender.set(member.name, text);
        }
    }
    let message = member(entry, "MESSAGE")?;
    let text = match message.content() {
        Content::Text(text) => text.to_owned(),
        // The journal writes a message with control characters as an array of bytes.
        Content::Array(array) => {
            let byte = |value: Value<'_>| value.as_number()?.parse().ok();
            let bytes: Option<Vec<u8>> = array.elements().map(byte).collect();
            String::from_utf8_lossy(&bytes?).into_owned()
        }
        _ => return None,
    };
    Some((message.range(), sender.judged(&text, assumed)?))
}
