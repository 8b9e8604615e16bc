//! What a command wrote, if it is something that answers calls.

use tamis_abi::{Action, SeccompData};
use tamis_diag::Sources;
use tamis_rules::Ruleset;

/// A function from calls to actions.
pub(super) enum Subject {
    /// A ruleset, written in its text form.
    Ruleset(Ruleset),
}

impl Subject {
    /// Recognises a ruleset.
    pub(super) fn from_output(stdout: &[u8]) -> Option<Subject> {
        let text = str::from_utf8(stdout).ok()?;
        let mut sources = Sources::new();
        let source = sources.add("<stdout>", text);
        let ruleset = tamis_rules::text::parse(&sources, source).ok()?;
        Some(Subject::Ruleset(ruleset))
    }

    /// The measures of a program, one a line.
    pub(super) fn stats(&self) -> Option<String> {
        None
    }

    /// The kind of thing in a word.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Subject::Ruleset(_) => "ruleset",
        }
    }

    /// The answer to a call.
    pub(super) fn decide(&self, data: &SeccompData) -> Action {
        match self {
            Subject::Ruleset(ruleset) => ruleset.decide(data).action,
        }
    }
}
