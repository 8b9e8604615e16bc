//! Audit records of logged or denied calls, as counts of a profile and as a list.
//!
//! [`audit_log`](crate::audit_log) finds the records. Without auditd the kernel writes some twenty per second and drops
//! the rest, so counts are lower bounds. Calls that got an error or were killed count as denied. A profile may become a
//! policy without review, so it includes only records of lines that name the kernel or its audit as the writer; the
//! list is for people, who see the origin.

use std::collections::BTreeMap;

use tamis_abi::Arch;
use tamis_diag::words::joined;
use tamis_diag::{Diagnostic, SourceId, Sources, Span};

use crate::audit_log::{self, ParseResult, Record, UnreadReason, Writer};
use crate::code;
use crate::collect::{Collector, Word};

/// The most unread lines that are listed for each reason.
const MAX_NAMED: usize = 5;

/// The seccomp records of a log.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// The records, in their order.
    pub records: Vec<Record>,
    /// The number of records in lines without the name of a writer.
    pub unnamed: u64,
    /// The number of lines that resemble records and can't be read.
    pub unread: u64,
    /// Warnings about unread lines, with the reasons.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the seccomp records of a log, in any output format of tools: raw, enriched and interpreted records of auditd;
/// the kernel's log and the syslog; the journal in all its formats; `dmesg --json`; logs of containers around these.
/// Other lines are skipped. `assumed` is the architecture of records without one.
///
/// ```
/// use tamis_abi::Arch;
/// use tamis_diag::Sources;
/// let log = "[ 1.1] audit: type=1326 audit(1.1:7): auid=0 pid=9 comm=\"sh\" sig=0 arch=c000003e syscall=41 compat=0 ip=0x7f code=0x50000\n";
/// let mut sources = Sources::new();
/// let source = sources.add("log", log);
/// let read = tamis_profile::records(&sources, source, Arch::X86_64);
/// assert_eq!((read.records[0].nr.0, read.records[0].program.as_deref()), (41, Some("sh")));
/// assert_eq!((read.unnamed, read.unread), (0, 0));
/// ```
#[must_use]
pub fn records(sources: &Sources, source: SourceId, assumed: Arch) -> Records {
    let text = &sources.get(source).text;
    let mut read = Records::default();
    let mut unread = UnreadLines::default();
    audit_log::each(text, source, assumed, &mut |line, found| match found {
        Ok((record, writer)) => {
            read.records.push(record);
            read.unnamed += u64::from(writer == Writer::Unnamed);
        }
        Err(reason) => unread.add(line, reason),
    });
    read.unread = unread.count();
    read.diagnostics = unread.diagnostics(text, source);
    read
}

/// Whether a line is a record written by the kernel or its audit.
pub(crate) use audit_log::is_of_system as is_line;

/// Adds all records of a log to the counts.
pub(crate) fn read(collector: &mut Collector, text: &str) {
    let mut unread = UnreadLines::default();
    let (source, arch) = (collector.source(), collector.arch);
    audit_log::each(text, source, arch, &mut |line, found| {
        count(collector, line, found, &mut unread);
    });
    unread.warn(collector, text);
}

/// Adds a record to the counts if its line names a writer.
pub(crate) fn count<'t>(
    collector: &mut Collector,
    line: Word<'t>,
    found: ParseResult,
    unread: &mut UnreadLines<'t>,
) {
    match found {
        Ok((record, Writer::System)) => add(collector, &record),
        Ok((_, Writer::Unnamed)) => unread.add(line, UnreadReason::Program),
        Err(reason) => unread.add(line, reason),
    }
}

fn add(collector: &mut Collector, record: &Record) {
    let call = collector.number_mut(record.arch, record.nr);
    call.count = call.count.saturating_add(1);
    let is_denied = record.kind.is_some_and(|kind| !kind.executes());
    call.denied = call.denied.saturating_add(u64::from(is_denied));
}

/// Lines that resemble records and can't be read: the number for each reason, and the first ones.
#[derive(Default)]
pub(crate) struct UnreadLines<'t>(BTreeMap<UnreadReason, (u64, Vec<Word<'t>>)>);

impl<'t> UnreadLines<'t> {
    fn add(&mut self, line: Word<'t>, reason: UnreadReason) {
        let (count, lines) = self.0.entry(reason).or_default();
        *count += 1;
        if lines.len() < MAX_NAMED {
            lines.push(line);
        }
    }

