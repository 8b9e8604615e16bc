//! From a text to a profile: detection of the format.

use tamis_abi::Arch;
use tamis_diag::{Diagnostic, SourceId, Sources, Span};

use crate::code;
use crate::collect::Collector;
use crate::{Profile, audit, frequency, json, perf, perf_log, strace, trace};

/// The formats of profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The documented JSON of [`Profile::to_json`].
    Json,
    /// One or more tables of `strace -c`.
    Strace,
    /// Summaries of `perf trace -s`, one per thread.
    Perf,
    /// A log of `strace`: a line for each call.
    Trace,
    /// Audit records of logged or denied calls.
    Audit,
    /// A log of `perf trace`: a line for each call.
    PerfLog,
    /// Entries of the journal as JSON, with audit records among them.
    Journal,
    /// Events of sysdig or falco as JSON.
    Events,
    /// Recordings of the Security Profiles Operator, as JSON or YAML: names without counts.
    Names,
    /// Lines `NAME: COUNT`, the format of minijail's compiler.
    Frequency,
}

/// The result of reading a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The counts; `None` exactly if one of the diagnostics is an error.
    pub profile: Option<Profile>,
    /// The detected format.
    pub format: Option<Format>,
    /// Errors and warnings, in the order of discovery.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a profile in any format. Tables have no architecture: they are assigned to `arch`, and their parts for
/// 32-bit programs to its 32-bit compat architecture.
///
/// Linear in the text; the first hundred errors are reported.
///
/// ```
/// use tamis_abi::{Arch, Nr};
/// use tamis_diag::Sources;
/// let mut sources = Sources::new();
/// let source = sources.add("hot.frequency", "# measured\nfutex: 120\nread: 40\n");
/// let reading = tamis_profile::read(&sources, source, Arch::X86_64);
/// let profile = reading.profile.expect("it has no mistakes");
/// assert_eq!(profile.call(Arch::X86_64, Nr(202)).unwrap().count, 120);
/// ```
pub fn read(sources: &Sources, source: SourceId, arch: Arch) -> Reading {
    let text = &sources.get(source).text;
    let format = detect(text);
    let reader = match format {
        Some(Format::Json) => return json::read(text, source),
        Some(Format::Strace) => strace::read,
        Some(Format::Perf) => perf::read,
        Some(Format::Trace) => trace::read,
        Some(Format::Audit) => audit::read,
        Some(Format::PerfLog) => perf_log::read,
        Some(Format::Journal) => json::lines::read_journal,
        Some(Format::Events) => json::lines::read_events,
        Some(Format::Names) => json::names::read,
        Some(Format::Frequency) => frequency::read,
        None => return unknown(source),
    };
    let mut collector = Collector::new(source, arch);
    reader(&mut collector, text);
    collector.finish(format)
}

/// The error for a policy in place of counts. `what` is its kind with an article, `file` the name of its file.
///
/// ```
/// use tamis_diag::{Sources, Span};
/// let source = Sources::new().add("strict.json", "{}");
/// let refusal = tamis_profile::policy_refusal(Span::new(source, 0, 1), "an OCI profile", "strict.json");
/// assert!(refusal.help.unwrap().contains("--base strict.json"));
/// ```
pub fn policy_refusal(place: Span, what: &str, file: &str) -> Diagnostic {
    let message = format!("this is {what}: a policy, not counts of calls");
    Diagnostic::error(code::PROFILE_POLICY, message)
        .label(place, "it says what is allowed, not what is called")
        .note("`tamis record -o COUNTS -- COMMAND` counts the calls of a command")
        .help(format!(
            "to enforce it: `tamis run -p {file} -- COMMAND`; as the limit of a learned policy: \
             `tamis learn COUNTS --base {file}`"
        ))
}

fn detect(text: &str) -> Option<Format> {
    if text.trim_start().starts_with('{') {
        return Some(detect_json(text.trim_start()));
    }
    if json::names::is_resource(text) {
        return Some(Format::Names);
    }
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if strace::is_heading(line, lines.peek().copied()) {
            return Some(Format::Strace);
        }
        if perf::is_heading(line) {
            return Some(Format::Perf);
        }
        if audit::is_line(line) {
            return Some(Format::Audit);
        }
        if perf_log::is_line(line) {
            return Some(Format::PerfLog);
        }
    }
    // `strace -C` writes a log before its table.
    if text.lines().any(trace::is_line) {
        return Some(Format::Trace);
    }
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'))?;
    frequency::is_line(first).then_some(Format::Frequency)
}

fn detect_json(text: &str) -> Format {
    let first = text.lines().next().unwrap_or_default();
    if json::lines::is_event(first) {
        Format::Events
    } else if json::lines::is_journal(first) {
        Format::Journal
    } else if json::names::is_profile(text) {
        Format::Names
    } else {
        Format::Json
    }
}

fn unknown(source: SourceId) -> Reading {
    let start = Span::new(source, 0, 0);
    let diagnostic = Diagnostic::error(code::PROFILE_KIND, "no system-call counts found")
        .label(start, "neither a JSON profile nor a supported table")
        .help("make a table with `strace -c -f -o FILE PROGRAM` and pass FILE");
    Reading {
        profile: None,
        format: None,
        diagnostics: vec![diagnostic],
    }
}
