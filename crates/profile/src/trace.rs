//! Logs of `strace`: a line for each call, with arguments and result.
//!
//! A call counts at its beginning, even if it is unfinished there; its error counts at its return. The values of
//! constants and flags are parsed from their names; a value that can't be parsed is unknown, as a profile permits.
//! Other lines (signals, exits, output of the traced program) are skipped.

use std::collections::BTreeMap;

use tamis_abi::call::strace;
use tamis_abi::signature::{self, Width};
use tamis_abi::{Arch, consts, errno};

use crate::collect::{Collector, Word, lines};
use crate::interest;

/// A line with a call.
struct Line<'t> {
    /// The task as printed; empty if there is only one.
    task: &'t str,
    /// The architecture that `tamis trace` writes before the name.
    arch: Option<Arch>,
    name: Word<'t>,
    kind: Kind<'t>,
}

/// The part of a call in a line.
enum Kind<'t> {
    /// Its beginning, with a result if it returns in the same line.
    Begins(&'t str),
    /// Its return.
    Resumes(&'t str),
}

/// Whether a line is a call.
pub(crate) fn is_line(line: &str) -> bool {
    let word = Word {
        text: line,
        start: 0,
    };
    let begins = |line: &Line<'_>| matches!(line.kind, Kind::Begins(rest) if is_whole(rest));
    parsed(word).as_ref().is_some_and(begins)
}

/// Whether the text after a call's parenthesis ends as in a log.
fn is_whole(rest: &str) -> bool {
    result(rest).is_some() || rest.ends_with(strace::UNFINISHED)
}

/// Adds the calls of all lines.
pub(crate) fn read(collector: &mut Collector, text: &str) {
    let native = collector.arch;
    let mut modes: BTreeMap<&str, Arch> = BTreeMap::new();
    let mut has_tasks = false;
    for line in lines(text) {
        if let Some((task, arch)) = mode(line.text, native) {
            modes.insert(task, arch);
            if !has_tasks {
                // A single task's lines have no number.
                modes.insert("", arch);
            }
            continue;
        }
        let Some(line) = parsed(line) else {
            continue;
        };
        let Line {
            task,
            arch,
            name,
            kind,
        } = line;
        has_tasks |= !task.is_empty();
        let arch = arch.or_else(|| modes.get(task).copied());
        collector.arch = arch.unwrap_or(native);
        match kind {
            Kind::Begins(rest) if is_whole(rest) => {
                collector.add(name, 1);
                add_values(collector, name, rest);
                add_error(collector, name, rest);
            }
            Kind::Begins(_) => {}
            Kind::Resumes(rest) => add_error(collector, name, rest),
        }
    }
    collector.arch = native;
}

/// The parts of a line: the task's number, times, then the call.
fn parsed(line: Word<'_>) -> Option<Line<'_>> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let (before, kind, end) = match line.text.split_once("<... ") {
        Some((before, rest)) => {
            let (_, after) = rest.split_once(" resumed>")?;
            let start = before.len() + "<... ".len();
            (before, Kind::Resumes(after), start + rest.find(' ')?)
        }
        None => {
            let open = line.text.find('(')?;
            // The time since the previous line has its own parentheses.
            let open = match line.text[open..].strip_prefix("(+") {
                Some(rest) => open + 2 + rest.find('(')?,
                None => open,
            };
            (
                &line.text[..open],
                Kind::Begins(&line.text[open + 1..]),
                open,
            )
        }
    };
    let head = &line.text[..end];
    let name_len = head.chars().rev().take_while(|c| is_name(*c)).count();
    let start = end - name_len;
    let (arch, before_name) = arch_before(&head[..start]);
    let prefix = match kind {
        Kind::Begins(_) => before_name,
        Kind::Resumes(_) => before,
    };
    let is_prefix = prefix
        .chars()
        .all(|c| " \t[]pid0123456789:.+()".contains(c));
    let begins_right = head[start..].starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let name = Word {
        text: &head[start..],
        start: line.start + start,
    };
    let task = prefix.trim_start_matches("[pid").trim();
    let task = task.split([' ', ']']).next().unwrap_or_default();
    (is_prefix && begins_right).then_some(Line {
        task,
        arch,
        name,
        kind,
    })
}

/// The architecture at the end of a text, as in `17 x86:`, and the text before it.
fn arch_before(text: &str) -> (Option<Arch>, &str) {
    let own = [("x86:", Arch::X86), ("x32:", Arch::X32)];
    own.into_iter()
        .find_map(|(mark, arch)| Some((Some(arch), text.strip_suffix(mark)?)))
        .unwrap_or((None, text))
}

/// The text after the last ` = ` of a line.
fn result(rest: &str) -> Option<&str> {
    let (_, result) = rest.rsplit_once(" = ")?;
    let is_result = result.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '?');
    is_result.then_some(result)
}

