//! The registry of programs as text: what each form is called, how it is recognised, how it is read.
//!
//! To add a form, write its reader and add its [`Form`] to [`ALL`].

use std::path::Path;

use tamis_abi::Endian;
use tamis_diag::{Diagnostic, SourceId};

use crate::asm::{self, Assembly};

/// All forms. Where a text looks like several, the first counts.
pub static ALL: [Form; 1] = [asm::FORM];

/// A way to write a program down.
#[derive(Debug)]
pub struct Form {
    /// What `--from` calls it: lower case, one word.
    pub name: &'static str,
    /// What a program in it is called, with its article: `assembler text`.
    pub title: &'static str,
    /// What it is, in a few words, for a list of kinds.
    pub about: &'static str,
    /// The extensions of its files, without the dot.
    pub extensions: &'static [&'static str],
    /// Whether a text looks as if it were written in it. Mistakes in the text should not matter.
    pub recognises: fn(&str) -> bool,
    /// Reads a program for machines of a byte order; every mistake in the text, in its order.
    pub read: fn(&str, SourceId, Endian) -> Result<Assembly, Vec<Diagnostic>>,
}

impl PartialEq for Form {
    fn eq(&self, other: &Form) -> bool {
        self.name == other.name
    }
}

impl Eq for Form {}

/// The form with this name.
pub fn named(name: &str) -> Option<&'static Form> {
    ALL.iter().find(|form| form.name == name)
}

/// The form of a text by its looks, if it looks like any.
pub fn of_text(text: &str) -> Option<&'static Form> {
    ALL.iter().find(|form| (form.recognises)(text))
}

/// The form of a file by its extension, if that is one of ours.
pub fn of_file(name: &str) -> Option<&'static Form> {
    let extension = Path::new(name).extension()?.to_str()?;
    ALL.iter().find(|form| form.extensions.contains(&extension))
}
