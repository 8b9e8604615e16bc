//! The changes from one filter to another, for review: `tamis diff`.

use std::fmt::Write;

use serde::Serialize;

use crate::change::{Change, ChangeKind};
use crate::entry::first_calls;

/// The changes from one filter to another.
#[derive(Serialize)]
pub struct DiffReport {
    pub old: String,
    pub new: String,
    pub is_complete: bool,
    pub changes: Vec<Change>,
    /// Whether only changes to a looser action are listed.
    #[serde(skip)]
    pub only_looser: bool,
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
        let DiffReport { old, new, .. } = self;
        let mut text = String::new();
        for (kind, heading, sign, colour) in KINDS {
            let mut of_kind = self.of_kind(kind).peekable();
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
        match (text.is_empty(), self.is_complete) {
            (true, true) if self.only_looser => format!("nothing is looser in {new}\n"),
            (true, true) => format!("{old} and {new}: no changes\n"),
            (_, true) => text,
            (_, false) => text + "and perhaps more: the list was truncated at a limit\n",
        }
    }

    /// The changes as Markdown for a pull request, with at most `max_calls` calls of each.
    pub fn markdown(&self, max_calls: usize) -> String {
        let (old, new) = (code_span(&self.old), code_span(&self.new));
        let mut text = format!("### Seccomp: {old} → {new}\n\n");
        if self.changes.is_empty() && self.is_complete {
            text.push_str("No changes.\n");
            return text;
        }
        let counts =
            KINDS.map(|(kind, heading, ..)| format!("{} {heading}", self.of_kind(kind).count()));
        let _ = writeln!(text, "{}\n", counts.join(", "));
        text.push_str("| | architectures | calls | before | after | for example |\n");
        text.push_str("|---|---|---|---|---|---|\n");
        for (kind, heading, ..) in KINDS {
            for change in self.of_kind(kind) {
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
        if !self.is_complete {
            text.push_str("\nAnd perhaps more: the list was truncated at a limit.\n");
        }
        text
    }

    fn of_kind(&self, kind: ChangeKind) -> impl Iterator<Item = &Change> {
        let changes = self.changes.iter();
        changes.filter(move |change| change.kind == kind)
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