/// `[ Process PID=1 runs in 32 bit mode. ]`: the task and the architecture of its following calls.
fn mode(line: &str, native: Arch) -> Option<(&str, Arch)> {
    let (_, rest) = line.split_once("[ Process PID=")?;
    let (task, mode) = rest.split_once(" runs in ")?;
    let arch = match (native, mode.split(" mode").next()?) {
        (Arch::X86_64, "32 bit") => Arch::X86,
        (Arch::X86_64, "x32") => Arch::X32,
        _ => native,
    };
    Some((task, arch))
}

fn add_error(collector: &mut Collector, name: Word<'_>, rest: &str) {
    let failed = result(rest).and_then(|result| result.strip_prefix("-1 "));
    let error = failed.and_then(|text| text.split(' ').next());
    let error = error.filter(|error| error.starts_with('E'));
    let number = error.and_then(|error| consts::value(collector.arch, error));
    let number = number.filter(|number| *number <= u64::from(errno::MAX));
    if let (Some(number), Some(call)) = (number, collector.call_mut(name)) {
        *call.errors.entry(number as u16).or_default() += 1;
        // A log that begins within a call has only its end.
        call.count = call.count.max(call.errors.values().sum());
    }
}

fn add_values(collector: &mut Collector, name: Word<'_>, rest: &str) {
    let arch = collector.arch;
    let (texts, _) = strace::arguments(rest);
    let known: Vec<&str> = signature::args(name.text)
        .unwrap_or_default()
        .iter()
        .map(signature::Arg::name)
        .collect();
    for argument in interest::arguments(arch, name.text) {
        // The log has the arguments in the order of the call, not of the registers.
        let place = known
            .iter()
            .position(|arg| signature::index(arch, name.text, arg) == Some(argument.index));
        // `clone` is printed with the argument names of its manual page.
        let named = texts.iter().find_map(|text| text.strip_prefix("flags="));
        let placed = place.and_then(|place| texts.get(place).copied());
        let text = if name.text == "clone" { named } else { placed };
        let value = text.and_then(|text| value(arch, text, argument.width));
        if let (Some(value), Some(call)) = (value, collector.call_mut(name)) {
            let values = call.values.entry(argument.index.index() as u8).or_default();
            *values.entry(value).or_default() += 1;
        }
    }
}

/// The value of names and numbers separated by `|`.
fn value(arch: Arch, text: &str, width: Width) -> Option<u64> {
    let mut value = 0;
    for part in text.split('|') {
        let part = part.trim();
        let number = match part.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None if part.starts_with(|c: char| c.is_ascii_digit()) => {
                match part.strip_prefix('0') {
                    Some(digits) if !digits.is_empty() => u64::from_str_radix(digits, 8).ok(),
                    _ => part.parse().ok(),
                }
            }
            None => consts::value(arch, part),
        };
        value |= number?;
    }
    Some(value & width.max())
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Nr, syscall};
    use tamis_diag::Sources;

    use super::*;
    use crate::{Call, Format, Profile};

    const LOG: &str = r#"execve("/bin/true", ["true", "a) = 1"], 0x7ffd /* 20 vars */) = 0
