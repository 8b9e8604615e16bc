//! The error of loading and compiling, as data for the caller.

use std::fmt;

use tamis_diag::{Diagnostic, Sources, render};

/// The error of this crate.
#[derive(Clone, Debug)]
pub enum Error {
    /// Errors in texts. At least one diagnostic is an error; the spans point into the sources.
    Diagnostics(Vec<Diagnostic>, Sources),
    /// Anything else.
    Message {
        /// The message, a sentence without a full stop.
        message: String,
        /// The correction, in terms of the command line.
        hint: Option<String>,
        /// The cause, from which the command line derives the exit code.
        cause: Cause,
    },
}

/// The cause of an error; the command line derives the exit code from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The input or the options.
    Usage,
    /// The environment: the kernel, a file or a permission.
    Environment,
    /// A limit was reached.
    Limit,
    /// A bug of tamis.
    Bug,
}

impl Error {
    /// A usage error with its correction.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Error {
        Error::Message {
            message: message.into(),
            hint: Some(hint.into()),
            cause: Cause::Usage,
        }
    }

    /// The error for an unusable input.
    pub fn input(message: impl Into<String>) -> Error {
        Error::Message {
            message: message.into(),
            hint: None,
            cause: Cause::Usage,
        }
    }

    /// An error of the environment.
    pub fn environment(message: impl Into<String>) -> Error {
        Error::Message {
            message: message.into(),
            hint: None,
            cause: Cause::Environment,
        }
    }

    /// The error with a single diagnostic.
    pub(crate) fn diagnostic(diagnostic: Diagnostic, sources: Sources) -> Error {
        Error::Diagnostics(vec![diagnostic], sources)
    }

    /// One message per mistake, with the headline on the first line and without the prefix `error`. Warnings are
    /// omitted.
    pub fn messages(&self) -> Vec<String> {
        match self {
            Error::Diagnostics(diagnostics, sources) => {
                let errors = diagnostics.iter().filter(|found| found.is_error());
                errors.map(|error| text(error, sources)).collect()
            }
            Error::Message { message, hint, .. } => vec![match hint {
                Some(hint) => format!("{message}\nhelp: {hint}"),
                None => message.clone(),
            }],
        }
    }
}

/// A rendered diagnostic without the prefix `error` or `warning`.
pub(crate) fn text(diagnostic: &Diagnostic, sources: &Sources) -> String {
    let text = render::render(std::slice::from_ref(diagnostic), sources, false);
    let body = text.split_once('\n').map_or("", |(_, body)| body);
    let headline = format!("{} [{}]", diagnostic.message, diagnostic.code.id);
    match body {
        "" => headline,
        _ => format!("{headline}\n{body}"),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.messages().join("\n\n"))
    }
}

impl std::error::Error for Error {}
