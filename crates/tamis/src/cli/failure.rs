//! Why a command could not do its work.

use tamis_diag::render::render;
use tamis_diag::{Diagnostic, Sources};

use super::{Global, exit, message};

/// What to tell the user and with which code to end.
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

    /// Tells the user on standard error and gives the exit code.
    pub(crate) fn report(&self, global: &Global) -> u8 {
        match self {
            Failure::Diagnostics(diagnostics, sources) => {
                message(&render(diagnostics, sources, global.colours_messages()));
                exit::USAGE
            }
            Failure::Message {
                message: text,
                help,
                code,
            } => {
                message(&format!("error: {text}"));
                if let Some(help) = help {
                    message(&format!("help: {help}"));
                }
                *code
            }
        }
    }
}
