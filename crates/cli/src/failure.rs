//! Failures of commands.

use tamis_diag::{Diagnostic, Sources, code};
use tamis_report::diagnostics::DiagnosticsReport;
use tamis_session::{Cause, Error};

use super::{Global, exit, fold, message, message_as_is, output};

/// The message for the user, and the exit code.
#[derive(Debug)]
pub enum Failure {
    /// Mistakes in a text, with their places.
    Diagnostics(Vec<Diagnostic>, Sources),
    /// Anything else: a message, perhaps a way out, and the exit code.
    Message {
        /// What went wrong.
        message: String,
        /// The way out.
        help: Option<String>,
        /// The exit code.
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
            } => {
                let code = match cause {
                    Cause::Usage => exit::USAGE,
                    Cause::Bug => exit::BUG,
                };
                Failure::new(code, message, hint)
            }
        }
    }
}

impl Failure {
    /// A message, perhaps with a way out.
    pub fn new(code: u8, message: impl Into<String>, help: Option<String>) -> Failure {
        Failure::Message {
            message: message.into(),
            help,
            code,
        }
    }

    /// Wrong usage, with what to type instead.
    pub fn usage(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::new(exit::USAGE, message, Some(help.into()))
    }

    /// Something that the user named can't be used as input.
    pub fn input(message: impl Into<String>) -> Failure {
        Failure::new(exit::USAGE, message, None)
    }

    /// The kernel, a file or a permission is in the way.
    pub fn environment(message: impl Into<String>) -> Failure {
        Failure::new(exit::ENVIRONMENT, message, None)
    }

    /// A limit was reached, with the way to raise or avoid it if there is one.
    pub fn gave_up(message: impl Into<String>, help: Option<String>) -> Failure {
        Failure::new(exit::GAVE_UP, message, help)
    }

    /// A bug of tamis, with what to report.
    pub fn bug(message: impl Into<String>, help: &str) -> Failure {
        Failure::new(exit::BUG, message, Some(help.to_owned()))
    }

    /// Tells the user and gives the exit code: on standard error, or, for `--json`, as a document on
    /// standard output, where the result would have been.
    pub fn report(&self, global: &Global) -> u8 {
        if global.json {
            return self.report_json();
        }
        self.report_text(global.colours_messages());
        self.code()
    }

    /// Tells the user on standard error.
    fn report_text(&self, has_colours: bool) {
        match self {
            Failure::Diagnostics(diagnostics, sources) => {
                message_as_is(&fold::render(
                    diagnostics,
                    fold::ERRORS,
                    sources,
                    has_colours,
                ));
            }
            Failure::Message {
                message: text,
                help,
                ..
            } => {
                message(lines(text, help.as_deref()).trim_end());
            }
        }
    }

    /// Writes the document about it and gives the exit code.
    pub fn report_json(&self) -> u8 {
        let document = output::document_json(&self.document());
        if let Err(Failure::Message { message: text, .. }) =
            document.and_then(|text| output::print(text.as_bytes()))
        {
            message(&lines(&text, None));
            // The failure itself must not be lost with the document.
            self.report_text(false);
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

    /// The same for programs.
    pub fn document(&self) -> DiagnosticsReport {
        match self {
            Failure::Diagnostics(diagnostics, sources) => {
                DiagnosticsReport::from_diagnostics(diagnostics, sources)
            }
            Failure::Message { message, help, .. } => {
                DiagnosticsReport::of_error(message, help.as_deref())
            }
        }
    }
}

/// A message and its help as lines.
pub fn lines(text: &str, help: Option<&str>) -> String {
    let help = help.map(|help| format!("help: {help}\n"));
    format!("error: {text}\n{}", help.unwrap_or_default())
}
