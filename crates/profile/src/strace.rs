//! Tables of `strace -c`: one row per call, one table per personality.
//!
//! The columns vary with the version and with `-U` and `-w`, so they are identified by their headings; only `calls` and
//! the name, at any position, are required. The column `errors` is blank for calls without errors: a row with one word
//! less lacks it. Output of the traced program around a table is skipped.

use tamis_abi::Arch;

use crate::code;
use crate::collect::{Collector, Word, lines};

/// The heading that contains a space.
const TIME: &str = "% time";
/// The heading of the column of names.
const NAME: &str = "syscall";
/// The last row of a table, below a second ruler.
const TOTAL: &str = "total";
/// The beginning of the line above the table of another personality.
const OTHER_MODE: &str = "System call usage summary for ";

/// The positions of the columns.
struct Columns {
    count: usize,
    calls: usize,
    errors: Option<usize>,
    name: usize,
}

/// Whether a line is the heading of a table; `next` is the line below it.
pub(crate) fn is_heading(line: &str, next: Option<&str>) -> bool {
    let Some(ruler) = next.filter(|next| is_ruler(next)) else {
        return false;
    };
    let names = headings(line);
    names.split_whitespace().any(|name| name == NAME)
        && names.split_whitespace().count() == ruler.split_whitespace().count()
}

/// The headings of a line, a word each.
fn headings(line: &str) -> String {
    line.replace(TIME, "time")
}

fn is_ruler(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('-') && line.bytes().all(|byte| b"- ".contains(&byte))
}

/// Adds the rows of all tables.
pub(crate) fn read(collector: &mut Collector, text: &str) {
    let native = collector.arch;
    let mut lines = lines(text).peekable();
    let mut arch = Some(native);
    while let Some(line) = lines.next() {
        if let Some(mode) = line.text.strip_prefix(OTHER_MODE) {
            arch = compat_arch(native, mode);
            if arch.is_none() {
                let message = "table of an unknown architecture";
                collector.warn(code::PROFILE_ARCH, line, message, "the table is ignored");
            }
        } else if is_heading(line.text, lines.peek().map(|next| next.text)) {
            lines.next();
            let Some(columns) = columns(collector, line) else {
                continue;
            };
            let is_skipped = arch.is_none();
            collector.arch = arch.unwrap_or(native);
            for row in lines.by_ref() {
                let words: Vec<Word<'_>> = row.words().collect();
                if words.is_empty() || is_ruler(row.text) {
                    break;
                }
                if !is_skipped && !read_row(collector, &columns, row, &words) {
                    break;
                }
            }
            arch = Some(native);
        }
    }
    collector.arch = native;
}

fn columns(collector: &mut Collector, heading: Word<'_>) -> Option<Columns> {
    let names = headings(heading.text);
    let names: Vec<&str> = names.split_whitespace().collect();
    let column = |wanted: &str| names.iter().position(|name| *name == wanted);
    let Some(calls) = column("calls") else {
        let message = "the table has no column `calls`".to_owned();
        let label = "make the table with `calls` among the columns of `-U`";
        collector.error(code::PROFILE_TABLE, heading.trim(), message, label);
        return None;
    };
    Some(Columns {
        count: names.len(),
        calls,
        errors: column("errors"),
        name: column(NAME)?,
    })
}

