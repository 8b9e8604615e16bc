//! Lines of JSON, an object each: the journal's entries (`journalctl -o json`) with audit records, and events of sysdig
//! and falco.
//!
//! A message of the journal is a record, with or without the kernel's prefix. Sysdig and falco have the names of calls
//! and errors, and arguments not as numbers. An event is the beginning or the end of a call; newer versions have only
//! ends, so the greater number is the count.

use std::collections::BTreeMap;

use tamis_abi::{consts, errno};
use tamis_diag::document::{Object, Value};
use tamis_diag::json::{Reader, member};

use super::read::DIALECT;
use crate::code;
use crate::collect::{Collector, Word, lines};
use crate::{audit, audit_log};

/// Whether the first line of a text is an entry of the journal.
pub(crate) fn is_journal(line: &str) -> bool {
    is_object(line) && line.contains("\"MESSAGE\"")
}

/// Whether the first line of a text is an event.
pub(crate) fn is_event(line: &str) -> bool {
    is_object(line) && line.contains("\"evt.type\"")
}

fn is_object(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('{') && line.ends_with('}')
}

/// Adds the audit records of a journal.
pub(crate) fn read_journal(collector: &mut Collector, text: &str) {
    let mut unread = audit::UnreadLines::default();
    each(collector, text, |collector, line, entry| {
        if let Some((_, found)) = audit_log::of_entry(entry, collector.arch) {
            audit::count(collector, line, found, &mut unread);
        }
    });
    unread.warn(collector, text);
}

/// Adds the calls of events.
pub(crate) fn read_events(collector: &mut Collector, text: &str) {
    /// The numbers of beginnings and ends of a call, and its first place.
    type EventCounts<'t> = (u64, u64, Word<'t>);
    let mut seen: BTreeMap<String, EventCounts<'_>> = BTreeMap::new();
    let mut errors: Vec<(String, u16)> = Vec::new();
    each(collector, text, |collector, line, event| {
        // falco nests the fields of the event.
        let fields = member(event, "output_fields").and_then(Value::as_object);
        let event = fields.unwrap_or(event);
        let text = |name: &str| member(event, name).and_then(Value::as_text);
        let Some(name) = text("evt.type").filter(|name| !OTHERS.contains(name)) else {
            return;
        };
        let name = kernels_name(name);
        let (begun, ended, _) = seen.entry(name.to_owned()).or_insert((0, 0, line));
        match text("evt.dir") {
            Some(">") => *begun += 1,
            _ => *ended += 1,
        }
        let error = text("evt.res").filter(|result| result.starts_with('E'));
        let number = error.and_then(|error| consts::value(collector.arch, error));
        if let Some(number) = number.filter(|number| *number <= u64::from(errno::MAX)) {
            errors.push((name.to_owned(), number as u16));
        }
    });
    for (name, (begun, ended, line)) in &seen {
        let name = Word {
            text: name,
            start: line.start,
        };
        collector.add_at(name, *line, (*begun).max(*ended));
    }
    for (name, number) in errors {
        let name = Word {
            text: &name,
            start: 0,
        };
        if let Some(call) = collector.call_mut(name) {
            *call.errors.entry(number).or_default() += 1;
        }
    }
}

/// Events that are not calls.
const OTHERS: [&str; 9] = [
    "container",
    "cpu_hotplug",
    "drop",
    "page_fault",
    "procexit",
    "procinfo",
    "signaldeliver",
    "switch",
    "tracer",
];

/// The kernel's name of a call that sysdig renames.
fn kernels_name(name: &str) -> &str {
    match name {
        "pread" => "pread64",
        "pwrite" => "pwrite64",
        "prlimit" => "prlimit64",
        "llseek" => "_llseek",
        "umount" => "umount2",
        name => name,
    }
}

/// Calls `take` with the object of each line; warns about lines without one.
fn each<'t>(
    collector: &mut Collector,
    text: &'t str,
    mut take: impl FnMut(&mut Collector, Word<'t>, Object<'_>),
) {
    for line in lines(text).filter(|line| !line.text.trim().is_empty()) {
        let mut reader = Reader::new(&DIALECT, collector.source(), true);
        let document = reader.parse(line.text);
        match document.as_ref().and_then(|line| line.root().as_object()) {
            Some(object) => take(collector, line, object),
            None => {
                let message = "this line is not a JSON object";
                collector.warn(code::PROFILE_TABLE, line, message, "the line is ignored");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Arch, Nr, syscall};
    use tamis_diag::Sources;

    use crate::{Call, Format, Profile, Reading};

    fn reading(text: &str) -> Reading {
        let mut sources = Sources::new();
        let source = sources.add("lines.json", text);
        crate::read(&sources, source, Arch::X86_64)
    }

    fn call<'p>(profile: &'p Profile, name: &str) -> &'p Call {
        let nr: Nr = syscall::number(Arch::X86_64, name).unwrap();
        profile
            .call(Arch::X86_64, nr)
            .unwrap_or_else(|| panic!("{name}"))
    }

    #[test]
    fn records_of_the_journal_are_read_and_other_entries_skipped() {
        let text = concat!(
            r#"{"_TRANSPORT":"kernel","MESSAGE":"audit: type=1326 audit(1.2:3): pid=9 sig=0 arch=c000003e syscall=41 compat=0 code=0x50000"}"#,
            "\n",
            r#"{"MESSAGE":"SECCOMP auid=0 pid=9 comm=\"a b\" sig=31 arch=c000003e syscall=41 code=0x80000000","_AUDIT_TYPE":"1326","_TRANSPORT":"audit"}"#,
            "\n",
            r#"{"_TRANSPORT":"syslog","MESSAGE":"audit: type=1326 audit(1.2:3): pid=9 arch=c000003e syscall=41 code=0x50000"}"#,
            "\n",
            r#"{"MESSAGE":[1,2],"_AUDIT_TYPE":"1326"}"#,
            "\n",
            r#"{"MESSAGE":"Started."}"#,
            "\n",
            "{\"MESSAGE\":\"cut\n",
        );
        let reading = reading(text);
        assert_eq!(reading.format, Some(Format::Journal));
        // Lines of a program, of bytes that are no record, and without JSON.
        assert_eq!(reading.diagnostics.len(), 3, "{:?}", reading.diagnostics);
        let profile = reading.profile.unwrap();
        let socket = call(&profile, "socket");
        assert_eq!((socket.count, socket.denied), (2, 2));
        assert!(
            socket.errors.is_empty(),
            "the kernel's records have no error numbers"
        );
    }

    #[test]
    fn events_count_where_they_begin_or_end() {
        let text = concat!(
            r#"{"evt.num":1,"evt.type":"openat","evt.dir":">","proc.name":"a"}"#,
            "\n",
            r#"{"evt.num":2,"evt.type":"openat","evt.dir":"<","evt.res":"ENOENT"}"#,
            "\n",
            r#"{"evt.type":"switch","evt.dir":">"}"#,
            "\n",
            r#"{"output":"x","output_fields":{"evt.type":"pread","evt.res":"SUCCESS"}}"#,
            "\n",
        );
        let reading = reading(text);
        assert_eq!(reading.format, Some(Format::Events));
        assert!(reading.diagnostics.is_empty(), "{:?}", reading.diagnostics);
        let profile = reading.profile.unwrap();
        assert_eq!(
            (
                call(&profile, "openat").count,
                call(&profile, "openat").errors[&2]
            ),
            (1, 1)
        );
        assert_eq!(call(&profile, "pread64").count, 1);
        assert_eq!(profile.calls().count(), 2);
    }
}
