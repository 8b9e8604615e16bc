//! The diagnostic data type.

use crate::code::Code;
use crate::limits::cut;
use crate::source::Span;

/// The severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Information, not an error.
    Note,
    /// There is a result, but possibly not the intended one.
    Warning,
    /// There is no result.
    Error,
}

impl Severity {
    /// `note`, `warning` or `error`.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A span of a source with a text, which may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The text of the label.
    pub text: String,
}

/// Puts diagnostics in the order of a reader: that of their main places. Those without a place come last, and those of one
/// place keep their order.
///
/// Readers of several passes find them in another order: what is no text of the language first, then unknown names.
pub fn sort_by_place(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by_key(|diagnostic| {
        let place = diagnostic.labels.first().map(|label| label.span);
        (place.is_none(), place)
    });
}

/// One error, warning or note for the user.
///
/// ```
/// use tamis_diag::{code, Diagnostic, Sources, Span};
/// let mut sources = Sources::new();
/// let source = sources.add("a.tamis", "allow raed\n");
/// let span = Span { source, start: 6, end: 10 };
/// let diagnostic = Diagnostic::error(code::NOT_A_CALL, "unknown system call `raed`")
///     .label(span, "not a system call of any architecture")
///     .help("did you mean `read`?");
/// assert!(diagnostic.is_error());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code.
    pub code: Code,
    /// The severity.
    pub severity: Severity,
    /// The error: a lower-case fragment without a full stop.
    pub message: String,
    /// The places; the first label is the main one, the others are related.
    pub labels: Vec<Label>,
    /// The reasons.
    pub notes: Vec<String>,
    /// The correction.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic without labels, notes or help.
    pub fn new(severity: Severity, code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity,
            message: cut(message),
            labels: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// An error.
    pub fn error(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, code, message)
    }

    /// A warning.
    pub fn warning(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, code, message)
    }

    /// Adds a place.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label {
            span,
            text: cut(text),
        });
        self
    }

    /// Adds a reason.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(cut(note));
        self
    }

    /// Sets the help text, which states the correction.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(cut(help));
        self
    }

    /// Whether it is an error, so that there is no result.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
