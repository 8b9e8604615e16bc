//! The fields of a record.
//!
//! The kernel writes `auid … pid comm exe sig arch syscall compat ip code`. auditd's enriched format adds names of some
//! after a separator byte; `ausearch -i` writes names instead of numbers. Names of tasks and programs come before
//! `sig`, and interpreted ones are not quoted. The deciding fields are therefore read only after the last ` sig=`, so
//! that the name of a task can't imitate a field.

use tamis_abi::{Action, ActionKind, Arch, Nr, entry_point, syscall};

use super::{ParseResult, UnreadReason, Writer};

/// A logged or denied call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The architecture of the call.
    pub arch: Arch,
    /// The number. Records have no arguments.
    pub nr: Nr,
    /// The action without its data, which records don't contain; `None` if it is missing or unknown.
    pub kind: Option<ActionKind>,
    /// The path of the program, otherwise the name of the task; chosen by the program, so it may contain any
    /// characters.
    pub program: Option<String>,
}

/// The separators between the fields of a record and their names: a byte, and its forms in viewers, editors and syslog
/// daemons.
const SEPARATORS: [&str; 7] = [
    "\u{1d}", "^]", "#035", "\\x1d", "\\u001d", "\\035", "\u{241d}",
];
/// The first field that auditd's enriched format adds.
const FIRST_NAME: &str = "AUID=";

/// Parses the record of a line.
pub(super) fn read(body: &str, assumed: Arch) -> Result<Record, UnreadReason> {
    let body = without_names(body);
    let (head, tail) = body.rsplit_once(" sig=").unwrap_or((body, body));
    let field = |name: &str| {
        let words = tail.split_whitespace().rev();
        words
            .filter_map(|word| word.strip_prefix(name)?.strip_prefix('='))
            .next()
    };
    let call = field("syscall").or_else(|| named_number(tail));
    let call = call.ok_or(UnreadReason::Call)?;
    let is_compat = field("compat") == Some("1");
    let arch = field("arch").map(audit_value);
    let (arch, nr) = number(arch, call, assumed, is_compat).ok_or(UnreadReason::Call)?;
    // Interpreted records contain names of programs without escapes.
    let is_interpreted = call.parse::<u32>().is_err();
    let program = ["exe", "comm"]
        .iter()
        .find_map(|name| program(head, name, is_interpreted));
    Ok(Record {
        arch,
        nr,
        kind: field("code").and_then(kind),
        program,
    })
}

/// The call as snappy-debug writes it, in place of the field: `83(mkdir)`.
fn named_number(tail: &str) -> Option<&str> {
    let is_call = |word: &&str| {
        let parts = word.strip_suffix(')').and_then(|word| word.split_once('('));
        parts.is_some_and(|(nr, name)| nr.parse::<u32>().is_ok() && !name.contains('='))
    };
    tail.split_whitespace().find(is_call)
}

/// Removes the names that auditd's enriched format adds.
fn without_names(body: &str) -> &str {
    let tail = body.rfind(" sig=").unwrap_or(0);
    let cuts = SEPARATORS.iter().chain([&FIRST_NAME]);
    let cut = cuts.filter_map(|words| body[tail..].find(words)).min();
    match cut {
        Some(cut) => &body[..tail + cut],
        None => body,
    }
}

/// The name of a program in the fields before the call.
fn program(head: &str, name: &str, is_interpreted: bool) -> Option<String> {
    let key = format!(" {name}=");
    let start = match name {
        "exe" => head.rfind(&key)?,
        _ => head.find(&key)?,
    };
    let value = &head[start + key.len()..];
    if let Some(quoted) = value.strip_prefix('"') {
        return Some(quoted.split('"').next().unwrap_or_default().to_owned());
    }
    let ends = [" exe=", " arch=", " syscall=", " code="];
    let end = ends.iter().filter_map(|end| value.find(end)).min();
    let value = &value[..end.unwrap_or(value.len())];
    let value = match is_interpreted {
        true => value.trim(),
        false => value.split_whitespace().next().unwrap_or_default(),
    };
    match value {
        "" | "?" | "(null)" | "(none)" => None,
        value if is_interpreted => Some(value.to_owned()),
        value => Some(decoded(value).unwrap_or_else(|| value.to_owned())),
    }
}

