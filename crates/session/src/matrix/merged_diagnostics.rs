//! Merged diagnostics of many policies.
//!
//! The policies of a family share most of their text, so a diagnostic about it would be repeated for every combination.
//! Here it is reported once, with its combinations.

use std::collections::{BTreeSet, HashMap};

use tamis_diag::render::render;
use tamis_diag::{Diagnostic, Label, SourceId, Sources, Span};

use crate::code;
use crate::error::Error;

/// The most combinations in a note.
const MAX_NAMED: usize = 2;

/// The most errors that are shown.
const MAX_ERRORS: usize = 20;

/// Diagnostics of several policies.
#[derive(Default)]
pub(super) struct MergedDiagnostics {
    diagnostics: Vec<(Diagnostic, Vec<String>)>,
    /// The indices of the diagnostics, by their text.
    known: HashMap<String, usize>,
    sources: Sources,
}

impl MergedDiagnostics {
    /// Adds the diagnostics of a combination's policy.
    pub(super) fn add(&mut self, title: &str, diagnostics: &[Diagnostic], sources: &Sources) {
        for diagnostic in diagnostics {
            let one = std::slice::from_ref(diagnostic);
            // The name of a generated policy contains its combination.
            let text = render(one, sources, false).replace(&format!("[{title}]"), "");
            let index = *self.known.entry(text).or_insert_with(|| {
                let moved = moved(diagnostic, sources, &mut self.sources);
                self.diagnostics.push((moved, Vec::new()));
                self.diagnostics.len() - 1
            });
            self.diagnostics[index].1.push(title.to_owned());
        }
    }

    /// The diagnostics, each with its combinations unless it concerns all.
    pub(super) fn diagnostics(&self, all: &[String]) -> Vec<Diagnostic> {
        let all = self.diagnostics.iter().map(|(diagnostic, titles)| {
            let diagnostic = diagnostic.clone();
            if titles.len() == all.len() {
                return diagnostic;
            }
            if let Some(text) = common(titles, all) {
                return diagnostic.note(format!("with {text}"));
            }
            let named = titles
                .iter()
                .take(MAX_NAMED)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            diagnostic.note(match titles.len().saturating_sub(MAX_NAMED) {
                0 => format!("with {named}"),
                more => format!("with {named} and {more} more"),
            })
        });
        all.collect()
    }

    /// Drops warnings about rules that are hidden by an option's rule in some combinations only.
    pub(super) fn drop_hidden_rules(&mut self, combinations: usize) {
        let is_unexpected = |(diagnostic, titles): &(Diagnostic, Vec<String>)| {
            diagnostic.code != code::NEVER_MATCHES || titles.len() == combinations
        };
        self.diagnostics.retain(is_unexpected);
        self.known.clear();
    }

    /// The errors, if there are any.
    pub(super) fn error(&self, all: &[String]) -> Option<Error> {
        let mut errors = self.diagnostics(all);
        errors.retain(Diagnostic::is_error);
        errors.truncate(MAX_ERRORS);
        (!errors.is_empty()).then(|| Error::Diagnostics(errors, self.sources.clone()))
    }

    /// The texts that the diagnostics point into.
    pub(super) fn sources(&self) -> &Sources {
        &self.sources
    }
}

/// The option values that exactly these combinations have: `network=machine|raw`.
fn common(some: &[String], all: &[String]) -> Option<String> {
    let options = some.first()?.split(' ').count();
    let value = |title: &'_ str, axis: usize| title.split(' ').nth(axis).unwrap_or("").to_owned();
    let mut parts = Vec::new();
    let mut is_like: Vec<&String> = all.iter().collect();
    for axis in 0..options {
        let values = |titles: &[String]| -> BTreeSet<String> {
            titles.iter().map(|title| value(title, axis)).collect()
        };
        let own = values(some);
        if own.len() == values(all).len() {
            continue;
        }
        is_like.retain(|title| own.contains(&value(title, axis)));
        let bare = own
            .iter()
            .map(|text| text.split_once('=').map_or("", |(_, value)| value));
        let name = own.first()?.split_once('=')?.0;
        parts.push(format!("{name}={}", bare.collect::<Vec<_>>().join("|")));
    }
    (is_like.len() == some.len()).then(|| parts.join(" "))
}

/// Moves a diagnostic and its texts to other sources.
fn moved(diagnostic: &Diagnostic, from: &Sources, to: &mut Sources) -> Diagnostic {
    let mut source = |id: SourceId| {
        let old = from.get(id);
        let known = to
            .with_ids()
            .find(|(_, new)| new.name == old.name && new.text == old.text);
        match known.map(|(id, _)| id) {
            Some(id) => id,
            None => to.add(old.name.clone(), old.text.clone()),
        }
    };
    let mut label = |label: &Label| Label {
        span: Span {
            source: source(label.span.source),
            ..label.span
        },
        text: label.text.clone(),
    };
    Diagnostic {
        labels: diagnostic.labels.iter().map(&mut label).collect(),
        ..diagnostic.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_are_named_by_what_they_have_in_common() {
        let all: Vec<String> = ["a", "b", "c"]
            .iter()
            .flat_map(|first| ["x", "y"].map(|second| format!("p={first} q={second}")))
            .collect();
        let some = |numbers: &[usize]| {
            numbers
                .iter()
                .map(|number| all[*number].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(common(&some(&[0, 1]), &all).as_deref(), Some("p=a"));
        assert_eq!(common(&some(&[0, 2]), &all).as_deref(), Some("p=a|b q=x"));
        assert_eq!(common(&some(&[0, 3]), &all), None);
    }
}
