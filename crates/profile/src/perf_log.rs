//! Logs of `perf trace`: a line for each call, `TIME (DURATION): COMM/TASK call(ARGUMENTS) = RESULT`.
//!
//! Another task's call may be logged between a call and its result. The call then occurs twice, the second time as
//! continued, and counts once. Values of arguments are not read: perf writes them without their prefixes, or as
//! addresses.

use std::collections::BTreeSet;

use tamis_abi::{consts, errno};

use crate::collect::{Collector, Word, lines};

/// The mark of the rest of a call.
const CONTINUED: &str = "... [continued]: ";

struct Line<'t> {
    task: &'t str,
    name: Word<'t>,
    is_continued: bool,
    rest: &'t str,
}

/// Whether a line is a call.
pub(crate) fn is_line(line: &str) -> bool {
    parsed(Word {
        text: line,
        start: 0,
    })
    .is_some()
}

/// Adds the calls of all lines.
pub(crate) fn read(collector: &mut Collector, text: &str) {
    let mut begun = BTreeSet::new();
    for line in lines(text) {
        let Some(line) = parsed(line) else { continue };
        let call = (line.task, line.name.text);
        if line.is_continued {
            if !begun.remove(&call) {
                collector.add(line.name, 1);
            }
        } else {
            collector.add(line.name, 1);
            if !line.rest.contains(" = ") {
                begun.insert(call);
            }
        }
        let failed = line.rest.rsplit_once(" = -1 ").map(|(_, error)| error);
        let error = failed.and_then(|text| text.split_whitespace().next());
        let number = error.and_then(|error| consts::value(collector.arch, error));
        let number = number.filter(|number| *number <= u64::from(errno::MAX));
        if let (Some(number), Some(call)) = (number, collector.call_mut(line.name)) {
            *call.errors.entry(number as u16).or_default() += 1;
        }
    }
}

fn parsed(line: Word<'_>) -> Option<Line<'_>> {
    let (time, after) = line.text.split_once(" (")?;
    let time = time.trim();
    let is_time = time == "?" || time.parse::<f64>().is_ok();
    let (duration, call) = after.split_once("): ")?;
    let is_duration = duration.trim().is_empty() || duration.trim_end().ends_with("ms");
    // The name of the task may contain any character; its number follows a slash.
    let (task, call) = call
        .split_once('/')
        .filter(|_| is_time && is_duration)
        .and_then(|_| {
            let slashes = call.match_indices('/').map(|(at, _)| at + 1);
            slashes.map(|at| &call[at..]).find_map(|rest| {
                let (task, call) = rest.split_once(' ')?;
                task.bytes()
                    .all(|byte| byte.is_ascii_digit())
                    .then_some((task, call.trim_start()))
            })
        })?;
    let is_continued = call.starts_with(CONTINUED);
    let call = call.strip_prefix(CONTINUED).unwrap_or(call);
    let (name, rest) = call.split_once('(')?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let start = line.start + line.text.len() - call.len();
    (!name.is_empty() && name.chars().all(is_name)).then_some(Line {
        task,
        name: Word { text: name, start },
        is_continued,
        rest,
    })
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Arch, syscall};
    use tamis_diag::Sources;

    use crate::Format;

    #[test]
    fn calls_that_are_continued_count_once() {
        let log = "\
         ? (         ): ls/31465  ... [continued]: execve())                                           = 0
     0.062 ( 0.014 ms): ls/31465 brk()                                                                 = 0x560bb7d8e000
     1.208 ( 0.016 ms): a b/c/31466 access(filename: 0x55bc12a0, mode: R)                              = -1 ENOENT (No such file or directory)
     1.300 (         ): ls/31465 nanosleep(rqtp: 0x7ffd)                                            ...
     1.400 ( 0.001 ms): ls/31465  ... [continued]: nanosleep())                                        = 0
";
        let mut sources = Sources::new();
        let source = sources.add("perf.txt", log);
        let reading = crate::read(&sources, source, Arch::X86_64);
        assert_eq!(reading.format, Some(Format::PerfLog));
        let profile = reading.profile.unwrap();
        let counts: Vec<(&str, u64, u64)> = profile
            .calls()
            .map(|(arch, nr, call)| {
                let name = syscall::name(arch, nr).unwrap();
                (name, call.count, call.errors.values().sum())
            })
            .collect();
        let expected = [
            ("brk", 1, 0),
            ("access", 1, 1),
            ("nanosleep", 1, 0),
            ("execve", 1, 0),
        ];
        assert_eq!(counts, expected);
    }
}
