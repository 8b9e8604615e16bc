//! Calls in the format of strace.
//!
//! ```text
//! [pid  4711] 12:30:01 openat(AT_FDCWD</home>, "/etc/a,b(c", O_RDONLY|O_CLOEXEC /* hm */) = -1 ENOENT (No such file)
//! ```
//!
//! This module parses the tasks and times before a call, the commas within strings, arrays and structures, the
//! comments, and the text after the parenthesis; it doesn't interpret the words.

/// The mark of a part of a call that another task's line interrupts.
pub const UNFINISHED: &str = "<unfinished ...>";

/// The texts of the arguments, and the text after the closing parenthesis; `None` without one.
///
/// The text begins after the parenthesis that opens them.
///
/// ```
/// use tamis_abi::call::strace;
/// let (args, after) = strace::arguments(r#"3, "a, b)", {st_size=1, ...}) = 0"#);
/// assert_eq!(args, ["3", r#""a, b)""#, "{st_size=1, ...}"]);
/// assert_eq!(after, Some(" = 0"));
/// ```
pub fn arguments(text: &str) -> (Vec<&str>, Option<&str>) {
    let (mut depth, mut is_quoted, mut is_escaped, mut start) = (0_usize, false, false, 0);
    let mut texts = Vec::new();
    for (at, char) in text.char_indices() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth > 0 => depth -= 1,
            ')' => {
                let last = text[start..at].trim();
                texts.extend((!last.is_empty() || !texts.is_empty()).then_some(last));
                return (texts, Some(&text[at + 1..]));
            }
            ',' if depth == 0 => {
                texts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    // An unfinished call: the printed arguments before the mark are complete.
    let last = text[start..].trim_end_matches(UNFINISHED).trim();
    texts.extend((!last.is_empty()).then_some(last));
    (texts, None)
}

/// The call whose end this is, as strace prints it after a line of another task: `<... read resumed>"x", 1) = 1`.
///
/// ```
/// use tamis_abi::call::strace;
/// assert_eq!(strace::resumed(r#"[pid 7] <... read resumed>"x", 1) = 1"#), Some("read"));
/// ```
pub fn resumed(text: &str) -> Option<&str> {
    let (name, _) = without_prefix(text)
        .strip_prefix(RESUMED)?
        .split_once(" resumed")?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_name).then_some(name)
}

/// How the end of a call begins.
const RESUMED: &str = "<... ";

/// The text from the name of the call on: without the task's number and times.
pub(super) fn without_prefix(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let end = match rest {
            _ if rest.starts_with("[pid ") => rest.find(']').map(|at| at + 1),
            _ if rest.starts_with("(+") => rest.find(')').map(|at| at + 1),
            _ => rest.find(' '),
        };
        let Some((word, after)) = end.and_then(|at| rest.split_at_checked(at)) else {
            break;
        };
        let is_time = |c: char| c.is_ascii_digit() || ".:".contains(c);
        if !word.starts_with(['[', '(']) && !word.chars().all(is_time) {
            break;
        }
        rest = after.trim_start();
    }
    // `386 5(1)` is a call of an architecture that has no name.
    let is_call = rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if is_call || rest.starts_with(RESUMED) {
        rest
    } else {
        text
    }
}

/// Whether the text after a call's parenthesis is its result, or the mark of a missing one.
pub(super) fn is_result(after: &str) -> bool {
    after.starts_with("= ") || after == UNFINISHED
}

/// The name of an argument and its value, if it is printed with one.
pub(super) fn split_name(argument: &str) -> Option<(&str, &str)> {
    let (name, value) = argument.split_once('=')?;
    let name = name.trim();
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some((name, value))
}

/// Whether a value is the target of a pointer: a string, an array, a structure, a set of signals or nothing.
pub(super) fn is_memory(value: &str) -> bool {
    let value = value.trim();
    ["\"", "[", "{", "~["]
        .iter()
        .any(|start| value.starts_with(start))
        || value == "NULL"
}

/// A value without comments, `0x7ffd /* 20 vars */`, and without the file of a descriptor, `3</etc/passwd>`.
pub(super) fn without_notes(value: &str) -> String {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, comment)) = rest.split_once("/*") {
        text.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let text = text.trim();
    let noted = text.find('<').filter(|_| text.ends_with('>'));
    text[..noted.unwrap_or(text.len())].to_owned()
}

/// The name in the kernel's source of an argument: strace has those of the manual for `clone`.
pub(super) fn argument<'t>(call: &str, name: &'t str) -> &'t str {
    match (call, name) {
        ("clone", "flags") => "clone_flags",
        ("clone", "child_stack") => "newsp",
        ("clone", "parent_tid") => "parent_tidptr",
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Arch, SeccompData, call};

    fn parsed(text: &str) -> SeccompData {
        call::parse(text, Arch::X86_64).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn lines_of_strace_are_calls() {
        let cases = [
            (
                r#"[pid  4711] openat(AT_FDCWD</home>, "/etc/a,b(c", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file)"#,
                257,
                [0xffff_ff9c, 0, 0o2_000_000, 0, 0, 0],
            ),
            (
                r#"4711  12:30:01.000123 socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 3"#,
                41,
                [1, 0o2_000_001, 0, 0, 0, 0],
            ),
            (
                r#"1700000000.5 (+     0.000040) prctl(PR_SET_NAME, "x") = 0"#,
                157,
                [15, 0, 0, 0, 0, 0],
            ),
            (
                "clone(child_stack=NULL, flags=CLONE_VM|SIGCHLD, child_tidptr=0x7f) = 5",
                56,
                [0x111, 0, 0, 0x7f, 0, 0],
            ),
            (r#"mkdir("/tmp/a@b", 0755) = 0"#, 83, [0, 0o755, 0, 0, 0, 0]),
            (
                "rt_sigprocmask(SIG_BLOCK, ~[RTMIN RT_1], [], 8) = 0",
                14,
                [0, 0, 0, 8, 0, 0],
            ),
            (
                "arch_prctl(0x3001 /* ARCH_??? */, 0x7ffe) = -1 EINVAL (Invalid argument)",
                158,
                [0x3001, 0x7ffe, 0, 0, 0, 0],
            ),
            (
                "read(3</dev/null>,  <unfinished ...>",
                0,
                [3, 0, 0, 0, 0, 0],
            ),
            (
                "accept4(3, {sa_family=AF_INET, sin_port=htons(80)}, [16 => 4], SOCK_CLOEXEC) = 4",
                288,
                [3, 0, 0, 0o2_000_000, 0, 0],
            ),
            ("exit_group(0) = ?", 231, [0; 6]),
            (
                r#"4711  12:30:01.000123 <... recvfrom resumed>"x", 1, 0, NULL, NULL) = 1"#,
                45,
                [0; 6],
            ),
            ("[pid     7] <... futex resumed> ) = 0", 202, [0; 6]),
        ];
        for (text, nr, args) in cases {
            let data = parsed(text);
            assert_eq!((data.nr, data.args), (nr, args), "{text}");
        }
    }

    #[test]
    fn a_number_before_a_number_is_an_architecture() {
        assert_eq!(parsed("386 5(1)").arch, 386);
    }
}