/// The kernel writes names with spaces, quotes or bytes outside ASCII as hexadecimal digits.
fn decoded(digits: &str) -> Option<String> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let digits = str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(digits, 16).ok()
    };
    let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
    Some(String::from_utf8_lossy(&bytes?).into_owned())
}

/// The action of a record; `ausearch -i` writes it by name.
fn kind(code: &str) -> Option<ActionKind> {
    if let Some(digits) = code.strip_prefix("0x") {
        let ret = u32::from_str_radix(digits, 16).ok()?;
        return Some(Action::from_ret(ret).kind);
    }
    match code {
        "kill" => Some(ActionKind::KillThread),
        "user-notif" | "user-notify" => Some(ActionKind::Notify),
        name => ActionKind::from_name(name),
    }
}

/// The architecture in a field.
#[derive(Clone, Copy)]
enum WrittenArch {
    Value(u32),
    Named(Option<Arch>),
}

fn audit_value(text: &str) -> WrittenArch {
    let inside = |text: &str| {
        let digits = text.strip_prefix("unknown-elf-type(")?.strip_suffix(')')?;
        u32::from_str_radix(digits, 16).ok()
    };
    match u32::from_str_radix(text, 16).ok().or_else(|| inside(text)) {
        Some(value) => WrittenArch::Value(value),
        None => WrittenArch::Named(Arch::from_name(text)),
    }
}

/// The call of a record; `ausearch -i` writes names.
fn number(
    arch: Option<WrittenArch>,
    call: &str,
    assumed: Arch,
    is_compat: bool,
) -> Option<(Arch, Nr)> {
    let (name, inside) = match call.strip_suffix(')').and_then(|call| call.split_once('(')) {
        Some((name, inside)) => (name, Some(inside)),
        None => (call, None),
    };
    let digits = match name {
        "unknown-syscall" => inside?,
        name => name,
    };
    let mut of_machine = assumed.with_compat().iter();
    let without = match is_compat {
        true => *of_machine
            .find(|arch| !arch.is_64_bit())
            .unwrap_or(&assumed),
        false => assumed,
    };
    if let Ok(nr) = digits.parse() {
        let audit = match arch {
            Some(WrittenArch::Value(audit)) => audit,
            Some(WrittenArch::Named(named)) => named?.audit(),
            None => without.audit(),
        };
        return Some((Arch::of_call(audit, nr)?, Nr(nr)));
    }
    let arch = match arch {
        Some(WrittenArch::Value(audit)) => Arch::of_call(audit, 0)?,
        Some(WrittenArch::Named(named)) => named?,
        None => without,
    };
    let name = match syscall::is_known(name) {
        true => name,
        false => entry_point::call_of(name).unwrap_or(name),
    };
    Some((arch, syscall::number(arch, name)?))
}

/// The record of the security-profiles-operator's enricher, with the name of the call and no action.
pub(super) fn of_enricher(line: &str, assumed: Arch) -> Option<ParseResult> {
    if !line.contains("\"type\"=\"seccomp\"") {
        return None;
    }
    let field = |name: &str| {
        let value = line.split_once(&format!("\"{name}\"="))?.1;
        let value = value.split_whitespace().next()?;
        Some(value.trim_matches('"'))
    };
    let call = field("syscallName").filter(|name| !name.is_empty());
    let call = call.or_else(|| field("syscallID"));
    let call = call.and_then(|call| number(None, call, assumed, false));
    let record = |(arch, nr)| Record {
        arch,
        nr,
        kind: None,
        program: field("executable").map(str::to_owned),
    };
    let found = call.map(record).ok_or(UnreadReason::Call);
    Some(found.map(|record| (record, Writer::Unnamed)))
}
