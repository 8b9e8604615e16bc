//! Why an input did not become what it was to become: data for whoever shows it.

use std::fmt;

use tamis_diag::{Diagnostic, Sources, render};

/// The error of this crate.
#[derive(Clone, Debug)]
pub enum Error {
    /// Mistakes in texts; the diagnostics, of which at least one is an error, point into the sources.
    Diagnostics(Vec<Diagnostic>, Sources),
    /// Anything else.
    Message {
        /// What is wrong, as a sentence without a full stop.
        message: String,
        /// What to do about it, in the words of the command line.
        hint: Option<String>,
        /// Whose fault it is.
        cause: Cause,
    },
}

/// Whose fault an error is; the command line makes exit codes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The input or the options.
    Usage,
    /// A bug of tamis.
    Bug,
}

impl Error {
    /// Wrong usage, with what to do instead.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Error {
        Error::Message {
            message: message.into(),
            hint: Some(hint.into()),
            cause: Cause::Usage,
        }
    }

    /// An input that can't be used.
    pub fn input(message: impl Into<String>) -> Error {
        Error::Message {
            message: message.into(),
            hint: None,
            cause: Cause::Usage,
        }
    }

    /// A single mistake.
    pub(crate) fn diagnostic(diagnostic: Diagnostic, sources: Sources) -> Error {
        Error::Diagnostics(vec![diagnostic], sources)
    }

    /// A message for each mistake, its headline on the first line and without the word `error`. Warnings that were
    /// made besides are left out.
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

/// A diagnostic as a text; whoever shows it writes `error` or `warning` before the headline.
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
