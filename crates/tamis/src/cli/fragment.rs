//! Targets of the tamis language outside policies: expressions of `trace`, rules of `inject`.
//!
//! A target is parsed as a policy of one statement. Errors of that policy are reported at their place in the user's
//! text.

use std::ops::Range;

use tamis_diag::{Diagnostic, SourceId, Sources, Span};

use super::Failure;

/// The action of the statement; any action would do.
const ACTION: &str = "notify ";

/// A target within a text.
#[derive(Clone, Debug)]
pub(crate) struct Fragment<'t> {
    /// The name of the whole text in messages.
    name: &'t str,
    whole: &'t str,
    range: Range<usize>,
}

impl<'t> Fragment<'t> {
    /// The trimmed part of a text.
    pub(crate) fn new(name: &'t str, whole: &'t str, range: Range<usize>) -> Fragment<'t> {
        let text = &whole[range.clone()];
        let start = range.start + (text.len() - text.trim_start().len());
        Fragment {
            name,
            whole,
            range: start..start + text.trim().len(),
        }
    }

    pub(crate) fn text(&self) -> &'t str {
        &self.whole[self.range.clone()]
    }

    /// The statement with this target.
    pub(crate) fn statement(&self) -> String {
        format!("{ACTION}{}", self.text())
    }

    /// The failure with the errors of a policy that begins with the statement, placed in the whole text.
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

    /// The position in the whole text.
    fn place(&self, source: SourceId, span: Span) -> Span {
        let place = |at: u32| {
            let at = (at as usize).saturating_sub(ACTION.len());
            self.range.start + at.min(self.range.len())
        };
        Span::new(source, place(span.start), place(span.end))
    }
}
