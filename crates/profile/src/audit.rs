//! Audit records of calls that a filter logged or denied: `type=SECCOMP` of auditd and the journal, `type=1326` of the
//! kernel's own log.
//!
//! Records are few where nobody keeps them: without auditd the kernel writes some twenty a second and drops the rest. A
//! profile of them says which calls, not how often. Calls that were answered with an error or killed count as denied.

use tamis_abi::{Action, ActionKind, Arch, Nr, syscall};
use tamis_diag::{Diagnostic, SourceId, Sources, code};

use crate::collect::{Collector, Word, lines};
use crate::json;

/// Whether a line is such a record by its beginning, which the kernel or auditd writes: anyone can have the rest logged.
pub(crate) fn is_line(line: &str) -> bool {
    let of_auditd = ["type=SECCOMP msg=audit(", "type=1326 msg=audit("];
    if of_auditd.iter().any(|start| line.starts_with(start)) {
        return true;
    }
    let prefix = line.split_once("audit: type=1326 audit(");
    prefix.is_some_and(|(prefix, _)| is_kernels(prefix))
}

/// Whether a line looks like a record and isn't one by its beginning.
pub(crate) fn is_refused(line: &str) -> bool {
    (line.contains("type=SECCOMP ") || line.contains("type=1326 ")) && !is_line(line)
}

/// Whether this stands before the kernel's own messages: `[ 12.3] `, `DATE HOST kernel: `, or both.
fn is_kernels(prefix: &str) -> bool {
    let (date, time) = prefix.split_once("kernel: ").unwrap_or(("", prefix));
    let is_date = match date.split_whitespace().collect::<Vec<_>>()[..] {
        [] => !prefix.starts_with("kernel: "),
        [month, day, host] => day.parse::<u8>().is_ok() && !(month.to_owned() + host).contains(':'),
        [month, day, time, host] => {
            let is_time = time.starts_with(|first: char| first.is_ascii_digit());
            day.parse::<u8>().is_ok() && is_time && !(month.to_owned() + host).contains(':')
        }
        [date, host] => {
            date.starts_with(|first: char| first.is_ascii_digit()) && !host.contains(':')
        }
        _ => false,
    };
    let time = time.trim();
    let is_time = match time
        .strip_prefix('[')
        .and_then(|time| time.strip_suffix(']'))
    {
        Some(time) => !time.contains(['[', ']']),
        None => time.is_empty() && !date.is_empty(),
    };
    is_date && is_time
}

/// Adds all records of the kernel's log or of auditd's.
pub(crate) fn read(collector: &mut Collector, text: &str) {
    each(collector, text, &mut add);
}

/// Hands over each record of the kernel's log or of auditd's.
fn each(collector: &mut Collector, text: &str, take: Take<'_>) {
    let mut refused = Refused::default();
    for line in lines(text) {
        if is_line(line.text) {
            read_record(collector, line, line.text, take);
        } else if is_refused(line.text) {
            refused.add(line);
        }
    }
    refused.tell(collector);
}

/// What is done with a record.
pub(crate) type Take<'t> = &'t mut dyn FnMut(&mut Collector, &Record);

/// Lines that look like records, and that neither the kernel nor auditd wrote.
#[derive(Default)]
pub(crate) struct Refused<'t> {
    count: u64,
    first: Option<Word<'t>>,
}

impl<'t> Refused<'t> {
    pub(crate) fn add(&mut self, line: Word<'t>) {
        self.count += 1;
        self.first.get_or_insert(line);
    }

    /// Warns of them.
    pub(crate) fn tell(self, collector: &mut Collector) {
        if let Some(line) = self.first {
            let message = format!(
                "ignored as not from the kernel or auditd: {} records",
                self.count
            );
            let label = "the first: anyone can have such a line logged";
            collector.warn(code::PROFILE_TABLE, line, &message, label);
        }
    }
}

/// A call that a filter logged or denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The call's architecture and number; records don't have its arguments.
    pub arch: Arch,
    /// Its number.
    pub nr: Nr,
    /// The action, without its data: the kernel's records don't have it. `None` if the record has no action that is known.
    pub kind: Option<ActionKind>,
    /// The program, by the name of its task.
    pub program: Option<String>,
}

