//! Clauses: the rules that the runtime adds to libseccomp one by one.
//!
//! An entry is one clause; all its conditions must hold. libseccomp rejects two conditions on the same argument; for
//! such an entry runtimes add each condition as a separate clause, so any of them suffices. This is reported as a
//! warning. In [`Reading::Text`](super::Reading::Text), an entry is always one clause.

use tamis_abi::Action;
use tamis_diag::Diagnostic;
use tamis_scmp::Conditions;

use super::Reading;
use super::model::{Condition, Entry};
use crate::code;

/// The index of a clause in the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ClauseId(pub(super) u32);

/// A conjunction of conditions on different arguments.
#[derive(Debug)]
pub(super) struct Clause<'p> {
    /// The entry of the clause.
    pub(super) entry: &'p Entry<'p>,
    /// All conditions of the entry, or one of them if they are alternatives. With
    /// [`Reading::Text`](super::Reading::Text) only the last condition on a repeated index, because all conditions of
    /// the entry are evaluated separately.
    pub(super) conditions: Conditions,
    /// The single condition, if the entry has several as alternatives.
    pub(super) alternative: Option<&'p Condition>,
}

impl Clause<'_> {
    pub(super) fn action(&self) -> Action {
        self.entry.action
    }
}

/// Splits entries into clauses; a clause's id is its index. Also returns the range of ids of each entry.
pub(super) fn clauses<'p>(
    entries: &[&'p Entry<'p>],
    reading: Reading,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Vec<Clause<'p>>, Vec<std::ops::Range<u32>>) {
    let mut clauses = Vec::new();
    let mut ranges = Vec::with_capacity(entries.len());
    for entry in entries {
        let start = clauses.len() as u32;
        let repeated = match reading {
            Reading::Libseccomp => repeated(&entry.args),
            Reading::Text => None,
        };
        match repeated {
            Some((first, second)) => {
                diagnostics.push(warning(entry, first, second));
                clauses.extend(entry.args.iter().map(|condition| Clause {
                    entry,
                    conditions: Conditions::NONE.with(condition.test),
                    alternative: Some(condition),
                }));
            }
            None => {
                let with = |all: Conditions, one: &Condition| all.with(one.test);
                clauses.push(Clause {
                    entry,
                    conditions: entry.args.iter().fold(Conditions::NONE, with),
                    alternative: None,
                });
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
        let first = args[..at]
            .iter()
            .find(|first| first.test.arg == second.test.arg)?;
        Some((first, second))
    })
}

fn warning(entry: &Entry, first: &Condition, second: &Condition) -> Diagnostic {
    let index = second.test.arg.index();
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
