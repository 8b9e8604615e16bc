//! Failures of commands.

use serde::Serialize;
use tamis_diag::render::render;
use tamis_diag::{Diagnostic, Label, Severity, Sources, code};
use tamis_session::{Cause, Error};

use super::{Global, exit, message, output};

/// The message for the user, and the exit code.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Mistakes in a text, with their places.
    Diagnostics(Vec<Diagnostic>, Sources),
    /// Anything else: a message, perhaps a way out, and the exit code.
    Message {
        message: String,
        help: Option<String>,
        code: u8,
    },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Diagnostics(diagnostics, sources) => Failure::Diagnostics(diagnostics, sources),
            Error::Message {
                message,
                hint,
                cause,
            } => Failure::Message {
                message,
                help: hint,
                code: match cause {
                    Cause::Usage => exit::USAGE,
                    Cause::Bug => exit::BUG,
                },
            },
        }
    }
}

impl Failure {
    /// Wrong usage, with what to type instead.
    pub(crate) fn usage(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::Message {
            message: message.into(),
            help: Some(help.into()),
            code: exit::USAGE,
        }
    }

    /// Something that the user named can't be used as input.
    pub(crate) fn input(message: impl Into<String>) -> Failure {
        Failure::Message {
            message: message.into(),
            help: None,
            code: exit::USAGE,
        }
    }

    /// The kernel, a file or a permission is in the way.
    pub(crate) fn environment(message: impl Into<String>) -> Failure {
        Failure::Message {
            message: message.into(),
            help: None,
            code: exit::ENVIRONMENT,
        }
    }

    /// Tells the user and gives the exit code: on standard error, or, for `--json`, as a document on
    /// standard output, where the result would have been.
    pub(crate) fn report(&self, global: &Global) -> u8 {
        if global.json {
            // If even that can't be written, the exit code is all there is.
            let _ = output::print_json(&self.document());
            return self.code();
        }
        match self {
            Failure::Diagnostics(diagnostics, sources) => {
                message(&render(diagnostics, sources, global.colours_messages()));
            }
            Failure::Message {
                message: text,
                help,
                ..
            } => {
                message(&format!("error: {text}"));
                if let Some(help) = help {
                    message(&format!("help: {help}"));
                }
            }
        }
        self.code()
    }

    fn code(&self) -> u8 {
        match self {
            Failure::Diagnostics(diagnostics, _) => {
                let gave_up = |diagnostic: &Diagnostic| diagnostic.code == code::UNPROVEN;
                let all_gave_up = diagnostics.iter().filter(|d| d.is_error()).all(gave_up);
                if all_gave_up {
                    exit::GAVE_UP
                } else {
                    exit::USAGE
                }
            }
            Failure::Message { code, .. } => *code,
        }
    }

    fn document(&self) -> Document {
        let diagnostics = match self {
            Failure::Diagnostics(diagnostics, sources) => diagnostics
                .iter()
                .map(|diagnostic| entry(diagnostic, sources))
                .collect(),
            Failure::Message { message, help, .. } => vec![Entry {
                code: None,
                severity: Severity::Error.name(),
                message: message.clone(),
                labels: Vec::new(),
                notes: Vec::new(),
                help: help.clone(),
            }],
        };
        Document {
            schema: "tamis.diagnostics/1",
            diagnostics,
        }
    }
}

/// The document that stands in for a result.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    diagnostics: Vec<Entry>,
}

/// One diagnostic.
#[derive(Serialize)]
struct Entry {
    code: Option<&'static str>,
    severity: &'static str,
    message: String,
    labels: Vec<LabelEntry>,
    notes: Vec<String>,
    help: Option<String>,
}

/// A place in a source; lines and columns count from 1, columns in characters.
#[derive(Serialize)]
struct LabelEntry {
    file: String,
    line: u32,
    column: u32,
    text: String,
}

fn entry(diagnostic: &Diagnostic, sources: &Sources) -> Entry {
    let label = |label: &Label| {
        let position = sources.position(label.span);
        LabelEntry {
            file: sources.name(label.span.source).to_string(),
            line: position.line,
            column: position.column,
            text: label.text.clone(),
        }
    };
    Entry {
        code: Some(diagnostic.code.id),
        severity: diagnostic.severity.name(),
        message: diagnostic.message.clone(),
        labels: diagnostic.labels.iter().map(label).collect(),
        notes: diagnostic.notes.clone(),
        help: diagnostic.help.clone(),
    }
}
