//! Clauses: what the runtime hands to libseccomp one by one.
//!
//! An entry is one clause whose conditions must all hold. If two of its conditions are about the
//! same argument, libseccomp cannot take it, and runtimes add each condition as a clause of its own
//! instead: any of them suffices. That deserves a warning.

use tamis_abi::Action;
use tamis_diag::{Diagnostic, code};

use super::model::{Condition, Entry};
use super::tree::ClauseId;

/// A conjunction of conditions on different arguments.
#[derive(Debug)]
pub(super) struct Clause<'p> {
    /// The entry it comes from.
    pub(super) entry: &'p Entry<'p>,
    /// Sorted by argument; none is about an argument that another is about.
    pub(super) conditions: Vec<Condition>,
}

impl Clause<'_> {
    pub(super) fn action(&self) -> Action {
        self.entry.action
    }
}

/// Splits entries into clauses; a clause's id is its index. Also gives the range of ids of each
/// entry.
pub(super) fn clauses<'p>(
    entries: &[&'p Entry<'p>],
    diagnostics: &mut Vec<Diagnostic>,
) -> (Vec<Clause<'p>>, Vec<std::ops::Range<u32>>) {
    let mut clauses = Vec::new();
    let mut ranges = Vec::with_capacity(entries.len());
    for entry in entries {
        let start = clauses.len() as u32;
        match repeated(&entry.args) {
            Some((first, second)) => {
                diagnostics.push(warning(entry, first, second));
                clauses.extend(entry.args.iter().map(|condition| Clause {
                    entry,
                    conditions: vec![condition.clone()],
                }));
            }
            None => {
                let mut conditions = entry.args.clone();
                conditions.sort_by_key(|condition| condition.arg);
                clauses.push(Clause { entry, conditions });
            }
        }
        ranges.push(start..clauses.len() as u32);
    }
    (clauses, ranges)
}

/// All ids of a range.
pub(super) fn ids(range: &std::ops::Range<u32>) -> impl Iterator<Item = ClauseId> + use<> {
    range.clone().map(ClauseId)
}

/// Two conditions on one argument.
fn repeated(args: &[Condition]) -> Option<(&Condition, &Condition)> {
    args.iter().enumerate().find_map(|(at, second)| {
        let first = args[..at].iter().find(|first| first.arg == second.arg)?;
        Some((first, second))
    })
}

fn warning(entry: &Entry, first: &Condition, second: &Condition) -> Diagnostic {
    let index = second.arg.index();
    let message = format!(
        "the {} conditions of this entry are alternatives",
        entry.args.len()
    );
    Diagnostic::warning(code::OCI_REPEATED_INDEX, message)
        .label(
            second.span,
            format!("a second condition on argument {index}"),
        )
        .label(first.span, format!("the first on argument {index}"))
        .note("if an index is repeated, runtimes apply the entry when any of its conditions holds")
        .help("give each condition its own entry if this is intended")
}
