//! Collects the diagnostics of a front end's stages.
//!
//! A rule is lowered once per architecture, so the same error is found several times; the sink keeps the first. It
//! also turns warnings into errors if the caller requests this, and drops diagnostics beyond the limit.

use std::collections::HashSet;

use tamis_diag::{Diagnostic, Severity, Span};

use crate::limits::MAX_DIAGNOSTICS;

/// Collects diagnostics.
#[derive(Debug)]
pub struct Sink {
    strict: bool,
    diagnostics: Vec<Diagnostic>,
    /// Codes and places already reported.
    seen: HashSet<(&'static str, Option<Span>)>,
    failed: bool,
    stopped: bool,
}

impl Sink {
    /// An empty sink; a strict one turns warnings into errors.
    pub fn new(strict: bool) -> Sink {
        Sink {
            strict,
            diagnostics: Vec::new(),
            seen: HashSet::new(),
            failed: false,
            stopped: false,
        }
    }

    /// Adds a diagnostic, unless the same code was reported at the same place.
    pub fn report(&mut self, mut diagnostic: Diagnostic) {
        if self.strict && diagnostic.severity == Severity::Warning {
            diagnostic.severity = Severity::Error;
        }
        self.take(diagnostic);
    }

    /// Adds a diagnostic about an option of the caller; strict mode leaves its severity unchanged.
    pub(crate) fn advise(&mut self, diagnostic: Diagnostic) {
        self.take(diagnostic);
    }

    fn take(&mut self, diagnostic: Diagnostic) {
        self.failed |= diagnostic.is_error();
        let place = diagnostic.labels.first().map(|label| label.span);
        if self.has_room_for(&diagnostic) && self.seen.insert((diagnostic.code.id, place)) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Adds an error and stops the front end.
    pub(crate) fn stop(&mut self, diagnostic: Diagnostic) {
        self.report(diagnostic);
        self.stopped = true;
    }

    /// Whether another warning would be kept, or matters because it is the first error.
    #[cfg(feature = "languages")]
    pub(crate) fn wants_more(&self) -> bool {
        self.diagnostics.len() < MAX_DIAGNOSTICS || self.strict && !self.failed
    }

    /// The number of diagnostics.
    pub(crate) fn len(&self) -> usize {
        self.diagnostics.len()
    }

    /// The place of the first diagnostic after these many.
    pub(crate) fn first_place_after(&self, len: usize) -> Option<Span> {
        let mut labels = self.diagnostics[len..].iter().flat_map(|own| &own.labels);
        labels.next().map(|label| label.span)
    }

    /// Drops all diagnostics but the first ones. An error among them still counts.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.diagnostics.truncate(len);
    }

    /// Whether an error was reported.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Whether to stop: after [`stop`](Self::stop), or with errors and no room for more.
    pub fn is_finished(&self) -> bool {
        self.stopped || self.failed && self.diagnostics.len() >= MAX_DIAGNOSTICS
    }

    /// All errors, warnings and notes in the order of discovery; [`Parsed::new`](crate::Parsed::new) sorts them.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }

    /// The first error is kept even if warnings have filled the sink.
    fn has_room_for(&self, diagnostic: &Diagnostic) -> bool {
        self.diagnostics.len() < MAX_DIAGNOSTICS
            || diagnostic.is_error() && !self.diagnostics.iter().any(Diagnostic::is_error)
    }
}
