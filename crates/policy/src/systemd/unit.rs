//! From the text of a unit to assignments: `KEY=VALUE` in a section.
//!
//! These are systemd's rules for lines. A line ends with a line feed, a carriage return or a NUL. A line that begins
//! with `#` or `;` is a comment, even between lines joined by a backslash; an escaped backslash doesn't join. A line
//! that is neither a section nor an assignment is ignored, with a warning. An invalid section header, and a line of
//! more than 1 MiB, make systemd reject the whole unit, or ignore the rest of a drop-in. White space is systemd's
//! [`WHITE_SPACE`].

use std::borrow::Cow;

use tamis_diag::{Diagnostic, SourceId, Span};

use super::settings;
use super::title::Titles;
use super::value::Value;
use crate::code;
use crate::sink::Sink;

/// systemd's white space.
pub(super) const WHITE_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];
/// systemd's limit of a line with its end, and of a line with its continuations, in bytes.
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
    pub(super) file: FileIndex,
    pub(super) section: Cow<'t, str>,
    pub(super) key: Value<'t>,
    pub(super) value: Value<'t>,
}

/// The file of an assignment, in a text of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIndex {
    index: usize,
    is_drop_in: bool,
}

/// The lines of a unit.
#[derive(Debug, Default)]
pub(super) struct Unit<'t> {
    pub(super) assignments: Vec<Assignment<'t>>,
    /// The names in the headers of sections.
    pub(super) sections: Vec<(Cow<'t, str>, Span)>,
}

/// The assignments to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retained {
    /// Every one.
    All,
    /// Those that affect filters, and the first of the others, which may be misspelt.
    Settings,
}

/// The limit of the others.
const MAX_OTHERS: usize = 1 << 12;

/// The lines of a text, in order: of a unit, or of a unit and its drop-ins as `systemctl cat` prints them.
pub(super) fn parse<'t>(
    source: SourceId,
    text: &'t str,
    titles: Titles<'t>,
    kept: Retained,
    sink: &mut Sink,
) -> Unit<'t> {
    let mut reader = Reader {
        titles,
        file: FileIndex {
            index: 0,
            is_drop_in: titles.is_drop_in(),
        },
        section: None,
        unit: Unit::default(),
        mark: Mark::default(),
        is_after_title: false,
        other_unit: None,
        others_left: match kept {
            Retained::All => usize::MAX,
            Retained::Settings => MAX_OTHERS,
        },
    };
    let mut lines = lines(text).peekable();
    while lines.peek().is_some() && !sink.is_finished() {
        if let Some(title) = lines.next_if(|line| titles.begins_file(line)) {
            reader.begin(titles.begins_drop_in(title.text));
        }
        let mut file = std::iter::from_fn(|| lines.next_if(|line| !titles.begins_file(line)));
        if reader.file(source, &mut file, sink).is_err() {
            file.for_each(drop);
        }
    }
    reader.unit
}

/// The first line that is neither empty nor a comment, without a byte order mark.
pub(super) fn first_line(text: &str) -> &str {
    let mut mark = Mark::default();
    lines(text)
        .map(|line| line.text)
        .filter(|line| !is_comment(line.trim_start_matches(WHITE_SPACE)))
        .map(|line| line[mark.length(line)..].trim_matches(WHITE_SPACE))
        .find(|line| !line.is_empty())
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

/// A line with its offset.
pub(super) struct Line<'t> {
    pub(super) start: usize,
    pub(super) text: &'t str,
    /// Whether the line before it is empty.
    pub(super) follows_empty: bool,
    /// Its length with the line end.
    with_ends_bytes: usize,
}

