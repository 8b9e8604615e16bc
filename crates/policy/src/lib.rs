//! Policy languages: from text to a [`Ruleset`], with diagnostics.
//!
//! Each front end is a module with one function `parse` that returns [`Parsed`], and an entry in the registry,
//! [`front_end`]. Front ends do no I/O: the root text is already in [`tamis_diag::Sources`], and included files
//! come from a loader of the caller. A front end returns for every input; [`limits`] bounds the size of the input.
//!
//! The language of tamis is always there, the others with the feature `languages`.
//!
//! Shared parts: [`loader`]; [`option`], the declarations of options; `sink`, which collects diagnostics; `literal`,
//! the integers of C; and the strict JSON of [`tamis_diag::json`].
#![forbid(unsafe_code)]

#[cfg(feature = "languages")]
mod budget;
pub mod code;
pub mod embedded;
#[cfg(feature = "languages")]
mod exact;
pub mod explicit;
#[cfg(feature = "languages")]
pub mod firecracker;
pub mod front_end;
mod included;
pub mod installation;
#[cfg(feature = "languages")]
pub mod kafel;
pub mod limits;
#[cfg(feature = "languages")]
mod literal;
pub mod loader;
#[cfg(feature = "languages")]
pub mod lxc;
#[cfg(feature = "toml")]
pub mod matrix;
#[cfg(feature = "languages")]
pub mod minijail;
mod near;
#[cfg(feature = "languages")]
pub mod nsjail;
#[cfg(feature = "languages")]
pub mod oci;
pub mod option;
pub mod selection;
pub mod sink;
#[cfg(feature = "languages")]
pub mod snap;
#[cfg(feature = "languages")]
pub mod spo;
#[cfg(feature = "languages")]
pub mod systemd;
pub mod tamis;

pub use embedded::embedded;

use tamis_diag::{Diagnostic, Sources, Span, sort_by_place};
use tamis_rules::{Origin, Ruleset};

/// The result of a front end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The meaning; `None` exactly if one of the diagnostics is an error.
    pub ruleset: Option<Ruleset>,
    /// Errors, warnings and notes, in the order of their places.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// A result; an error discards the ruleset, as [`Parsed::ruleset`] requires.
    ///
    /// # Panics
    /// If there is neither a ruleset nor an error: a missing result needs a reason.
    pub fn new(ruleset: Option<Ruleset>, mut diagnostics: Vec<Diagnostic>) -> Parsed {
        let failed = diagnostics.iter().any(Diagnostic::is_error);
        assert!(failed || ruleset.is_some(), "no ruleset and no error");
        sort_by_place(&mut diagnostics);
        Parsed {
            ruleset: ruleset.filter(|_| !failed),
            diagnostics,
        }
    }
}

/// The place of a span, in the form of a rule's origin.
pub fn origin(sources: &Sources, span: Span) -> Origin {
    let position = sources.position(span);
    Origin {
        file: sources.name(span.source).clone(),
        line: position.line,
        column: position.column,
    }
}
