//! The header before a record in a line: dates, the host, the writer.
//!
//! A line is split at the beginning of its record. The whole header must be recognised: an additional word may come
//! from a program that imitates the kernel. Dates contain words of any language, so they are recognised by their shape.

use super::Writer;

/// The beginnings of a record: with `msg=` from auditd, with `auid=` from the journal, otherwise from the kernel.
const BEGINNINGS: [&str; 7] = [
    KERNEL,
    "type=SECCOMP msg=audit(",
    "type=1326 msg=audit(",
    "type=UNKNOWN[1326] msg=audit(",
    "SECCOMP auid=",
    "AUDIT1326 auid=",
    "<audit-1326> auid=",
];
const KERNEL: &str = "type=1326 audit(";

/// Programs that forward the kernel's records to the syslog.
pub(super) const DISPATCHERS: [&str; 4] = ["auditd", "audispd", "audisp-syslog", "tag_audit_log"];

/// The header of a line and its record; `None` if it has none.
pub(super) fn split(line: &str) -> Option<(&str, &str)> {
    let start = BEGINNINGS
        .iter()
        .filter_map(|words| line.find(words))
        .min()?;
    let (header, body) = line.split_at(start);
    Some((header, body))
}

/// Whether a line is a record written by the kernel or its audit.
pub(crate) fn is_of_system(line: &str) -> bool {
    split(line).is_some_and(|(header, body)| writer(header, body) == Some(Writer::System))
}

