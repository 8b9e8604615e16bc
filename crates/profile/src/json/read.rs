//! From JSON to a profile. Everything unknown is an error: a lost count would go unnoticed.

use tamis_abi::{Arch, Nr, errno, syscall};
use tamis_diag::document::Range;
use tamis_diag::document::{Object, Value};
use tamis_diag::json::{Dialect, Reader, member};
use tamis_diag::{Diagnostic, SourceId, Span, suggest};

use super::SCHEMA;
use crate::code;
use crate::collect::{MAX_DIAGNOSTICS, unknown_call};
use crate::{Args, Call, Format, Origin, Profile, Reading, RunId, Runs, Times};

pub(crate) static DIALECT: Dialect = Dialect {
    document: "a profile",
    max_bytes: 16 << 20,
    max_depth: 32,
    too_large: code::FILE_TOO_LARGE,
    syntax: code::PROFILE_JSON,
    nesting: code::PROFILE_NESTING,
    duplicate_key: code::PROFILE_DUPLICATE,
    wrong_type: code::PROFILE_TYPE,
    range: code::PROFILE_COUNT,
    missing: code::PROFILE_MEMBER,
    unknown_name: code::PROFILE_ARCH,
    unknown_member: code::PROFILE_MEMBER,
    unknown_member_label: "this would be ignored",
};
/// `diagnostics` concerns the sources of a document, not the document.
const MEMBERS: [&str; 5] = ["schema", "runs", "unnamed_runs", "calls", "diagnostics"];
const RUN_MEMBERS: [&str; 3] = ["id", "machine", "program"];
const CALL_MEMBERS: [&str; 10] = [
    "arch",
    "call",
    "count",
    "runs",
    "values",
    "lost_values",
    "samples",
    "errors",
    "denied",
    "times",
];
const ERROR_MEMBERS: [&str; 2] = ["errno", "count"];
const TIMES_MEMBERS: [&str; 4] = ["total_ns", "min_ns", "max_ns", "buckets"];
const LOST_MEMBERS: [&str; 2] = ["arg", "count"];
const VALUE_MEMBERS: [&str; 4] = ["arg", "value", "count", "runs"];
const SAMPLE_MEMBERS: [&str; 2] = ["args", "count"];
/// The largest index of an argument.
const MAX_ARG: u64 = 5;

/// Reads a profile.
pub(crate) fn read(text: &str, source: SourceId) -> Reading {
    let mut reader = Reader::new(&DIALECT, source, true);
    let profile = reader
        .parse(text)
        .and_then(|document| profile(&mut reader, document.root()));
    let mut diagnostics = reader.diagnostics;
    diagnostics.truncate(MAX_DIAGNOSTICS);
    Reading {
        profile: profile.filter(|_| diagnostics.is_empty()),
        format: Some(Format::Json),
        diagnostics,
    }
}

fn profile(reader: &mut Reader, document: Value<'_>) -> Option<Profile> {
    let root = reader.object(document, "a profile")?;
    let schema = reader.required(root, "schema", "a profile")?;
    if reader.string(schema, "`schema`")? != SCHEMA {
        let message = format!("`schema` must be \"{SCHEMA}\"");
        let label = "this is another kind of document, or a later version";
        reader.error(code::PROFILE_MEMBER, schema.range(), message, label);
        return None;
    }
    check_members(reader, root, "a profile", &MEMBERS);
    let calls = reader.required(root, "calls", "a profile")?;
    let calls = reader.array(calls, "`calls`")?;
    let mut profile = Profile::default();
    profile.set_runs(read_runs(reader, root)?);
    let runs = profile.runs().count();
    for value in calls.elements() {
        if reader.diagnostics.len() >= MAX_DIAGNOSTICS {
            break;
        }
        if let Some((arch, nr, place, call)) = read_call(reader, value, runs) {
            match profile.call(arch, nr) {
                Some(_) => repeated(reader, place, "the call"),
                None => *profile.call_mut(arch, nr) = call,
            }
        }
    }
    Some(profile)
}