/// The records of a log, as text or as the journal's JSON, and what is wrong with it; lines about anything else are
/// skipped.
///
/// ```
/// use tamis_diag::Sources;
/// let log = "[ 1.1] audit: type=1326 audit(1.1:7): pid=9 comm=\"sh\" sig=0 arch=c000003e syscall=41 compat=0 ip=0x7f code=0x50000\n";
/// let mut sources = Sources::new();
/// let source = sources.add("log", log);
/// let (records, diagnostics) = tamis_profile::records(&sources, source);
/// assert_eq!((records[0].nr.0, records[0].program.as_deref()), (41, Some("sh")));
/// assert!(diagnostics.is_empty());
/// ```
pub fn records(sources: &Sources, source: SourceId) -> (Vec<Record>, Vec<Diagnostic>) {
    let text = &sources.get(source).text;
    let mut records = Vec::new();
    // Records say their architecture.
    let mut collector = Collector::new(source, Arch::X86_64);
    let take: Take<'_> = &mut |_, record| records.push(record.clone());
    match text.trim_start().starts_with('{') {
        true => json::lines::each_record(&mut collector, text, take),
        false => each(&mut collector, text, take),
    }
    (records, collector.finish(None).diagnostics)
}

/// The parts of a record that count; `None` if it has no call.
fn record(text: &str) -> Option<Record> {
    let fields = |name: &'static str| {
        let words = text.split_whitespace();
        words.filter_map(move |word| word.strip_prefix(name)?.strip_prefix('='))
    };
    // The call comes behind the name of the task, which `ausearch -i` writes as it is.
    let (arch, nr) = number(fields("arch").next_back()?, fields("syscall").next_back()?)?;
    let quoted = |text: &str| text.trim_matches('"').to_owned();
    Some(Record {
        arch,
        nr,
        kind: fields("code").next_back().and_then(kind),
        program: fields("exe").chain(fields("comm")).next().map(quoted),
    })
}

/// The action of a record, which `ausearch -i` writes by name.
fn kind(code: &str) -> Option<ActionKind> {
    if let Some(digits) = code.strip_prefix("0x") {
        let ret = u32::from_str_radix(digits, 16).ok()?;
        return Some(Action::from_ret(ret).kind);
    }
    match code {
        "kill" => Some(ActionKind::KillThread),
        name => ActionKind::from_name(&name.replace('-', "_")),
    }
}

/// Hands over a record that stands in a line, perhaps in another form.
pub(crate) fn read_record(collector: &mut Collector, line: Word<'_>, text: &str, take: Take<'_>) {
    match record(text) {
        Some(record) => take(collector, &record),
        None => {
            let message = "the call of this record isn't known";
            collector.warn(code::PROFILE_CALL, line, message, "the record is ignored");
        }
    }
}

/// Counts a record.
pub(crate) fn add(collector: &mut Collector, record: &Record) {
    let call = collector.number_mut(record.arch, record.nr);
    call.count = call.count.saturating_add(1);
    let is_denied = record.kind.is_some_and(|kind| !kind.executes());
    call.denied = call.denied.saturating_add(u64::from(is_denied));
}

/// The call of a record, whose parts `ausearch -i` writes as names.
fn number(arch: &str, call: &str) -> Option<(Arch, Nr)> {
    let audit = u32::from_str_radix(arch, 16).ok();
    let named = Arch::from_name(arch);
    if let Ok(nr) = call.parse() {
        let arch = match audit {
            Some(audit) => Arch::of_call(audit, nr)?,
            None => Arch::of_call(named?.audit(), nr)?,
        };
        return Some((arch, Nr(nr)));
    }
    let arch = named.or_else(|| Arch::of_call(audit?, 0))?;
    Some((arch, syscall::number(arch, call)?))
}

#[cfg(test)]
mod tests {
    use tamis_diag::Sources;

    use super::*;
    use crate::Format;

    #[test]
    fn records_that_anyone_can_have_logged_are_refused() {
        let record = "audit: type=1326 audit(1.1:7): pid=9 arch=c000003e syscall=41 code=0x50000";
        for prefix in [
            "",
            "Nov 23 19:00:00 host app: ",
            "Nov 23 19:00:00 host app[7]: kernel: ",
            "[x] a [ 1.2] ",
        ] {
            assert!(!is_line(&format!("{prefix}{record}")), "{prefix}");
            assert!(is_refused(&format!("{prefix}{record}")), "{prefix}");
        }
        assert!(is_refused(
            "Nov 23 19:00:00 host app: type=SECCOMP msg=audit(1.1:7): arch=c000003e"
        ));
        let prefixes = [
            "[   12.3] ",
            "Nov 23 19:00:00 host kernel: ",
            "2026-11-23T19:00:00+00:00 host kernel: [ 1.2] ",
        ];
        for prefix in prefixes {
            assert!(is_line(&format!("{prefix}{record}")), "{prefix}");
        }
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