[pid  4711] openat(AT_FDCWD, "/etc/a,b(c", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file or directory)
4711  12:30:01.000123 socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 3
1700000000.5 (+     0.000040) prctl(PR_SET_NAME, "x") = 0
[pid  4712] read(0,  <unfinished ...>
--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---
[pid  4712] <... read resumed>0x7ffd, 16) = -1 EINTR (Interrupted system call)
[ Process PID=4713 runs in 32 bit mode. ]
[pid  4713] getpid() = 4713
output of the program (with parentheses) = 3
clone(child_stack=NULL, flags=CLONE_VM|SIGCHLD, child_tidptr=0x7f) = 5
4714 ioctl(2, TCGETS <unfinished ...>
exit_group(0) = ?
+++ exited with 0 +++
"#;

    fn profile() -> Profile {
        let mut sources = Sources::new();
        let source = sources.add("trace.txt", LOG);
        let reading = crate::read(&sources, source, Arch::X86_64);
        assert_eq!(reading.format, Some(Format::Trace));
        assert!(reading.diagnostics.is_empty(), "{:?}", reading.diagnostics);
        reading.profile.unwrap()
    }

    fn call<'p>(profile: &'p Profile, arch: Arch, name: &str) -> &'p Call {
        let nr: Nr = syscall::number(arch, name).unwrap();
        profile.call(arch, nr).unwrap_or_else(|| panic!("{name}"))
    }

    #[test]
    fn the_mode_of_a_single_task_is_that_of_its_lines() {
        let log = "execve(\"./a\", [\"./a\"], 0x7f) = 0\n[ Process PID=7 runs in 32 bit mode. ]\ngetpid() = 7\n";
        let mut sources = Sources::new();
        let source = sources.add("trace.txt", log);
        let profile = crate::read(&sources, source, Arch::X86_64).profile.unwrap();
        assert_eq!(call(&profile, Arch::X86, "getpid").count, 1);
    }

    #[test]
    fn calls_may_have_their_architecture() {
        let log = "7 x86:getpid() = 7\n7 x86:read(0,  <unfinished ...>\n8 getpid() = 8\n\
                   7 <... x86:read resumed>\"\", 9) = -1 EINTR (Interrupted system call)\n\
                   7 x32:getpid() = -1 ENOSYS (Function not implemented)\n";
        let mut sources = Sources::new();
        let source = sources.add("trace.txt", log);
        let profile = crate::read(&sources, source, Arch::X86_64).profile.unwrap();
        for arch in [Arch::X86_64, Arch::X86, Arch::X32] {
            assert_eq!(call(&profile, arch, "getpid").count, 1);
        }
        let read = call(&profile, Arch::X86, "read");
        assert_eq!((read.count, read.errors[&4]), (1, 1));
    }

    #[test]
    fn calls_errors_and_values_are_read() {
        let profile = profile();
        let native = |name| call(&profile, Arch::X86_64, name);
        assert_eq!(
            profile.calls().map(|(_, _, call)| call.count).sum::<u64>(),
            9
        );
        assert_eq!(native("openat").errors, BTreeMap::from([(2, 1)]));
        assert_eq!(
            native("openat").values[&2],
            BTreeMap::from([(0o2000000, 1)])
        );
        assert_eq!(
            native("socket").values[&1],
            BTreeMap::from([(0o2000001, 1)])
        );
        assert_eq!(native("clone").values[&0], BTreeMap::from([(0x111, 1)]));
        assert_eq!(native("ioctl").values[&1], BTreeMap::from([(0x5401, 1)]));
        assert_eq!(native("prctl").values[&0], BTreeMap::from([(15, 1)]));
        assert_eq!((native("read").count, native("read").errors[&4]), (1, 1));
        assert_eq!(call(&profile, Arch::X86, "getpid").count, 1);
    }
}