fn read_runs(reader: &mut Reader, root: Object<'_>) -> Option<Runs> {
    let what = "a run";
    let mut runs = Runs::default();
    if let Some(unnamed) = member(root, "unnamed_runs") {
        runs.unnamed = reader.unsigned(unnamed, "`unnamed_runs`", u64::MAX)?;
    }
    let Some(named) = member(root, "runs") else {
        return Some(runs);
    };
    for element in reader.array(named, "`runs`")?.elements() {
        let object = reader.object(element, what)?;
        check_members(reader, object, what, &RUN_MEMBERS);
        let value = reader.required(object, "id", what)?;
        let id = RunId::new(reader.string(value, "`id`")?);
        let mut names = ["", ""];
        for (name, text) in ["machine", "program"].into_iter().zip(&mut names) {
            if let Some(value) = member(object, name) {
                *text = reader.string(value, &format!("`{name}`"))?;
            }
        }
        let origin = Origin::new(names[0], names[1]);
        let is_whole = (origin.machine(), origin.program()) == (names[0], names[1]);
        let Some(id) = id.filter(|_| is_whole) else {
            let message = "a run's names are up to 128 bytes without control characters".to_owned();
            reader.error(
                code::PROFILE_TYPE,
                object.range(),
                message,
                "not such names",
            );
            return None;
        };
        if runs.named.insert(id, origin).is_some() {
            repeated(reader, value.range(), "the run");
        }
    }
    Some(runs)
}

/// The number of runs of a call or value; absent in a profile of one run.
fn read_coverage(reader: &mut Reader, object: Object<'_>, what: &str, runs: u64) -> Option<u64> {
    if runs > 1 {
        let value = reader.required(object, "runs", what)?;
        return reader.unsigned(value, "`runs`", runs);
    }
    if let Some(value) = member(object, "runs") {
        let message = "`runs` is for profiles of several runs".to_owned();
        let label = "this one doesn't say that it has several";
        reader.error(code::PROFILE_MEMBER, value.range(), message, label);
    }
    None
}

fn read_call(reader: &mut Reader, value: Value<'_>, runs: u64) -> Option<(Arch, Nr, Range, Call)> {
    let what = "a call";
    let object = reader.object(value, what)?;
    check_members(reader, object, what, &CALL_MEMBERS);
    let arch = reader.required(object, "arch", what)?;
    let arch = read_arch(reader, arch)?;
    let name = reader.required(object, "call", what)?;
    let nr = read_nr(reader, arch, name)?;
    let mut call = Call {
        count: read_count(reader, object, what)?,
        ..Call::default()
    };
    call.coverage.runs = read_coverage(reader, object, what, runs).unwrap_or_default();
    if let Some(values) = member(object, "values") {
        read_values(reader, values, &mut call, runs);
    }
    if let Some(lost) = member(object, "lost_values") {
        read_lost_values(reader, lost, &mut call);
    }
    if let Some(samples) = member(object, "samples") {
        read_samples(reader, samples, &mut call);
    }
    if let Some(errors) = member(object, "errors") {
        read_errors(reader, errors, &mut call);
    }
    if let Some(denied) = member(object, "denied") {
        call.denied = reader.unsigned(denied, "`denied`", call.count)?;
    }
    if let Some(times) = member(object, "times") {
        call.times = read_times(reader, times).map(Box::new);
    }
    Some((arch, nr, name.range(), call))
}

fn read_arch(reader: &mut Reader, value: Value<'_>) -> Option<Arch> {
    let name = reader.string(value, "`arch`")?;
    let arch = Arch::from_name(name);
    if arch.is_none() {
        let message = format!("no architecture is called `{}`", name.escape_debug());
        let known = Arch::all().map(Arch::name);
        let help = match suggest::nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`tamis tables arches` lists them".to_owned(),
        };
        let span = reader.span(value.range());
        let diagnostic = Diagnostic::error(code::PROFILE_ARCH, message).label(span, "");
        reader.push(diagnostic.help(help));
    }
    arch
}