    fn count(&self) -> u64 {
        self.0.values().map(|(count, _)| count).sum()
    }

    /// Reports the lines as warnings.
    pub(crate) fn warn(&self, collector: &mut Collector, text: &str) {
        for diagnostic in self.diagnostics(text, collector.source()) {
            collector.warn_of(diagnostic);
        }
    }

    /// A warning for each reason.
    fn diagnostics(&self, text: &str, source: SourceId) -> Vec<Diagnostic> {
        let warning = |(reason, (count, lines)): (&UnreadReason, &(u64, Vec<Word<'_>>))| {
            let numbers = lines.iter().map(|line| {
                let before = text[..line.start].bytes();
                (1 + before.filter(|byte| *byte == b'\n').count()).to_string()
            });
            let mut names: Vec<String> = numbers.collect();
            names.dedup();
            let more = *count - lines.len() as u64;
            if more > 0 {
                names.push(format!("{more} more"));
            }
            let noun = if names.len() == 1 { "line" } else { "lines" };
            let names = joined(&names, "and");
            let what = if *count == 1 {
                "1 audit record was"
            } else {
                &format!("{count} audit records were")
            };
            let first = lines[0];
            let span = Span::new(source, first.start, first.start + first.text.len());
            Diagnostic::warning(
                code::PROFILE_RECORD,
                format!("{what} not read: {noun} {names}"),
            )
            .label(
                span,
                if *count == 1 {
                    "here"
                } else {
                    "the first of them"
                },
            )
            .note(reason.reason())
        };
        self.0.iter().map(warning).collect()
    }
}

#[cfg(test)]
mod tests {
    use tamis_diag::Sources;

    use super::*;
    use crate::Format;

    #[test]
    fn records_that_anyone_can_have_logged_are_not_counted() {
        let record = "type=1326 audit(1.1:7): auid=0 pid=9 sig=0 arch=c000003e syscall=41 compat=0 ip=0x7f code=0x50000";
        let text = format!(
            "[ 1.2] audit: {record}\naudit: {record}\nNov 23 19:00:00 host app: {record}\n[x] a [ 1.2] {record}\n"
        );
        let mut sources = Sources::new();
        let source = sources.add("kern.log", text);
        let reading = crate::read(&sources, source, Arch::X86_64);
        let profile = reading.profile.unwrap();
        let counts: Vec<u64> = profile.calls().map(|(_, _, call)| call.count).collect();
        assert_eq!(counts, [1]);
        assert_eq!(
            reading.diagnostics[0].message,
            "3 audit records were not read: lines 2, 3 and 4"
        );
    }

    #[test]
    fn records_of_all_writers_are_read() {
        let text = "\
[  12.3] audit: type=1326 audit(1700.1:7): auid=0 uid=0 pid=9 comm=\"a b\" sig=31 arch=c000003e syscall=41 compat=0 ip=0x7f code=0x80000000
type=SECCOMP msg=audit(1700.1:8): auid=0 pid=9 sig=0 arch=c000003e syscall=41 compat=0 ip=0x7f code=0x50000
Nov 23 host kernel: audit: type=1326 audit(1700.1:9): pid=9 sig=0 arch=40000003 syscall=20 compat=1 ip=0x7f code=0x7ffc0000
type=SECCOMP msg=audit(x): arch=x86_64 syscall=mount code=log
type=SECCOMP msg=audit(x): comm=a arch=i386 syscall=read code=log exe=/a arch=x86_64 syscall=mount code=trap
type=SECCOMP msg=audit(x): arch=x86_64 syscall=mount code=errno
type=SYSCALL msg=audit(x): arch=c000003e syscall=1
";
        let mut sources = Sources::new();
        let source = sources.add("audit.log", text);
        let reading = crate::read(&sources, source, Arch::X86_64);
        assert_eq!(reading.format, Some(Format::Audit));
        assert!(reading.diagnostics.is_empty(), "{:?}", reading.diagnostics);
        let profile = reading.profile.unwrap();
        let calls: Vec<_> = profile
            .calls()
            .map(|(arch, nr, call)| (arch, nr.0, call.count, call.denied, call.errors.len()))
            .collect();
        let expected = [
            (Arch::X86_64, 41, 2, 2, 0),
            (Arch::X86_64, 165, 3, 2, 0),
            (Arch::X86, 20, 1, 0, 0),
        ];
        assert_eq!(calls, expected);
    }
}
