//! Policy languages: from text to a [`Ruleset`], with diagnostics.
//!
//! Each front end is a module with one function `parse` that returns [`Parsed`], and an entry in the
//! registry, [`front_end`]. Front ends do no I/O: the root text is in [`tamis_diag::Sources`] already
//! and further files come through a loader that the caller gives. Whatever the input, a front end
//! returns; [`limits`] bounds what it takes.
//!
//! What they share, beside this: [`loader`]; `sink`, which collects diagnostics; `literal`, the integers
//! of C; and the strict JSON of [`tamis_diag::json`].
#![forbid(unsafe_code)]

mod budget;
pub mod embedded;
pub mod export;
pub mod firecracker;
pub mod front_end;
pub mod installation;
pub mod kafel;
pub mod limits;
mod literal;
pub mod loader;
#[cfg(feature = "toml")]
pub mod matrix;
pub mod minijail;
pub mod oci;
mod sink;
pub mod spo;
pub mod systemd;
pub mod tamis;
#[cfg(feature = "yaml")]
mod yaml;

pub use embedded::embedded;

use tamis_diag::{Diagnostic, Sources, Span};
use tamis_rules::{Origin, Ruleset};

/// What a front end made of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The meaning; `None` exactly if one of the diagnostics is an error.
    pub ruleset: Option<Ruleset>,
    /// Errors, warnings and notes, in the order of discovery.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// A result that keeps the promise of [`Parsed::ruleset`]: an error discards the ruleset.
    ///
    /// # Panics
    /// If there is neither a ruleset nor an error: a front end must say why it has no result.
    pub fn new(ruleset: Option<Ruleset>, diagnostics: Vec<Diagnostic>) -> Parsed {
        let failed = diagnostics.iter().any(Diagnostic::is_error);
        assert!(failed || ruleset.is_some(), "no ruleset and no error");
        Parsed {
            ruleset: ruleset.filter(|_| !failed),
            diagnostics,
        }
    }
}

/// Where a rule stands in its text.
pub(crate) fn origin(sources: &Sources, span: Span) -> Origin {
    let position = sources.position(span);
    Origin {
        file: sources.name(span.source).clone(),
        line: position.line,
        column: position.column,
    }
}