/// A call by its name or its number.
fn read_nr(reader: &mut Reader, arch: Arch, value: Value<'_>) -> Option<Nr> {
    if value.as_number().is_some() {
        let nr = reader.unsigned(value, "the number of a call", u64::from(u32::MAX))? as u32;
        if arch.owns_number(nr) {
            return Some(Nr(nr));
        }
        let message = format!("{nr} is not a system-call number of {arch}");
        let label = "outside its range of numbers";
        reader.error(code::PROFILE_CALL, value.range(), message, label);
        return None;
    }
    let name = reader.string(value, "`call`")?;
    let nr = syscall::number(arch, name);
    if nr.is_none() {
        let span: Span = reader.span(value.range());
        let diagnostic = unknown_call(arch, name).label(span, "");
        reader.push(diagnostic);
    }
    nr
}

fn read_count(reader: &mut Reader, object: Object<'_>, what: &str) -> Option<u64> {
    let count = reader.required(object, "count", what)?;
    reader.unsigned(count, "`count`", u64::MAX)
}

fn read_values(reader: &mut Reader, list: Value<'_>, call: &mut Call, runs: u64) -> Option<()> {
    let what = "an element of `values`";
    for element in reader.array(list, "`values`")?.elements() {
        let object = reader.object(element, what)?;
        check_members(reader, object, what, &VALUE_MEMBERS);
        let arg = reader.required(object, "arg", what)?;
        let arg = reader.unsigned(arg, "`arg`", MAX_ARG)? as u8;
        let value = reader.required(object, "value", what)?;
        let number = read_value(reader, value)?;
        let count = read_count(reader, object, what)?;
        let seen = read_coverage(reader, object, what, runs).filter(|runs| *runs > 0);
        if let Some(seen) = seen {
            call.coverage.values.insert((arg, number), seen);
        }
        let known = call.values.entry(arg).or_default();
        if known.insert(number, count).is_some() {
            repeated(reader, value.range(), "the value");
        }
    }
    for (arg, values) in &call.values {
        let what = format!("the values of argument {arg}");
        check_sum(reader, list, values.values(), call.count, &what);
    }
    Some(())
}

fn read_lost_values(reader: &mut Reader, list: Value<'_>, call: &mut Call) -> Option<()> {
    let what = "an element of `lost_values`";
    for element in reader.array(list, "`lost_values`")?.elements() {
        let object = reader.object(element, what)?;
        check_members(reader, object, what, &LOST_MEMBERS);
        let value = reader.required(object, "arg", what)?;
        let arg = reader.unsigned(value, "`arg`", MAX_ARG)? as u8;
        let count = read_count(reader, object, what)?;
        if call.lost_values.insert(arg, count).is_some() {
            repeated(reader, value.range(), "the argument");
        }
        let what = format!("the lost values of argument {arg}");
        check_sum(reader, list, [count].iter(), call.count, &what);
    }
    Some(())
}

fn read_samples(reader: &mut Reader, list: Value<'_>, call: &mut Call) -> Option<()> {
    let what = "an element of `samples`";
    for element in reader.array(list, "`samples`")?.elements() {
        let object = reader.object(element, what)?;
        check_members(reader, object, what, &SAMPLE_MEMBERS);
        let value = reader.required(object, "args", what)?;
        let list = reader.array(value, "`args`")?;
        let mut args = Args::default();
        let given = list.elements().count();
        if given > args.len() {
            let message = "a call has at most six arguments".to_owned();
            let label = format!("these are {given}");
            reader.error(code::PROFILE_TYPE, list.range(), message, &label);
            return None;
        }
        for (arg, value) in args.iter_mut().zip(list.elements()) {
            *arg = read_value(reader, value)?;
        }
        let count = read_count(reader, object, what)?;
        if call.samples.insert(args, count).is_some() {
            repeated(reader, list.range(), "the list of arguments");
        }
    }
    check_sum(
        reader,
        list,
        call.samples.values(),
        call.count,
        "the samples",
    );
    Some(())
}

