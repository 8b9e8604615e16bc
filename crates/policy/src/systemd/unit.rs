//! From the text of a unit to assignments: `KEY=VALUE` in a section.
//!
//! These are systemd's rules for lines. A line ends with a line feed, a carriage return or a NUL. A line that begins
//! with `#` or `;` is a comment, even between lines joined by a backslash; an escaped backslash doesn't join. A line
//! that is neither a section nor an assignment is ignored, with a warning; a section header that is not one, and a line
//! of more than 1 MiB, make systemd refuse the whole unit. White space is only what systemd takes for it.

use std::borrow::Cow;

use tamis_diag::{Diagnostic, SourceId, Span, code};

use super::value::Value;
use crate::sink::Sink;

/// What systemd takes for white space.
pub(super) const WHITE_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];
/// systemd's limit of a line with its end, and of a line with those that it joins, in bytes.
const MAX_LINE_BYTES: usize = 1 << 20;

/// A piece of text with its span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'t> {
    pub(super) text: &'t str,
    pub(super) span: Span,
}

/// `KEY=VALUE`
#[derive(Debug)]
pub(super) struct Assignment<'t> {
    pub(super) section: Cow<'t, str>,
    pub(super) key: Value<'t>,
    pub(super) value: Value<'t>,
}

/// The assignments of a text, in order.
pub(super) fn parse<'t>(source: SourceId, text: &'t str, sink: &mut Sink) -> Vec<Assignment<'t>> {
    let mut reader = Reader {
        section: None,
        assignments: Vec::new(),
        has_mark: false,
    };
    let mut joined: Option<Value> = None;
    for line in lines(text) {
        if sink.is_finished() {
            return reader.assignments;
        }
        let with_ends_bytes = line.with_ends_bytes;
        let line = Value::new(source, line.start, line.text);
        if with_ends_bytes > MAX_LINE_BYTES {
            sink.stop(too_long(line.span()));
            return reader.assignments;
        }
        if is_comment(line.text().trim_start_matches(WHITE_SPACE)) {
            continue;
        }
        let line = reader.without_mark(line);
        let whole = match joined.take() {
            Some(before) => before.join(&line),
            None => line,
        };
        if whole.text().len() > MAX_LINE_BYTES {
            sink.stop(too_long(whole.span()));
        } else if continues(whole.text()) {
            joined = Some(whole.without_last_byte());
        } else {
            reader.line(&whole, sink);
        }
    }
    if let Some(whole) = joined {
        reader.line(&whole, sink);
    }
    reader.assignments
}

/// The first line that is not a comment.
pub(super) fn first_line(text: &str) -> &str {
    let mut lines = text.lines().map(str::trim);
    lines
        .find(|line| !line.is_empty() && !is_comment(line))
        .unwrap_or("")
}

/// The section name of a header line.
pub(super) fn section(line: &str) -> Option<&str> {
    let name = line.strip_prefix('[')?.strip_suffix(']')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

fn is_comment(line: &str) -> bool {
    line.starts_with(['#', ';'])
}

/// Whether the last backslash of a line is not escaped itself.
fn continues(line: &str) -> bool {
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    backslashes % 2 == 1
}

/// A line and where it starts.
struct Line<'t> {
    start: usize,
    text: &'t str,
    /// Its length with the characters that end it.
    with_ends_bytes: usize,
}

/// The lines of a text. Different characters that end lines, such as a carriage return and a line feed, are one end.
fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    const ENDS: [char; 3] = ['\n', '\r', '\0'];
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let length = rest.find(ENDS).unwrap_or(rest.len());
        let mut ends = String::new();
        for end in rest[length..].chars().take_while(|c| ENDS.contains(c)) {
            // Nothing belongs to the end of a line after a NUL.
            if ends.contains(end) || ends.ends_with('\0') {
                break;
            }
            ends.push(end);
        }
        let line = Line {
            start,
            text: &rest[..length],
            with_ends_bytes: length + ends.len(),
        };
        start += line.with_ends_bytes;
        Some(line)
    })
}