/// The writer of a record according to its header; `None` if it is another program.
pub(super) fn writer(header: &str, body: &str) -> Option<Writer> {
    let is_of_kernel = body.starts_with(KERNEL);
    let header = match is_of_kernel {
        true => without_prefix(header),
        false => header,
    };
    let found = judged(header.trim(), body);
    if found.is_some() {
        return found;
    }
    // grep adds the name of the file, the number of the line, or both.
    let mut rest = header.trim_start();
    for _ in 0..2 {
        let word = rest.split(char::is_whitespace).next()?;
        let colon = word.find(':')?;
        rest = &rest[colon + 1..];
        if rest.starts_with(char::is_whitespace) {
            return None;
        }
        let found = judged(rest.trim(), body);
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Removes `audit: ` from a header; the kernel writes it before a record since Linux 3.15.
fn without_prefix(header: &str) -> &str {
    header.strip_suffix("audit: ").unwrap_or(header)
}

fn judged(header: &str, body: &str) -> Option<Writer> {
    if let Some(inner) = without_wrapper(header) {
        return judged(inner, body).map(|_| Writer::Unnamed);
    }
    let header = without_priority(header);
    let (rest, has_stamp) = without_stamps(header);
    let is_of_auditd = body.contains(" msg=audit(");
    if rest.is_empty() {
        let is_named = has_stamp || is_of_auditd;
        return Some(if is_named {
            Writer::System
        } else {
            Writer::Unnamed
        });
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    let is_node = |word: &str| is_of_auditd && word.starts_with("node=");
    let (words, has_node) = match words.split_last() {
        Some((last, before)) if is_node(last) => (before, true),
        _ => (&words[..], false),
    };
    match words {
        [] => Some(Writer::System),
        // `dmesg --time-format iso`; a container runtime writes a full stop in the time.
        [time] if !has_node && is_date(&[time]) => Some(match time.contains(',') {
            true => Writer::System,
            false => Writer::Unnamed,
        }),
        // `dmesg -x`: the facility and the level.
        ["kern", level] | ["kern", level, ":"] if has_stamp && level.starts_with(':') => {
            Some(Writer::System)
        }
        [before @ .., writer] if is_writer(writer, body) && is_date_and_host(before) => {
            Some(Writer::System)
        }
        // RFC 5424: a time, a host, the program, its process, the kind, data.
        [time, _host, program, _process, _kind, _data]
            if is_date(&[time]) && is_writer(&format!("{program}:"), body) =>
        {
            Some(Writer::System)
        }
        // Android's log: any program may write with any tag.
        [date, time, _pid, _tid, _level, "auditd", ":"]
        | [date, time, _pid, _tid, _level, "auditd:"]
            if is_date(&[date]) && is_date(&[time]) =>
        {
            Some(Writer::Unnamed)
        }
        _ => None,
    }
}

/// Removes the header of a wrapper: a container runtime, or a tool that shows its logs.
fn without_wrapper(header: &str) -> Option<&str> {
    if let Some(inside) = header.strip_prefix("[pod/") {
        return Some(inside.split_once(']')?.1.trim());
    }
    let word = header.split(char::is_whitespace).next()?;
    let rest = header[word.len()..].trim_start();
    if let Some(inner) = rest.strip_prefix("| ").or((rest == "|").then_some("")) {
        return (!word.contains(':')).then_some(inner.trim());
    }
    if !word.contains('T') || !is_date(&[word]) {
        return None;
    }
    // The log files of Kubernetes' runtimes: a time, a stream, and whether the line is complete.
    let is_stream = |word: &str| matches!(word, "stdout" | "stderr");
    let mut words = rest.splitn(3, ' ');
    match (words.next(), words.next(), words.next()) {
        (Some(stream), Some("F" | "P"), inner) if is_stream(stream) => {
            Some(inner.unwrap_or_default().trim())
        }
        // `docker logs -t`.
        (Some(first), ..) if first.starts_with('[') => Some(rest),
        _ => None,
    }
}

/// Removes the syslog's number of facility and severity, and the following version of RFC 5424.
fn without_priority(header: &str) -> &str {
    let Some((digits, rest)) = header
        .strip_prefix('<')
        .and_then(|rest| rest.split_once('>'))
    else {
        return header;
    };
    match is_number(digits) {
        true => rest.strip_prefix("1 ").unwrap_or(rest).trim(),
        false => header,
    }
}

/// Removes the kernel's stamps in brackets: the time, the thread or processor; those of the journal come first.
fn without_stamps(header: &str) -> (&str, bool) {
    let mut rest = header.trim();
    let mut has_stamp = false;
    while let Some((before, _)) = rest
        .strip_suffix(']')
        .and_then(|rest| rest.rsplit_once('['))
        .filter(|(before, stamp)| {
            is_stamp(stamp) && !before.ends_with(|c: char| c.is_alphanumeric())
        })
    {
        (rest, has_stamp) = (before.trim_end(), true);
    }
    if let Some((stamp, behind)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        && is_stamp(stamp)
    {
        rest = behind.trim_start();
    }
    (rest, has_stamp)
}

/// Whether a text is a stamp of the kernel: seconds, seconds and a difference, a date, a thread or a processor.
fn is_stamp(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, ' ' | '.' | '<' | '>' | '+');
    let text = text.trim();
    let is_seconds = !text.is_empty() && text.chars().all(is_part);
    let is_caller = text.strip_prefix(['T', 'C']).is_some_and(is_number);
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_date = match words[..] {
        [_weekday, _month, day, time, year] => is_number(day) && is_time(time) && is_number(year),
        // `dmesg --reltime` at the first line of a minute: `Nov28 05:00`.
        [date, time] => is_month_and_day(date) && is_hour_and_minute(time),
        _ => false,
    };
    is_seconds || is_caller || is_date
}

fn is_month_and_day(text: &str) -> bool {
    let month = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_name = !month.is_empty() && month.chars().all(|c| c.is_alphabetic() || c == '.');
    is_name && (1..=2).contains(&(text.len() - month.len()))
}

fn is_hour_and_minute(text: &str) -> bool {
    let parts = text.split_once(':');
    parts.is_some_and(|(hour, minute)| {
        hour.len() == 2 && minute.len() == 2 && is_number(hour) && is_number(minute)
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_time(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit()) && text.contains(':')
}

/// Whether words are a date and time in one of the formats of syslog and journal.
fn is_date(words: &[&str]) -> bool {
    let is_word = |word: &str| !word.contains([':', '[', '=']);
    let is_digits = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
    match words {
        [] => true,
        [one] => is_digits(one) && !one.ends_with(':'),
        [month, day] => is_word(month) && is_number(day),
        [month, day, time] if is_number(day) => is_word(month) && is_time(time),
        [weekday, date, rest @ ..] if is_digits(date) && date.contains('-') => {
            let is_rest = match rest {
                [time] => is_time(time),
                [time, zone] => is_time(time) && is_word(zone),
                _ => false,
            };
            is_word(weekday) && is_rest
        }
        _ => false,
    }
}

/// Whether words are a date and at most one host.
fn is_date_and_host(words: &[&str]) -> bool {
    let is_host = |word: &str| !word.contains([':', '[', '=']);
    match words {
        [date @ .., host] if is_host(host) && is_date(date) => true,
        words => is_date(words),
    }
}

/// Whether a word names the kernel or its audit as the writer of a line. `kernel[7]:` is rejected, and so is an audit
/// with a record in the kernel's form.
fn is_writer(word: &str, body: &str) -> bool {
    if body.starts_with(KERNEL) {
        return word == "kernel:";
    }
    let Some(name) = word.strip_suffix(':') else {
        return false;
    };
    let name = match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
        Some((name, pid)) if is_number(pid) => name,
        _ => name,
    };
    let is_of_auditd = body.contains(" msg=audit(");
    match is_of_auditd {
        true => DISPATCHERS.contains(&name),
        false => name == "audit",
    }
}