fn read_errors(reader: &mut Reader, list: Value<'_>, call: &mut Call) -> Option<()> {
    let what = "an element of `errors`";
    for element in reader.array(list, "`errors`")?.elements() {
        let object = reader.object(element, what)?;
        check_members(reader, object, what, &ERROR_MEMBERS);
        let errno = reader.required(object, "errno", what)?;
        let number = reader.unsigned(errno, "`errno`", u64::from(errno::MAX))? as u16;
        let count = read_count(reader, object, what)?;
        if call.errors.insert(number, count).is_some() {
            repeated(reader, errno.range(), "the error number");
        }
    }
    check_sum(reader, list, call.errors.values(), call.count, "the errors");
    Some(())
}

fn read_times(reader: &mut Reader, value: Value<'_>) -> Option<Times> {
    let what = "`times`";
    let object = reader.object(value, what)?;
    check_members(reader, object, what, &TIMES_MEMBERS);
    let mut number = |name: &str| {
        let value = reader.required(object, name, what)?;
        reader.unsigned(value, &format!("`{name}`"), u64::MAX)
    };
    let [total_ns, min_ns, max_ns] = [number("total_ns")?, number("min_ns")?, number("max_ns")?];
    let list = reader.required(object, "buckets", what)?;
    let list_of_counts = reader.array(list, "`buckets`")?;
    let given = list_of_counts.elements().count();
    let mut buckets = [0; Times::BUCKETS];
    if given != buckets.len() {
        let message = format!("`buckets` must have {} counts", buckets.len());
        let label = format!("these are {given}");
        reader.error(code::PROFILE_TYPE, list.range(), message, &label);
        return None;
    }
    for (count, element) in buckets.iter_mut().zip(list_of_counts.elements()) {
        *count = reader.unsigned(element, "a count of `buckets`", u64::MAX)?;
    }
    Some(Times {
        total_ns,
        min_ns,
        max_ns,
        buckets,
    })
}

/// Reports parts whose sum exceeds the whole. Counts saturate at the largest number, and then the parts of a merged
/// profile may add up to more.
fn check_sum<'c>(
    reader: &mut Reader,
    place: Value<'_>,
    parts: impl Iterator<Item = &'c u64>,
    whole: u64,
    what: &str,
) {
    let sum: u128 = parts.map(|count| u128::from(*count)).sum();
    if sum > u128::from(whole) && whole != u64::MAX {
        let message = format!("{what} occur {sum} times, but the call {whole} times");
        let label = "more than there were calls";
        reader.error(code::PROFILE_COUNT, place.range(), message, label);
    }
}

/// A value of an argument: a number, or text in hexadecimal.
fn read_value(reader: &mut Reader, value: Value<'_>) -> Option<u64> {
    let what = "the value of an argument";
    let Some(text) = value.as_text() else {
        return reader.unsigned(value, what, u64::MAX);
    };
    let digits = text.strip_prefix("0x").filter(|digits| {
        let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hexadecimal && !digits.is_empty()
    });
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    if number.is_none() {
        let message = format!("{what} must be a number or hexadecimal text of up to 64 bits");
        let label = "write it as \"0x80\" or 128";
        reader.error(code::PROFILE_TYPE, value.range(), message, label);
    }
    number
}

fn check_members(reader: &mut Reader, object: Object<'_>, what: &str, known: &[&str]) {
    for prop in object.members() {
        if !known.contains(&prop.name) {
            reader.unknown_member(&prop, what, known);
        }
    }
}

fn repeated(reader: &mut Reader, place: Range, what: &str) {
    let message = format!("{what} is given twice");
    let label = "given again here";
    reader.error(code::PROFILE_DUPLICATE, place, message, label);
}