struct Reader<'t> {
    section: Option<Cow<'t, str>>,
    assignments: Vec<Assignment<'t>>,
    /// Whether a byte order mark was read.
    has_mark: bool,
}

impl<'t> Reader<'t> {
    /// The line without a byte order mark, which systemd removes once, from whichever line has it.
    fn without_mark(&mut self, line: Value<'t>) -> Value<'t> {
        const MARK: char = '\u{feff}';
        if self.has_mark || !line.text().starts_with(MARK) {
            return line;
        }
        self.has_mark = true;
        line.slice(MARK.len_utf8()..line.text().len())
    }

    fn line(&mut self, line: &Value<'t>, sink: &mut Sink) {
        let line = line.trim();
        let text = line.text();
        if text.is_empty() {
            return;
        }
        if text.starts_with('[') {
            return self.section(&line, sink);
        }
        let Some(equals) = text.find('=') else {
            let message = "a line that is neither a section nor an assignment";
            return sink.report(ignored(message, line.span(), "write `Directive=value`"));
        };
        let Some(section) = self.section.clone() else {
            let message = "an assignment outside of a section";
            return sink.report(ignored(message, line.span(), "begin with `[Service]`"));
        };
        self.assignments.push(Assignment {
            section,
            key: line.slice(0..equals).trim(),
            value: line.slice(equals + 1..text.len()).trim(),
        });
    }

    fn section(&mut self, line: &Value<'t>, sink: &mut Sink) {
        let name = line.slice(1..line.text().len());
        let Some(length) = name.text().strip_suffix(']').map(str::len) else {
            let message = "a section header without `]`";
            return sink.report(refused(message, line.span(), "write `[Service]`"));
        };
        let name = name.slice(0..length).into_text();
        let is_bad = |c: char| c.is_ascii_control() || ['"', '\'', '\\'].contains(&c);
        if name.contains(is_bad) {
            let message = "a section header with a quote, a backslash or a control character";
            return sink.report(refused(message, line.span(), "write `[Service]`"));
        }
        self.section = Some(name);
    }
}

fn too_long(span: Span) -> Diagnostic {
    refused("a line of more than 1 MiB", span, "make it shorter")
}

fn ignored(message: &str, span: Span, help: &str) -> Diagnostic {
    Diagnostic::warning(code::SYSTEMD_SYNTAX, message)
        .label(span, "systemd ignores this")
        .help(help)
}

/// The error for what makes systemd refuse the unit.
pub(super) fn refused(message: &str, span: Span, help: &str) -> Diagnostic {
    Diagnostic::error(code::SYSTEMD_REFUSED, message)
        .label(span, "systemd doesn't start the unit")
        .help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_feeds_carriage_returns_and_nuls_end_lines() {
        let all = |text| lines(text).map(|line| line.text).collect::<Vec<_>>();
        assert_eq!(all("a\rb\nc\0d"), ["a", "b", "c", "d"]);
        assert_eq!(all("a\r\nb\n\rc\n\0d\0\ne"), ["a", "b", "c", "d", "", "e"]);
        assert_eq!(all("a\n\nb\r\n\r\nc\n"), ["a", "", "b", "", "c"]);
        assert_eq!(all(""), [""; 0]);
    }

    #[test]
    fn a_word_of_joined_lines_has_the_place_of_all_of_it() {
        let text = "[Service]\nA=b\\\n# no\n c\n";
        let mut sources = tamis_diag::Sources::new();
        let source = sources.add("x", text);
        let mut sink = Sink::new(false);
        let assignments = parse(source, text, &mut sink);
        let [assignment] = assignments.as_slice() else {
            panic!("{assignments:?}");
        };
        assert_eq!(assignment.value.text(), "b  c");
        let words = assignment.value.words(super::super::value::Quotes::Kept);
        let places: Vec<&str> = words
            .words
            .iter()
            .map(|word| {
                let span = word.span;
                &text[span.start as usize..span.end as usize]
            })
            .collect();
        assert_eq!(places, ["b", "c"]);
    }
}