/// Adds a row; false for the last one, which has the sums.
fn read_row(
    collector: &mut Collector,
    columns: &Columns,
    row: Word<'_>,
    words: &[Word<'_>],
) -> bool {
    let lacks_errors = words.len() + 1 == columns.count && columns.errors.is_some();
    let place = |column: usize| match columns.errors {
        Some(errors) if lacks_errors && errors < column => column - 1,
        _ => column,
    };
    let fits = words.len() == columns.count || lacks_errors;
    let (calls, name) = (
        words.get(place(columns.calls)),
        words.get(place(columns.name)),
    );
    let (true, Some(calls), Some(name)) = (fits, calls, name) else {
        misfit(collector, columns, row);
        return true;
    };
    if name.text == TOTAL {
        return false;
    }
    if let Some(count) = collector.count(*calls) {
        collector.add(*name, count);
    }
    true
}

fn misfit(collector: &mut Collector, columns: &Columns, row: Word<'_>) {
    let message = "this is not a row of the table".to_owned();
    let label = format!("the heading has {} columns", columns.count);
    collector.error(code::PROFILE_TABLE, row.trim(), message, &label);
}

/// The architecture of the table for a mode such as `32 bit mode:`.
fn compat_arch(native: Arch, mode: &str) -> Option<Arch> {
    match (native, mode.strip_suffix(" mode:")?) {
        (Arch::X86_64, "x32") => Some(Arch::X32),
        (Arch::X86_64, "32 bit") => Some(Arch::X86),
        (Arch::Aarch64, "32 bit") => Some(Arch::Arm),
        (Arch::Ppc64, "32 bit") => Some(Arch::Ppc),
        (Arch::S390x, "32 bit") => Some(Arch::S390),
        (Arch::Riscv64, "32 bit") => Some(Arch::Riscv32),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::syscall;
    use tamis_diag::Sources;

    use super::*;
    use crate::{Format, Reading};

    fn reading(text: &str) -> Reading {
        let mut sources = Sources::new();
        let source = sources.add("trace.txt", text);
        crate::read(&sources, source, Arch::X86_64)
    }

    fn count(text: &str, arch: Arch, name: &str) -> u64 {
        let reading = reading(text);
        assert_eq!(reading.format, Some(Format::Strace));
        let nr = syscall::number(arch, name).unwrap();
        let profile = reading.profile.expect("no mistakes");
        profile.call(arch, nr).map_or(0, |call| call.count)
    }

    const TABLE: &str = "\
hello from the program
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 75.00    0.000300           5        57        12 openat
 25.00    0.000100           2        40           close
  0.00    0.000000           0         2           syscall_0x1f4
------ ----------- ----------- --------- --------- ----------------
100.00    0.000400           4        99        12 total
System call usage summary for 32 bit mode:
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
  0.00    0.000000           0         7           close
------ ----------- ----------- --------- --------- ----------------
100.00    0.000000           0         7           total
";

    #[test]
    fn blank_errors_other_modes_and_numbers_are_understood() {
        assert_eq!(count(TABLE, Arch::X86_64, "openat"), 57);
        assert_eq!(count(TABLE, Arch::X86_64, "close"), 40);
        assert_eq!(count(TABLE, Arch::X86, "close"), 7);
        let profile = reading(TABLE).profile.unwrap();
        let unnamed = profile.call(Arch::X86_64, tamis_abi::Nr(500));
        assert_eq!(unnamed.unwrap().count, 2);
    }

    #[test]
    fn columns_may_be_chosen_and_moved() {
        let text = "errors calls syscall\n------ ----- -------\n 3 5 read\n 6 write\n";
        assert_eq!(count(text, Arch::X86_64, "read"), 5);
        assert_eq!(count(text, Arch::X86_64, "write"), 6);
    }

    #[test]
    fn the_columns_of_newer_versions_are_understood() {
        // strace 7.1: elapsed and CPU times, and the column of names at a requested position.
        let text = "\
System call usage summary for x32 mode:
  wall-total syscall          errors % time wall-min wall-max    wall-avg     calls
----------- ---------------- --------- ------ -------- -------- ----------- ---------
   0.001500 read                        75.00 0.000100 0.001200         300         5
   0.000500 openat                   2  25.00 0.000100 0.000200         166         3
----------- ---------------- --------- ------ -------- -------- ----------- ---------
   0.002000 total                    2 100.00 0.000100 0.001200         250         8
4 8 total
";
        assert_eq!(count(text, Arch::X32, "read"), 5);
        assert_eq!(count(text, Arch::X32, "openat"), 3);
        let reading = reading(text);
        assert!(reading.diagnostics.is_empty(), "{:?}", reading.diagnostics);
    }

    #[test]
    fn tables_without_counts_and_broken_rows_are_errors() {
        let code = |text: &str| reading(text).diagnostics[0].code.id;
        assert_eq!(
            code("% time syscall\n------ -------\n 1.00 read\n"),
            "TM0608"
        );
        let broken = TABLE.replace("5        57        12", "57");
        assert_eq!(code(&broken), "TM0608");
        assert_eq!(code(&TABLE.replace(" 57 ", " 5.7 ")), "TM0603");
    }
}
