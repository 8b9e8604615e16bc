//! Frequency files, the format of minijail's policy compiler: lines `NAME: COUNT` with `#` comments.
//!
//! Counts of repeated names are added. `NAME[arch=a,b]` counts only on those architectures, and `{NAME, NAME}:
//! COUNT` counts for each of the names.

use tamis_abi::Arch;

use crate::code;
use crate::collect::{Collector, Word, lines};

/// Whether a line has the form of a frequency file.
pub(crate) fn is_line(line: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_{}[]=, \t".contains(c);
    let line = line.split('#').next().unwrap_or_default();
    line.rsplit_once(':').is_some_and(|(names, count)| {
        names.chars().all(is_name) && count.trim().starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Adds all lines.
pub(crate) fn read(collector: &mut Collector, text: &str) {
    for line in lines(text) {
        let code = line.text.split('#').next().unwrap_or_default();
        let line = Word { text: code, ..line }.trim();
        if !line.text.is_empty() {
            read_line(collector, line);
        }
    }
}

fn read_line(collector: &mut Collector, line: Word<'_>) {
    let Some((names, count)) = line.text.rsplit_once(':') else {
        return misfit(collector, line);
    };
    let count = Word {
        text: count,
        start: line.start + names.len() + 1,
    };
    let names = Word {
        text: names,
        ..line
    }
    .trim();
    let Some(count) = collector.count(count.trim()) else {
        return;
    };
    let inner = names
        .text
        .strip_prefix('{')
        .map(|rest| rest.strip_suffix('}'));
    let list = match inner {
        None => names,
        Some(None) => return misfit(collector, names),
        Some(Some(text)) => Word {
            text,
            start: names.start + 1,
        },
    };
    for name in names_of(list) {
        read_name(collector, name.trim(), count);
    }
}

fn read_name(collector: &mut Collector, name: Word<'_>, count: u64) {
    let (text, arches) = match name.text.split_once('[') {
        None => (name.text, None),
        Some((text, rest)) => (text.trim_end(), Some(rest)),
    };
    if text.is_empty() || text.contains(char::is_whitespace) {
        return misfit(collector, name);
    }
    if let Some(arches) = arches {
        let list = arches.strip_prefix("arch=");
        let Some(list) = list.and_then(|rest| rest.strip_suffix(']')) else {
            return misfit(collector, name);
        };
        let arches: Option<Vec<Arch>> =
            list.split(',').map(|a| Arch::from_name(a.trim())).collect();
        match arches {
            Some(arches) if arches.contains(&collector.arch) => {}
            Some(_) => return,
            None => {
                let message = "one of these architectures is unknown".to_owned();
                let label = "`tamis tables arches` lists them";
                return collector.error(code::PROFILE_ARCH, name, message, label);
            }
        }
    }
    collector.add(Word { text, ..name }, count);
}

/// The parts between commas outside of brackets.
fn names_of(list: Word<'_>) -> impl Iterator<Item = Word<'_>> {
    let mut is_in_brackets = false;
    let mut start = list.start;
    let parts = list.text.split(move |c| {
        is_in_brackets = (is_in_brackets || c == '[') && c != ']';
        c == ',' && !is_in_brackets
    });
    parts.map(move |text| {
        let word = Word { text, start };
        start += text.len() + 1;
        word
    })
}

fn misfit(collector: &mut Collector, place: Word<'_>) {
    let message = "this is not a line of a frequency file".to_owned();
    let label = "expected `NAME: COUNT` or a comment after `#`";
    collector.error(code::PROFILE_TABLE, place, message, label);
}

#[cfg(test)]
mod tests {
    use tamis_abi::syscall;
    use tamis_diag::Sources;

    use super::*;
    use crate::Reading;

    fn reading(text: &str) -> Reading {
        let mut sources = Sources::new();
        let source = sources.add("x.frequency", text);
        crate::read(&sources, source, Arch::X86_64)
    }

    fn count(text: &str, name: &str) -> u64 {
        let profile = reading(text).profile.expect("no mistakes");
        let nr = syscall::number(Arch::X86_64, name).unwrap();
        profile.call(Arch::X86_64, nr).map_or(0, |call| call.count)
    }

    #[test]
    fn names_add_up_and_may_be_grouped_and_limited() {
        let text =
            "# head\n\nread: 3 # why\n{read, write[arch=x86_64,arm64]}: 4\nclose[arch=arm]: 9\n";
        assert_eq!([count(text, "read"), count(text, "write")], [7, 4]);
        assert_eq!(count(text, "close"), 0);
    }

    #[test]
    fn mistakes_have_places_and_unknown_names_are_left_out() {
        let codes = |text: &str| -> Vec<(&'static str, u32)> {
            let found = reading(text).diagnostics.into_iter();
            found.map(|d| (d.code.id, d.labels[0].span.start)).collect()
        };
        assert_eq!(codes("read: 1\nraed: 2\n"), [("TM0606", 8)]);
        assert_eq!(codes("read: 1\nwrite: -2\n"), [("TM0603", 15)]);
        assert_eq!(codes("read: 1\nwrite\n"), [("TM0608", 8)]);
        assert_eq!(codes("read: 1\n{write: 2\n"), [("TM0608", 8)]);
        assert_eq!(codes("read: 1\nread[arch=vax]: 2\n"), [("TM0607", 8)]);
        assert!(reading("read: 1\nraed: 2\n").profile.is_some());
    }
}
