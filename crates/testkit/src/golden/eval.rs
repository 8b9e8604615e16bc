//! Rows of calls with their expected actions.
//!
//! ```text
//! ; a call as `tamis bpf eval` takes it, and an action; an unknown architecture is a number
//! x86_64 socket(AF_INET, SOCK_STREAM) -> allow
//! x86 102(1) @0x1000 -> errno(EPERM)
//! 0xc00000b6 198 -> kill_process
//! ```

use tamis_abi::{Action, ActionKind, Arch, SeccompData, call, consts};

use super::subject::Artifact;

/// One call and its action.
#[derive(Clone, Debug)]
pub(super) struct Row {
    line: usize,
    /// The row as in the file.
    pub(super) text: String,
    /// The call.
    pub(super) data: SeccompData,
    expected: Action,
}

/// The rows for which a subject returns another action, each as a sentence.
pub(super) fn check(rows: &[Row], subject: &Artifact) -> Vec<String> {
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
/// The first error, with its line.
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
    Ok(Row {
        line,
        text: text.to_owned(),
        data: parse_call(call.trim())?,
        expected: parse_action(action.trim())?,
    })
}

/// A call with its architecture, or an architecture by number followed by a call of x86_64.
fn parse_call(text: &str) -> Result<SeccompData, String> {
    let (arch, rest) = text.split_once(' ').unwrap_or((text, ""));
    let audit = arch
        .strip_prefix("0x")
        .map(|digits| u32::from_str_radix(digits, 16));
    let parse = |text| call::parse(text, Arch::X86_64).map_err(|error| error.to_string());
    match (Arch::from_name(arch), audit) {
        (Some(_), _) => parse(text),
        (None, Some(Ok(audit))) => parse(rest).map(|data| SeccompData {
            arch: audit,
            ..data
        }),
        (None, _) => Err(format!("a row begins with an architecture, not `{arch}`")),
    }
}

/// An action; the data of `errno` may be a name of x86_64.
fn parse_action(text: &str) -> Result<Action, String> {
    let (kind, data) = match text.split_once('(') {
        Some((kind, rest)) => (kind, rest.strip_suffix(')').ok_or("missing `)`")?),
        None => (text, "0"),
    };
    let kind = ActionKind::from_name(kind).ok_or_else(|| format!("unknown action `{kind}`"))?;
    let value = data
        .parse()
        .ok()
        .or_else(|| consts::value(Arch::X86_64, data));
    let data = value.and_then(|value| u16::try_from(value).ok());
    let data = data.ok_or_else(|| format!("not the 16-bit data of an action: {text}"))?;
    Ok(Action::new(kind, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_call_and_an_action() {
        let text = "; why\n\naarch64 openat(0x10|1, -2) @7 -> errno(EPERM)\n";
        let rows = parse(text, 10).unwrap();
        let [row] = rows.as_slice() else {
            panic!("one row, not {}", rows.len());
        };
        assert_eq!(row.line, 12);
        assert_eq!(row.data.arch, Arch::Aarch64.audit());
        assert_eq!((row.data.nr, row.data.ip), (56, 7));
        assert_eq!(row.data.args, [0x11, u64::MAX - 1, 0, 0, 0, 0]);
        assert_eq!(row.expected, Action::errno(1));
    }

    #[test]
    fn an_unknown_architecture_is_a_number() {
        let rows = parse("0x28 3(1) -> kill_thread", 1).unwrap();
        assert_eq!((rows[0].data.arch, rows[0].data.nr), (0x28, 3));
    }

    #[test]
    fn mistakes_name_the_line_and_the_part() {
        for (text, problem) in [
            ("x86_64 read()", "a row needs `-> action`"),
            ("x86_65 read() -> allow", "not `x86_65`"),
            ("read() -> allow", "not `read()`"),
            ("x86_64 raed() -> allow", "`raed`"),
            ("x86_64 read -> permit", "unknown action `permit`"),
            ("x86_64 read -> errno(65536)", "16-bit"),
            ("x86_64 read -> errno(1", "missing `)`"),
        ] {
            let error = parse(text, 3).unwrap_err();
            let is_told = error.starts_with("line 3: ") && error.contains(problem);
            assert!(is_told, "{error}");
        }
    }
}