/// The lines of a text. Adjacent different line ends, such as a carriage return and a line feed, are one end.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    const ENDS: [char; 3] = ['\n', '\r', '\0'];
    let mut start = 0;
    let mut follows_empty = false;
    std::iter::from_fn(move || {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let length = rest.find(ENDS).unwrap_or(rest.len());
        let mut ends = String::new();
        for end in rest[length..].chars().take_while(|c| ENDS.contains(c)) {
            // A NUL ends a line alone.
            if ends.contains(end) || ends.ends_with('\0') {
                break;
            }
            ends.push(end);
        }
        let line = Line {
            start,
            text: &rest[..length],
            follows_empty,
            with_ends_bytes: length + ends.len(),
        };
        follows_empty = length == 0;
        start += line.with_ends_bytes;
        Some(line)
    })
}

/// The byte order mark of a file, which systemd removes once, from any line.
#[derive(Default)]
struct Mark {
    was_read: bool,
}

impl Mark {
    /// The bytes of the mark at the start of a line that is no comment.
    fn length(&mut self, line: &str) -> usize {
        const MARK: char = '\u{feff}';
        if self.was_read || !line.starts_with(MARK) {
            return 0;
        }
        self.was_read = true;
        MARK.len_utf8()
    }
}

struct Reader<'t> {
    titles: Titles<'t>,
    file: FileIndex,
    section: Option<Cow<'t, str>>,
    unit: Unit<'t>,
    mark: Mark,
    /// Whether a line may be outside of all sections, after a definite or possible title of a file.
    is_after_title: bool,
    /// A comment after an empty line that resembles the title of another unit, followed only by comments so far.
    other_unit: Option<Span>,
    /// The remaining number of kept assignments that don't affect filters.
    others_left: usize,
}

/// systemd ignores the rest of the file.
struct EndOfFile;

impl<'t> Reader<'t> {
    /// Begins a file, outside of all sections.
    fn begin(&mut self, is_drop_in: bool) {
        self.file = FileIndex {
            index: self.file.index + 1,
            is_drop_in,
        };
        self.section = None;
        self.mark = Mark::default();
        self.is_after_title = true;
    }

    fn file(
        &mut self,
        source: SourceId,
        lines: &mut dyn Iterator<Item = Line<'t>>,
        sink: &mut Sink,
    ) -> Result<(), EndOfFile> {
        let mut joined: Option<Value> = None;
        for line in lines {
            if sink.is_finished() {
                return Err(EndOfFile);
            }
            let with_ends_bytes = line.with_ends_bytes;
            // The title of a drop-in follows a non-empty line if the previous file lacks its last line feed.
            self.is_after_title |= self.titles.begins_drop_in(line.text);
            let is_other = line.follows_empty && self.titles.names_other_unit(line.text);
            if joined.is_none() && !sink.wants_more() && is_noise(&line) {
                continue;
            }
            let line = Value::new(source, line.start, line.text);
            if is_other {
                self.other_unit = Some(line.span());
            }
            if with_ends_bytes > MAX_LINE_BYTES {
                return self.too_long(&line, sink);
            }
            if is_comment(line.text().trim_start_matches(WHITE_SPACE)) {
                continue;
            }
            let mark = self.mark.length(line.text());
            let line = line.slice(mark..line.text().len());
            let whole = match joined.take() {
                Some(before) => before.join(&line),
                None => line,
            };
            if whole.text().len() > MAX_LINE_BYTES {
                return self.too_long(&whole, sink);
            }
            if continues(whole.text()) {
                joined = Some(whole.without_last_byte());
            } else {
                self.line(&whole, sink)?;
            }
        }
        joined.map_or(Ok(()), |whole| self.line(&whole, sink))
    }

    fn too_long(&self, line: &Value, sink: &mut Sink) -> Result<(), EndOfFile> {
        let message = "a line of more than 1 MiB";
        sink.report(refused(message, line.span(), "make it shorter", self.file));
        Err(EndOfFile)
    }

