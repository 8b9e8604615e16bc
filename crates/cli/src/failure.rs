//! Failures of commands.

use tamis_compiler::code;
use tamis_diag::{Diagnostic, Sources};
use tamis_report::diagnostics::DiagnosticsReport;
use tamis_session::{Cause, Error};

use super::{Global, exit, fold, message, message_as_is, output};

/// The failure of a command.
#[derive(Debug)]
pub enum Failure {
    /// Errors in a text, with their places.
    Diagnostics(Vec<Diagnostic>, Sources),
    /// Another error, with the help and the exit code.
    Message {
        /// The error.
        message: String,
        /// The correction.
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
                    Cause::Environment => exit::ENVIRONMENT,
                    Cause::Limit => exit::GAVE_UP,
                    Cause::Bug => exit::BUG,
                };
                Failure::new(code, message, hint)
            }
        }
    }
}

impl Failure {
    /// A failure with a message.
    pub fn new(code: u8, message: impl Into<String>, help: Option<String>) -> Failure {
        Failure::Message {
            message: message.into(),
            help,
            code,
        }
    }

    /// Wrong usage, with the correction.
    pub fn usage(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::new(exit::USAGE, message, Some(help.into()))
    }

    /// An input that can't be used.
    pub fn input(message: impl Into<String>) -> Failure {
        Failure::new(exit::USAGE, message, None)
    }

    /// A failure of the environment: the kernel, a file or a permission.
    pub fn environment(message: impl Into<String>) -> Failure {
        Failure::new(exit::ENVIRONMENT, message, None)
    }

    /// A limit was reached; the help says how to raise or avoid it.
    pub fn gave_up(message: impl Into<String>, help: Option<String>) -> Failure {
        Failure::new(exit::GAVE_UP, message, help)
    }

    /// A bug of tamis.
    pub fn bug(message: impl Into<String>, help: &str) -> Failure {
        Failure::new(exit::BUG, message, Some(help.to_owned()))
    }

    /// Reports the failure and returns its exit code. With `--json`, the report is a document on standard output in
    /// place of the result.
    pub fn report(&self, global: &Global) -> u8 {
        if global.json {
            return self.report_json();
        }
        self.report_text(global.colours_messages());
        self.code()
    }

    /// Writes the failure to standard error.
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

    /// Writes the failure as a document and returns the exit code.
    pub fn report_json(&self) -> u8 {
        let document = output::document_json(&self.document());
        if let Err(Failure::Message { message: text, .. }) =
            document.and_then(|text| output::print(text.as_bytes()))
        {
            message(&lines(&text, None));
            // If the document can't be written, the failure is reported as text.
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

    /// The failure in one line: its first error.
    pub fn message(&self) -> String {
        match self {
            Failure::Diagnostics(diagnostics, sources) => {
                let mut errors = diagnostics.iter().filter(|own| own.is_error());
                let Some(first) = errors.next() else {
                    return String::new();
                };
                match first.labels.first() {
                    Some(label) => {
                        let position = sources.position(label.span);
                        let name = sources.name(label.span.source);
                        format!("{name}:{}: {}", position.line, first.message)
                    }
                    None => first.message.clone(),
                }
            }
            Failure::Message { message, .. } => message.clone(),
        }
    }

    /// The failure as a document.
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
