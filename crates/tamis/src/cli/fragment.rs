//! Targets of the tamis language in texts that aren't policies: expressions of `trace`, rules of `inject`.
//!
//! A target is read as the policy that begins with an action and ends with it. What is wrong with that policy is told of the
//! text that the user wrote.

use std::ops::Range;

use tamis_diag::{Diagnostic, SourceId, Sources, Span};

use super::Failure;

/// What the policy of a target begins with; any action would do.
const ACTION: &str = "notify ";

/// A target within a text.
#[derive(Clone, Debug)]
pub(crate) struct Fragment<'t> {
    /// The name of the whole in messages.
    name: &'t str,
    whole: &'t str,
    range: Range<usize>,
}

impl<'t> Fragment<'t> {
    /// This part of a text, without spaces around it.
    pub(crate) fn new(name: &'t str, whole: &'t str, range: Range<usize>) -> Fragment<'t> {
        let text = &whole[range.clone()];
        let start = range.start + (text.len() - text.trim_start().len());
        Fragment {
            name,
            whole,
            range: start..start + text.trim().len(),
        }
    }

    /// Its text.
    pub(crate) fn text(&self) -> &'t str {
        &self.whole[self.range.clone()]
    }

    /// The statement about it in the tamis language.
    pub(crate) fn statement(&self) -> String {
        format!("{ACTION}{}", self.text())
    }

    /// Mistakes in a policy that begins with the statement, as those of the whole text.
    pub(crate) fn failure(&self, mut mistakes: Vec<Diagnostic>) -> Failure {
        let mut sources = Sources::new();
        let source = sources.add(self.name, self.whole);
        for mistake in &mut mistakes {
            for label in &mut mistake.labels {
                label.span = self.place(source, label.span);
            }
        }
        Failure::Diagnostics(mistakes, sources)
    }

    /// The place in the whole text.
    fn place(&self, source: SourceId, span: Span) -> Span {
        let place = |at: u32| {
            let at = (at as usize).saturating_sub(ACTION.len());
            self.range.start + at.min(self.range.len())
        };
        Span::new(source, place(span.start), place(span.end))
    }
}
