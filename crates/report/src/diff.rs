//! The changes from one filter to another, for review: `tamis diff`.

use std::fmt::Write;

use serde::Serialize;

use crate::change::{Change, ChangeKind};
use crate::entry::first_calls;
use crate::extent::Extent;

/// The changes from one filter to another.
#[derive(Serialize)]
pub struct DiffReport {
    pub old: String,
    pub new: String,
    pub is_complete: bool,
    pub changes: Vec<Change>,
    /// The extent of the comparison.
    pub compared: Extent,
    /// The changes of further readings: for other machines, capabilities and kernels.
    pub elsewhere: Vec<OtherReadings>,
    /// Whether only changes to a looser action are listed.
    #[serde(skip)]
    pub only_looser: bool,
}

/// The changes of readings other than the first.
#[derive(Serialize)]
pub struct OtherReadings {
    /// The first of these readings: `on aarch64`, `with CAP_SYS_NICE`.
    pub reading: String,
    /// The number of further readings with the same changes.
    pub more_readings: usize,
    pub changes: Vec<Change>,
}

/// The changes by kind, with a heading for each kind.
const KINDS: [(ChangeKind, &str, char, &str); 3] = [
    (ChangeKind::NewlyAllowed, "newly allowed", '+', "\x1b[31m"),
    (ChangeKind::NewlyDenied, "newly denied", '-', "\x1b[32m"),
    (ChangeKind::ActionChanged, "action changed", '~', "\x1b[33m"),
];

impl DiffReport {
    /// The changes as text, with at most `max_calls` calls of each.
    pub fn text(&self, max_calls: usize, is_coloured: bool) -> String {
        let mut text = listed(&self.changes, max_calls, is_coloured);
        for elsewhere in &self.elsewhere {
            let list = listed(&elsewhere.changes, max_calls, is_coloured);
            let _ = write!(text, "{}:\n{list}", elsewhere.in_words());
        }
        let DiffReport { old, new, .. } = self;
        match (text.is_empty(), self.is_complete) {
            (true, true) if self.only_looser => {
                text = format!(
                    "nothing is looser in {new}{}\n",
                    self.compared.behind_answer()
                );
            }
            (true, true) => {
                text = format!(
                    "{old} and {new}: no changes{}\n",
                    self.compared.behind_answer()
                );
            }
            (_, true) => text += &self.compared.left_out(),
            (_, false) => text += "and perhaps more: the list was truncated at a limit\n",
        }
        text
    }
}

impl OtherReadings {
    fn in_words(&self) -> String {
        match self.more_readings {
            0 => self.reading.clone(),
            1 => format!("{}, and one more combination", self.reading),
            more => format!("{}, and {more} more combinations", self.reading),
        }
    }
}

/// Changes as text, by kind.
fn listed(changes: &[Change], max_calls: usize, is_coloured: bool) -> String {
    let mut text = String::new();
    for (kind, heading, sign, colour) in KINDS {
        let mut of_kind = of_kind(changes, kind).peekable();
        if of_kind.peek().is_none() {
            continue;
        }
        let (colour, reset) = match is_coloured {
            true => (colour, "\x1b[0m"),
            false => ("", ""),
        };
        let _ = writeln!(text, "{colour}{heading}{reset}");
        for change in of_kind {
            let Change { old, new, .. } = change;
            let arches = change.arches.join(", ");
            let calls = calls_in_words(change, max_calls);
            let _ = writeln!(
                text,
                "{colour}{sign}{reset} {arches}: {calls}: {old} -> {new}"
            );
            let example = change
                .example_text()
                .unwrap_or_else(|| "no such call was found; there may be none".to_owned());
            let _ = writeln!(text, "    {example}");
        }
    }
    text
}

fn of_kind(changes: &[Change], kind: ChangeKind) -> impl Iterator<Item = &Change> {
    changes.iter().filter(move |change| change.kind == kind)
}

impl DiffReport {
    /// The changes as Markdown for a pull request, with at most `max_calls` calls of each.
    pub fn markdown(&self, max_calls: usize) -> String {
        let (old, new) = (code_span(&self.old), code_span(&self.new));
        let mut text = format!("### Seccomp: {old} → {new}\n\n");
        if self.changes.is_empty() && self.elsewhere.is_empty() && self.is_complete {
            let _ = writeln!(text, "No changes{}.", self.compared.behind_answer());
            return text;
        }
        if !self.changes.is_empty() {
            write_table(&mut text, &self.changes, max_calls);
        }
        for elsewhere in &self.elsewhere {
            let _ = writeln!(text, "\n#### {}\n", elsewhere.in_words());
            write_table(&mut text, &elsewhere.changes, max_calls);
        }
        let left_out = self.compared.left_out();
        if !left_out.is_empty() {
            let _ = write!(text, "\n{left_out}");
        }
        if !self.is_complete {
            text.push_str("\nAnd perhaps more: the list was truncated at a limit.\n");
        }
        text
    }
}

/// Changes as a table of Markdown.
fn write_table(text: &mut String, changes: &[Change], max_calls: usize) {
    let counts =
        KINDS.map(|(kind, heading, ..)| format!("{} {heading}", of_kind(changes, kind).count()));
    let _ = writeln!(text, "{}\n", counts.join(", "));
    text.push_str("| | architectures | calls | before | after | for example |\n");
    text.push_str("|---|---|---|---|---|---|\n");
    for (kind, heading, ..) in KINDS {
        for change in of_kind(changes, kind) {
            let _ = writeln!(
                text,
                "| {heading} | {} | {} | {} | {} | {} |",
                change.arches.join(", "),
                code_span(&calls_in_words(change, max_calls)),
                code_span(&change.old.to_string()),
                code_span(&change.new.to_string()),
                change
                    .example_text()
                    .map_or_else(String::new, |example| code_span(&example)),
            );
        }
    }
}

/// `read, write` or `socket(family == AF_INET)`.
fn calls_in_words(change: &Change, max_calls: usize) -> String {
    let calls = first_calls(&change.calls, max_calls, " (--all)");
    if change.condition.is_empty() {
        calls
    } else if change.calls.len() == 1 {
        format!("{calls}({})", change.condition)
    } else {
        format!("{calls}, each with ({})", change.condition)
    }
}

/// A code span with this text, also valid in a table.
fn code_span(text: &str) -> String {
    let text = text.replace('|', "\\|").replace(['\n', '`'], " ");
    format!("`{text}`")
}
