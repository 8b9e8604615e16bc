//! Where the stages of the front end put what they have to tell the user.
//!
//! A rule is lowered once per architecture, so the same mistake is found several times; the sink keeps
//! the first. It also turns warnings into errors where the caller asked for that, and stops listening
//! when there are too many to read.

use std::collections::HashSet;

use tamis_diag::{Diagnostic, Severity, Span};

use crate::limits::MAX_DIAGNOSTICS;

/// Collects diagnostics.
pub(crate) struct Sink {
    strict: bool,
    diagnostics: Vec<Diagnostic>,
    /// Code and place of what was reported.
    seen: HashSet<(&'static str, Option<Span>)>,
    failed: bool,
    stopped: bool,
}

impl Sink {
    /// An empty sink; a strict one makes errors of warnings.
    pub(crate) fn new(strict: bool) -> Sink {
        Sink {
            strict,
            diagnostics: Vec::new(),
            seen: HashSet::new(),
            failed: false,
            stopped: false,
        }
    }

    /// Takes a diagnostic, unless the same code was reported at the same place.
    pub(crate) fn report(&mut self, mut diagnostic: Diagnostic) {
        if self.strict && diagnostic.severity == Severity::Warning {
            diagnostic.severity = Severity::Error;
        }
        self.take(diagnostic);
    }

    /// Takes a diagnostic that is no more severe if strict: it is about a wish of the caller.
    pub(crate) fn advise(&mut self, diagnostic: Diagnostic) {
        self.take(diagnostic);
    }

    fn take(&mut self, diagnostic: Diagnostic) {
        self.failed |= diagnostic.is_error();
        let place = diagnostic.labels.first().map(|label| label.span);
        if self.seen.insert((diagnostic.code.id, place)) && self.has_room_for(&diagnostic) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Takes an error after which it makes no sense to go on.
    pub(crate) fn stop(&mut self, diagnostic: Diagnostic) {
        self.report(diagnostic);
        self.stopped = true;
    }

    /// Whether an error was reported.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Whether to give up: after [`stop`](Self::stop), or with errors and no room for more.
    pub(crate) fn is_finished(&self) -> bool {
        self.stopped || self.failed && self.diagnostics.len() >= MAX_DIAGNOSTICS
    }

    /// What was reported, errors, warnings and notes in the order of discovery.
    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }

    /// The first error is kept even behind a full load of warnings.
    fn has_room_for(&self, diagnostic: &Diagnostic) -> bool {
        self.diagnostics.len() < MAX_DIAGNOSTICS
            || diagnostic.is_error() && !self.diagnostics.iter().any(Diagnostic::is_error)
    }
}
