//! The layout of an exported policy: paragraphs of statements, with line breaks after separators.

use std::collections::BTreeMap;

use tamis_rules::IntervalSet;

use super::{Clause, Clauses};

/// Longer lines are broken.
const MAX_COLUMNS: usize = 100;

/// Lines of statements.
#[derive(Default)]
pub(super) struct Statements {
    text: String,
}

impl Statements {
    /// Adds a statement.
    pub(super) fn line(&mut self, statement: &str) {
        self.indented(statement, "");
    }

    /// Adds a statement with a list.
    pub(super) fn list(&mut self, head: &str, items: &[&str]) {
        self.line(&format!("{head} {}", items.join(", ")));
    }

    /// Adds a comment of one line, after an empty line if something stands above it.
    fn note(&mut self, note: &str, indent: &str) {
        let note = note.replace(char::is_control, "?");
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&format!("{indent}# {note}\n"));
    }

    /// Adds a statement, broken after commas, `|`, `||` and `&&`.
    fn indented(&mut self, statement: &str, indent: &str) {
        let mut line = indent.to_owned();
        let mut is_empty = true;
        for piece in pieces(statement) {
            let more = usize::from(!is_empty) + piece.chars().count();
            if !is_empty && line.chars().count() + more > MAX_COLUMNS {
                self.text.push_str(&line);
                self.text.push('\n');
                line = format!("{indent}    ");
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(piece);
            is_empty = false;
        }
        self.text.push_str(&line);
        self.text.push('\n');
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// The parts of a statement that are not broken.
fn pieces(statement: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (at, _) in statement.match_indices(' ') {
        if [",", "|", "&&"]
            .iter()
            .any(|pause| statement[..at].ends_with(pause))
        {
            pieces.push(&statement[start..at]);
            start = at + 1;
        }
    }
    pieces.push(&statement[start..]);
    pieces
}

/// The statements for some architectures.
#[derive(Default)]
pub(super) struct Block {
    fallbacks: Vec<String>,
    /// The rules by their notes, without a note first.
    groups: BTreeMap<String, Group>,
}

/// The rules below one note.
#[derive(Default)]
struct Group {
    /// Calls with conditions by their clauses, with the position of the first call.
    conditional: BTreeMap<Vec<Clause>, (u32, Vec<String>)>,
    /// Calls without conditions by their action.
    plain: BTreeMap<String, Vec<String>>,
}

impl Block {
    /// States `default` or `unknown`.
    pub(super) fn fallback(&mut self, word: &str, answer: Option<&String>) {
        self.fallbacks
            .extend(answer.map(|answer| format!("{word} {answer}")));
    }

    /// Adds the rules of a call below a note; nothing if there are no clauses.
    pub(super) fn call(&mut self, name: &str, note: &str, place: u32, clauses: &[Clause]) {
        if clauses.is_empty() {
            return;
        }
        let group = self.groups.entry(note.to_owned()).or_default();
        match clauses {
            [Clause { answer, when: None }] => {
                let names = group.plain.entry(answer.clone()).or_default();
                names.push(name.to_owned());
            }
            clauses => {
                let known = group.conditional.entry(clauses.to_vec());
                let (first, targets) = known.or_insert((place, Vec::new()));
                *first = place.min(*first);
                targets.push(name.to_owned());
            }
        }
    }

    /// Adds the rules of numbers without a name.
    pub(super) fn numbers(&mut self, numbers: &IntervalSet<u32>, clauses: &Clauses) {
        for (first, last) in numbers.intervals() {
            let target = if first == last {
                format!("nr {}", number(*first))
            } else {
                format!("nr {}..{}", number(*first), number(*last))
            };
            self.call(&target, "", *first, clauses);
        }
    }

    /// Splits the block in two: conditions and fallbacks, and lists.
    pub(super) fn split(self) -> (Block, Block) {
        let mut lists = Block::default();
        let mut rest = Block {
            fallbacks: self.fallbacks,
            ..Block::default()
        };
        for (note, Group { conditional, plain }) in self.groups {
            let only_plain = Group {
                plain,
                ..Group::default()
            };
            lists.groups.insert(note.clone(), only_plain);
            let only_conditional = Group {
                conditional,
                ..Group::default()
            };
            rest.groups.insert(note, only_conditional);
        }
        (rest, lists)
    }

    /// The text of the block, after an empty line; empty for an empty block. The top block has no architectures.
    pub(super) fn into_text(self, arches: &[&str]) -> String {
        let indent = if arches.is_empty() { "" } else { "    " };
        let mut statements = Statements::default();
        for fallback in &self.fallbacks {
            statements.indented(fallback, indent);
        }
        for (note, group) in self.groups {
            if group.conditional.is_empty() && group.plain.is_empty() {
                continue;
            }
            if !note.is_empty() {
                statements.note(&note, indent);
            }
            group.write(&mut statements, indent);
        }
        match (statements.text.is_empty(), arches) {
            (true, _) => String::new(),
            (false, []) => format!("\n{}", statements.text),
            (false, arches) => format!("\non {} {{\n{}}}\n", arches.join(", "), statements.text),
        }
    }
}

impl Group {
    fn write(self, statements: &mut Statements, indent: &str) {
        let mut conditional: Vec<(u32, Vec<String>, Vec<Clause>)> = self
            .conditional
            .into_iter()
            .map(|(clauses, (place, targets))| (place, targets, clauses))
            .collect();
        conditional.sort();
        let has_conditional = !conditional.is_empty();
        for (_, targets, clauses) in conditional {
            for Clause { answer, when } in clauses {
                let target = |name: &String| match &when {
                    Some(when) => format!("{name}({when})"),
                    None => name.clone(),
                };
                let targets: Vec<String> = targets.iter().map(target).collect();
                statements.indented(&format!("{answer} {}", targets.join(", ")), indent);
            }
        }
        if has_conditional && !self.plain.is_empty() {
            statements.text.push('\n');
        }
        let mut plain: Vec<(String, Vec<String>)> = self.plain.into_iter().collect();
        plain.sort_by_key(|(_, names)| names.len());
        for (answer, names) in plain {
            statements.indented(&format!("{answer} {}", names.join(", ")), indent);
        }
    }
}

/// Writes large numbers in hexadecimal.
fn number(nr: u32) -> String {
    if nr < 10_000 {
        nr.to_string()
    } else {
        format!("{nr:#x}")
    }
}
