//! Errors in the input and other failures: the report of a command without a result.

use serde::Serialize;
use tamis_diag::{Diagnostic, Label, Severity, Sources};

/// The reason for the lack of a result. Its text is that of `tamis_diag::render`.
#[derive(Serialize)]
pub struct DiagnosticsReport {
    /// Serialised by [`json`](crate::json) as in every document.
    #[serde(skip)]
    pub diagnostics: Vec<DiagnosticEntry>,
}

/// One diagnostic.
#[derive(Clone, Serialize)]
pub struct DiagnosticEntry {
    pub code: Option<&'static str>,
    pub severity: &'static str,
    pub message: String,
    pub labels: Vec<LabelEntry>,
    pub notes: Vec<String>,
    pub help: Option<String>,
}

/// A place in a source; lines and columns count from 1, columns in characters.
#[derive(Clone, Serialize)]
pub struct LabelEntry {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub text: String,
}

impl DiagnosticsReport {
    /// The report of diagnostics about these sources.
    pub fn from_diagnostics(diagnostics: &[Diagnostic], sources: &Sources) -> DiagnosticsReport {
        let label = |label: &Label| {
            let position = sources.position(label.span);
            LabelEntry {
                file: sources.name(label.span.source).to_string(),
                line: position.line,
                column: position.column,
                text: label.text.clone(),
            }
        };
        let entry = |diagnostic: &Diagnostic| DiagnosticEntry {
            code: Some(diagnostic.code.id),
            severity: diagnostic.severity.name(),
            message: diagnostic.message.clone(),
            labels: diagnostic.labels.iter().map(label).collect(),
            notes: diagnostic.notes.clone(),
            help: diagnostic.help.clone(),
        };
        DiagnosticsReport {
            diagnostics: diagnostics.iter().map(entry).collect(),
        }
    }

    /// The report of an error without a source text.
    pub fn of_error(message: &str, help: Option<&str>) -> DiagnosticsReport {
        DiagnosticsReport {
            diagnostics: vec![DiagnosticEntry {
                code: None,
                severity: Severity::Error.name(),
                message: message.to_owned(),
                labels: Vec::new(),
                notes: Vec::new(),
                help: help.map(str::to_owned),
            }],
        }
    }
}
