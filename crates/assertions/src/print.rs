//! Syntax trees as text: the canonical form of a file of checks.
//!
//! The printed text parses back to the same tree, except for spans. Comments are lost.

use std::fmt::{self, Display, Formatter};

use tamis_policy::tamis::ast::{Constant, Name};
use tamis_policy::tamis::print::statement_kind;

use crate::ast::{Check, Group, GroupStatementKind, Statement, StatementKind, Text};

/// The text of statements, one per line.
pub fn checks(statements: &[Statement]) -> String {
    statements.iter().map(|one| format!("{one}\n")).collect()
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            StatementKind::Include(path) => write!(f, "include \"{path}\""),
            StatementKind::Parameter(name, Constant::Value(value)) => {
                write!(f, "param {name} = {value}")
            }
            StatementKind::Parameter(name, Constant::Set(elements)) => {
                write!(f, "param {name} = {{{}}}", joined(elements))
            }
            StatementKind::Definition(definition) => {
                f.write_str(statement_kind(definition).trim_end())
            }
            StatementKind::On(arches) => write!(f, "on {}", joined(arches)),
            StatementKind::Group(group) => write!(f, "{group}"),
            StatementKind::Check(check) => write!(f, "{check}"),
        }
    }
}

impl Display for Group {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "group \"{}\" {{", self.title)?;
        for statement in &self.body {
            f.write_str("    ")?;
            match &statement.kind {
                GroupStatementKind::Reason(text) => writeln!(f, "reason {text}")?,
                GroupStatementKind::Source(text) => writeln!(f, "source {text}")?,
                GroupStatementKind::On(arches) => writeln!(f, "on {}", joined(arches))?,
                GroupStatementKind::Check(check) => writeln!(f, "{check}")?,
            }
        }
        f.write_str("}")
    }
}

impl Display for Text {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let quoted: Vec<String> = self
            .parts
            .iter()
            .map(|part| format!("\"{part}\""))
            .collect();
        f.write_str(&quoted.join("\n        "))
    }
}

impl Display for Check {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Check::Never { any_way, targets } => {
                let way = if *any_way { "any way " } else { "" };
                write!(f, "never allow {way}{}", joined(targets))
            }
            Check::Always(targets) => write!(f, "always allow {}", joined(targets)),
            Check::Expect(targets, answer) => write!(f, "expect {} -> {answer}", joined(targets)),
            Check::Compare(relation, reference) => {
                write!(f, "{} \"{reference}\"", relation.words().join(" "))
            }
            Check::AtMost(count) => write!(f, "at most {count} instructions"),
            Check::Cached(calls) => write!(f, "cached: {}", joined::<Name>(calls)),
        }
    }
}

fn joined<T: Display>(items: &[T]) -> String {
    let texts: Vec<String> = items.iter().map(T::to_string).collect();
    texts.join(", ")
}
