//! Summaries of `perf trace -s`: one table per thread; their counts are added.
//!
//! A table begins with a heading `syscall calls …` and ends with an empty line. With `--errno-summary` there are
//! lines with names of errors between the rows.

use crate::code;
use crate::collect::{Collector, Word, lines};

/// Whether a line is the heading of a table.
pub(crate) fn is_heading(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("syscall") && words.next() == Some("calls")
}

/// Adds the rows of all tables.
pub(crate) fn read(collector: &mut Collector, text: &str) {
    let mut is_in_table = false;
    for line in lines(text) {
        if is_heading(line.text) {
            is_in_table = true;
        } else if line.text.trim().is_empty() {
            is_in_table = false;
        } else if is_in_table {
            read_row(collector, line);
        }
    }
}

fn read_row(collector: &mut Collector, line: Word<'_>) {
    let mut words = line.words();
    let (Some(first), second) = (words.next(), words.next()) else {
        return;
    };
    // Units of the columns, the ruler, and counts of errors such as `ENOENT: 19`.
    let is_decoration = first.text.starts_with(['(', '-']) || first.text.ends_with(':');
    if is_decoration {
        return;
    }
    match second {
        Some(count) => {
            if let Some(count) = collector.count(count) {
                collector.add(first, count);
            }
        }
        None => {
            let message = "this is not a row of the table".to_owned();
            let label = "expected a call and its count";
            collector.error(code::PROFILE_TABLE, line.trim(), message, label);
        }
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Arch, syscall};
    use tamis_diag::Sources;

    use crate::Format;

    #[test]
    fn threads_add_up_and_errors_are_not_calls() {
        let thread = "\
 ls (1), 296 events, 97.4%

   syscall            calls  errors  total       min       avg       max       stddev
                                     (msec)    (msec)    (msec)    (msec)        (%)
   --------------- --------  ------ -------- --------- --------- ---------     ------
   openat                39     19     0.071     0.001     0.002     0.004      6.42%
\t\t\t\tENOENT: 19
   close                 22      0     0.020     0.001     0.001     0.002      5.12%

";
        let mut sources = Sources::new();
        let text = format!(" Summary of events:\n\n{thread}\n{thread}");
        let source = sources.add("perf.txt", text);
        let reading = crate::read(&sources, source, Arch::X86_64);
        assert_eq!(reading.format, Some(Format::Perf));
        assert_eq!(reading.diagnostics, []);
        let profile = reading.profile.unwrap();
        let count = |name| {
            let nr = syscall::number(Arch::X86_64, name).unwrap();
            profile.call(Arch::X86_64, nr).unwrap().count
        };
        assert_eq!([count("openat"), count("close")], [78, 44]);
        assert_eq!(profile.calls().count(), 2);
    }
}
