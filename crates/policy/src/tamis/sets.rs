//! The built-in sets of system calls, defined in the language itself in `policies/sets.tamis`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use tamis_abi::syscall;
use tamis_diag::Sources;

use super::ast::StatementKind;
use super::names::Calls;
use super::parser;
use crate::sink::Sink;

/// The set of all calls of the tables; it is computed.
const KNOWN: &str = "@known";

/// The source of the other sets: `set` statements only, each using only earlier ones.
const TEXT: &str = include_str!("../../policies/sets.tamis");

/// The calls of the built-in set with this name, `@` included.
pub(super) fn built_in(name: &str) -> Option<&'static Calls> {
    BUILT_IN.get(name)
}

/// The names of all built-in sets, sorted.
pub(super) fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.keys().map(String::as_str)
}

static BUILT_IN: LazyLock<BTreeMap<String, Calls>> = LazyLock::new(|| {
    let source = Sources::new().add("sets.tamis", TEXT);
    let policy = parser::parse(source, TEXT, &mut Sink::new(true));
    let mut sets: BTreeMap<String, Calls> = BTreeMap::new();
    for statement in policy.statements {
        let StatementKind::Set(name, members) = statement.kind else {
            continue;
        };
        let mut calls = BTreeSet::new();
        for member in members {
            match sets.get(&member.text) {
                Some(set) => calls.extend(set.iter().cloned()),
                None => drop(calls.insert(Arc::from(member.text))),
            }
        }
        sets.insert(name.text, Arc::new(calls));
    }
    let known = syscall::names().map(Arc::from).collect();
    sets.insert(KNOWN.to_owned(), Arc::new(known));
    sets
});

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_diag::Diagnostic;

    #[test]
    fn the_source_is_a_list_of_sets_of_known_calls() {
        let mut sink = Sink::new(true);
        let policy = parser::parse(Sources::new().add("sets.tamis", TEXT), TEXT, &mut sink);
        assert_eq!(sink.into_diagnostics(), [] as [Diagnostic; 0]);
        assert_eq!(
            policy.statements.len() + 1,
            BUILT_IN.len(),
            "sets only, each once"
        );
        for (set, calls) in &*BUILT_IN {
            let unknown: Vec<_> = calls
                .iter()
                .filter(|call| !syscall::is_known(call))
                .collect();
            assert!(unknown.is_empty(), "{set}: {unknown:?}");
        }
    }
}