    fn line(&mut self, line: &Value<'t>, sink: &mut Sink) -> Result<(), EndOfFile> {
        let line = line.trim();
        let text = line.text();
        if text.is_empty() {
            return Ok(());
        }
        let other_unit = self.other_unit.take();
        if text.starts_with('[') {
            if let Some(title) = other_unit {
                sink.report(another_unit(title));
            }
            return self.section(&line, sink);
        }
        let Some(equals) = text.find('=') else {
            if sink.wants_more() {
                let message = "a line that is neither a section nor an assignment";
                sink.report(ignored(message, line.span(), "write `Directive=value`"));
            }
            return Ok(());
        };
        if self.is_after_title {
            sink.report(after_title(line.span()));
            return Ok(());
        }
        let Some(section) = self.section.clone() else {
            if sink.wants_more() {
                let message = "an assignment outside of a section";
                sink.report(ignored(message, line.span(), "begin with `[Service]`"));
            }
            return Ok(());
        };
        let key = line.slice(0..equals).trim();
        if !settings::is_setting(key.text()) {
            match self.others_left.checked_sub(1) {
                Some(left) => self.others_left = left,
                None => return Ok(()),
            }
        }
        self.unit.assignments.push(Assignment {
            file: self.file,
            section,
            key,
            value: line.slice(equals + 1..text.len()).trim(),
        });
        Ok(())
    }

    fn section(&mut self, line: &Value<'t>, sink: &mut Sink) -> Result<(), EndOfFile> {
        let mut refuse = |message| {
            sink.report(refused(
                message,
                line.span(),
                "write `[Service]`",
                self.file,
            ));
            Err(EndOfFile)
        };
        let name = line.slice(1..line.text().len());
        let Some(length) = name.text().strip_suffix(']').map(str::len) else {
            return refuse("a section header without `]`");
        };
        let name = name.slice(0..length).into_text();
        let is_bad = |c: char| c.is_ascii_control() || ['"', '\'', '\\'].contains(&c);
        if name.contains(is_bad) {
            return refuse("a section header with a quote, a backslash or a control character");
        }
        self.unit.sections.push((name.clone(), line.span()));
        self.section = Some(name);
        self.is_after_title = false;
        Ok(())
    }
}

/// Whether a line would only be ignored with a warning, regardless of its continuation.
fn is_noise(line: &Line<'_>) -> bool {
    line.with_ends_bytes <= MAX_LINE_BYTES && !line.text.contains(['=', '[', '\\'])
}

fn ignored(message: &str, span: Span, help: &str) -> Diagnostic {
    Diagnostic::warning(code::SYSTEMD_SYNTAX, message)
        .label(span, "systemd ignores this")
        .help(help)
}

/// The error for a second unit, whose restrictions would be merged into the first.
fn another_unit(title: Span) -> Diagnostic {
    let message = "the text of more than one unit";
    Diagnostic::error(code::SYSTEMD_REFUSED, message)
        .label(title, "here another unit begins")
        .note("each unit has filters of its own")
        .help("give `systemctl cat` one unit; if the line is a comment, put a space before its `#`")
}

/// The error for an assignment that systemd ignores if the comment before it is the title of a file, and otherwise
/// applies.
fn after_title(span: Span) -> Diagnostic {
    let message = "an assignment outside of a section after the title of a file";
    Diagnostic::error(code::SYSTEMD_SYNTAX, message)
        .label(span, "systemd ignores this")
        .help("begin the file with `[Service]`; if the line `# /...` is only a comment, remove it")
}

/// An error for which systemd rejects the unit, or ignores the rest of a drop-in.
pub(super) fn refused(message: &str, span: Span, help: &str, file: FileIndex) -> Diagnostic {
    let diagnostic = match file.is_drop_in {
        true => Diagnostic::warning(code::SYSTEMD_REFUSED, message)
            .label(span, "systemd ignores this and the rest of the file"),
        false => not_started(message, span),
    };
    diagnostic.help(help)
}

/// An error for which systemd rejects the unit, without a help.
pub(super) fn not_started(message: &str, span: Span) -> Diagnostic {
    Diagnostic::error(code::SYSTEMD_REFUSED, message).label(span, "systemd doesn't start the unit")
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
        let unit = parse(
            source,
            text,
            Titles::new("x", text),
            Retained::All,
            &mut sink,
        );
        let [assignment] = unit.assignments.as_slice() else {
            panic!("{unit:?}");
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
