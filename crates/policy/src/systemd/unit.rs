//! From the text of a unit to assignments: `KEY=WORDS` in a section.
//!
//! A line that begins with `#` or `;` is a comment, even between lines joined by a backslash. As in systemd, a line
//! that is neither a section nor an assignment is ignored, with a warning.

use tamis_diag::{Diagnostic, SourceId, Span, code};

use crate::sink::Sink;

/// A word with its span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    pub(super) span: Span,
}

/// `KEY=WORDS`
#[derive(Debug)]
pub(super) struct Assignment<'t> {
    pub(super) section: &'t str,
    pub(super) key: Word<'t>,
    /// Empty if the assignment is empty, which resets most keys.
    pub(super) words: Vec<Word<'t>>,
}

/// The assignments of a text, in order.
pub(super) fn parse<'t>(source: SourceId, text: &'t str, sink: &mut Sink) -> Vec<Assignment<'t>> {
    let mut reader = Reader {
        source,
        section: None,
        assignments: Vec::new(),
        continues: false,
    };
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if sink.is_finished() {
            break;
        }
        if let Err(diagnostic) = reader.line(start, line.trim_end_matches(['\r', '\n'])) {
            sink.report(*diagnostic);
        }
        start += line.len();
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

struct Reader<'t> {
    source: SourceId,
    section: Option<&'t str>,
    assignments: Vec<Assignment<'t>>,
    /// Whether the next line continues the last assignment.
    continues: bool,
}

impl<'t> Reader<'t> {
    fn line(&mut self, start: usize, line: &'t str) -> Result<(), Box<Diagnostic>> {
        let trimmed = line.trim();
        if is_comment(trimmed) {
            return Ok(());
        }
        let text = line.strip_suffix('\\').unwrap_or(line);
        let was_continued = std::mem::replace(&mut self.continues, text.len() < line.len());
        if was_continued {
            let words = self.words(start, text);
            if let Some(assignment) = self.assignments.last_mut() {
                assignment.words.extend(words);
            }
            return Ok(());
        }
        if trimmed.is_empty() {
            return Ok(());
        }
        if let Some(section) = section(trimmed) {
            self.section = Some(section);
            return Ok(());
        }
        let whole = self.span(start, start + line.len());
        let Some((key, value)) = text.split_once('=') else {
            self.continues = false;
            let message = "a line that is neither a section nor an assignment";
            return Err(ignored(message, whole, "write `Directive=value`"));
        };
        let Some(section) = self.section else {
            self.continues = false;
            let message = "an assignment outside of a section";
            return Err(ignored(message, whole, "begin with `[Service]`"));
        };
        let key_start = start + key.len() - key.trim_start().len();
        let key_text = key.trim();
        self.assignments.push(Assignment {
            section,
            key: Word {
                text: key_text,
                span: self.span(key_start, key_start + key_text.len()),
            },
            words: self.words(start + key.len() + 1, value),
        });
        Ok(())
    }

    /// The words of a text that begins at `start`, without the quotes around them.
    fn words(&self, start: usize, text: &'t str) -> Vec<Word<'t>> {
        let place = |word: &str| start + (word.as_ptr() as usize - text.as_ptr() as usize);
        text.split_whitespace()
            .map(|word| {
                let unquoted = ['"', '\'']
                    .into_iter()
                    .find_map(|quote| word.strip_prefix(quote)?.strip_suffix(quote));
                let word = unquoted.unwrap_or(word);
                Word {
                    text: word,
                    span: self.span(place(word), place(word) + word.len()),
                }
            })
            .collect()
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.source, start, end)
    }
}

fn ignored(message: &str, span: Span, help: &str) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::warning(code::SYSTEMD_SYNTAX, message)
            .label(span, "systemd ignores this")
            .help(help),
    )
}
