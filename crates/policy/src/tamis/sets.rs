//! The built-in sets of system calls, defined in the language itself in `policies/sets.tamis`.

use tamis_diag::Sources;

use super::ast::{Name, StatementKind};
use super::parser;
use super::sink::Sink;

/// The set of all calls of the tables, which no file could list.
pub(super) const KNOWN: &str = "@known";

/// The source of the built-in sets.
pub(super) const TEXT: &str = include_str!("../../../../policies/sets.tamis");

/// Names and members of the built-in sets, in order of definition.
pub(super) fn built_in() -> Vec<(Name, Vec<Name>)> {
    let source = Sources::new().add("sets.tamis", TEXT);
    let policy = parser::parse(source, TEXT, &mut Sink::new(true));
    let sets = policy
        .statements
        .into_iter()
        .filter_map(|statement| match statement.kind {
            StatementKind::Set(name, members) => Some((name, members)),
            _ => None,
        });
    sets.collect()
}
