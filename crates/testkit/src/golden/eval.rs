//! Rows of calls and the actions they must get.
//!
//! ```text
//! ; architecture, call by name or number, arguments that are not zero, instruction pointer
//! x86_64 socket(AF_INET, 1) -> allow
//! x86 0x66(1) ip=0x1000 -> errno(EPERM)
//! 0xc00000b7 198 -> kill_process
//! ```

use tamis_abi::{Action, ActionKind, Arch, SeccompData, syscall};

use super::subject::Subject;

/// One call and its action.
#[derive(Clone, Debug)]
pub(super) struct Row {
    line: usize,
    /// The row as written.
    pub(super) text: String,
    /// The call.
    pub(super) data: SeccompData,
    expected: Action,
}

/// The rows to which a subject answers something else, each as a sentence.
pub(super) fn check(rows: &[Row], subject: &Subject) -> Vec<String> {
    rows.iter()
        .filter_map(|row| {
            let actual = subject.decide(&row.data);
            let Row { line, text, .. } = row;
            let name = subject.name();
            (actual != row.expected)
                .then(|| format!("the {name} answers {actual} to line {line}: {text}"))
        })
        .collect()
}

/// Parses the body of an `eval` section that begins at `first_line`.
///
/// # Errors
/// The first mistake, with its line.
pub(super) fn parse(body: &str, first_line: usize) -> Result<Vec<Row>, String> {
    let numbered = body.lines().enumerate();
    numbered
        .map(|(index, text)| (first_line + index, text.trim()))
        .filter(|(_, text)| !text.is_empty() && !text.starts_with(';'))
        .map(|(line, text)| {
            row(line, text).map_err(|problem| format!("line {line}: {problem}: {text}"))
        })
        .collect()
}

fn row(line: usize, text: &str) -> Result<Row, String> {
    let (call, action) = text.split_once("->").ok_or("a row needs `-> action`")?;
    let (arch_name, call) = call
        .trim()
        .split_once(' ')
        .ok_or("a row begins with an architecture and a call")?;
    let arch = Arch::from_name(arch_name);
    let audit = match arch {
        Some(arch) => arch.audit(),
        None => number(arch_name)
            .and_then(|value| u32::try_from(value).ok())
            .ok_or_else(|| format!("unknown architecture `{arch_name}`"))?,
    };
    let (call, ip) = call.split_once("ip=").unwrap_or((call, "0"));
    let (name, arguments) = match call.trim().split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')').ok_or("missing `)`")?),
        None => (call.trim(), ""),
    };
    let mut data = SeccompData {
        nr: call_number(arch, name)?,
        arch: audit,
        ip: value(ip)?,
        args: [0; 6],
    };
    let arguments: Vec<&str> = arguments.split_terminator(',').collect();
    if arguments.len() > data.args.len() {
        return Err("a call has at most six arguments".to_owned());
    }
    for (slot, argument) in data.args.iter_mut().zip(arguments) {
        *slot = value(argument)?;
    }
    Ok(Row {
        line,
        text: text.to_owned(),
        data,
        expected: parse_action(action.trim())?,
    })
}

fn call_number(arch: Option<Arch>, name: &str) -> Result<u32, String> {
    if let Some(number) = number(name) {
        return Ok(number as u32);
    }
    let number = arch.and_then(|arch| syscall::number(arch, name));
    number
        .map(|nr| nr.0)
        .ok_or_else(|| format!("no call `{name}`"))
}

fn parse_action(text: &str) -> Result<Action, String> {
    let (kind, data) = match text.split_once('(') {
        Some((kind, rest)) => (kind, rest.strip_suffix(')').ok_or("missing `)`")?),
        None => (text, "0"),
    };
    let kind = ActionKind::from_name(kind).ok_or_else(|| format!("unknown action `{kind}`"))?;
    let data = u16::try_from(value(data)?)
        .map_err(|_| format!("the data of an action has 16 bits, not {data}"))?;
    Ok(Action::new(kind, data))
}

/// A value: numbers joined by `|`.
fn value(text: &str) -> Result<u64, String> {
    text.split('|').try_fold(0, |bits, part| {
        let part = part.trim();
        number(part)
            .map(|value| bits | value)
            .ok_or_else(|| format!("unknown value `{part}`"))
    })
}

/// A decimal or hexadecimal number; negative ones in two's complement.
fn number(text: &str) -> Option<u64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let magnitude = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if is_negative {
        magnitude.wrapping_neg()
    } else {
        magnitude
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_all_parts_of_a_call() {
        let rows = parse("; why\n\naarch64 -1(0x10|1, -2) ip=7 -> errno(5)\n", 10).unwrap();
        let [row] = rows.as_slice() else {
            panic!("one row, not {}", rows.len());
        };
        assert_eq!(row.line, 12);
        assert_eq!(row.data.arch, Arch::Aarch64.audit());
        assert_eq!((row.data.nr, row.data.ip), (u32::MAX, 7));
        assert_eq!(row.data.args, [0x11, u64::MAX - 1, 0, 0, 0, 0]);
        assert_eq!(row.expected, Action::errno(5));
    }

    #[test]
    fn mistakes_name_the_line_and_the_part() {
        for (text, problem) in [
            ("x86_64 read()", "a row needs `-> action`"),
            ("x86_65 read() -> allow", "unknown architecture `x86_65`"),
            ("x86_64 raed() -> allow", "no call `raed`"),
            ("x86_64 read(y) -> allow", "unknown value `y`"),
            ("x86_64 read(1,2,3,4,5,6,7) -> allow", "at most six"),
            ("x86_64 read( -> allow", "missing `)`"),
            ("x86_64 read -> permit", "unknown action `permit`"),
            ("x86_64 read -> errno(65536)", "16 bits"),
        ] {
            let error = parse(text, 3).unwrap_err();
            assert!(
                error.starts_with("line 3: ") && error.contains(problem),
                "{error}"
            );
        }
    }
}
