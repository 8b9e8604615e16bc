//! The registry of programs as text: the name, detection and parser of each form.
//!
//! To add a form, write its parser and add its [`Form`] to [`ALL`].

pub mod annotation;
mod array;
mod c_tokens;
mod decimal;
mod document;
mod hex;
mod seccomp_tools;

use std::path::Path;

use tamis_abi::Arch;
use tamis_diag::{Diagnostic, SourceId, Span};

use crate::asm::{self, Assembly};

/// Assembler text.
const ASSEMBLER: Form = Form {
    name: "asm",
    title: "assembler text",
    about: "Assembler text",
    extensions: &["asm", "s"],
    recognises: asm::recognises,
    read: |text, source, arch| asm::assemble(text, source, arch.endian()),
};

/// All forms. If a text looks like several, the first one is used.
pub static ALL: [Form; 7] = [
    array::FORM,
    ASSEMBLER,
    seccomp_tools::FORM,
    decimal::FORM,
    hex::FORM,
    annotation::FORM,
    document::FORM,
];

/// The assembler.
pub static ASM: &Form = &ALL[1];

/// The JSON documents of tamis, which other readers of JSON must leave alone.
pub static DOCUMENT: &Form = &ALL[6];

/// A text form of programs.
#[derive(Debug)]
pub struct Form {
    /// Its name for `--from`: lower case, one word.
    pub name: &'static str,
    /// The description of a program in this form, with its article: `assembler text`.
    pub title: &'static str,
    /// A short description, for a list of kinds.
    pub about: &'static str,
    /// The extensions of its files, without the dot.
    pub extensions: &'static [&'static str],
    /// Whether a text looks like this form, even if it has errors.
    pub recognises: fn(&str) -> bool,
    /// Parses a program for an architecture, which selects the byte order and the numbers of calls that are named
    /// without an architecture. Returns every error in the text, in order.
    pub read: fn(&str, SourceId, Arch) -> Result<Assembly, Vec<Diagnostic>>,
}

impl PartialEq for Form {
    fn eq(&self, other: &Form) -> bool {
        self.name == other.name
    }
}

impl Eq for Form {}

/// The form of a file by its extension, if known.
pub fn of_file(name: &str) -> Option<&'static Form> {
    let extension = Path::new(name).extension()?.to_str()?;
    ALL.iter().find(|form| form.extensions.contains(&extension))
}

/// The words of a part of a text, between separators, with their spans in the text.
fn words<'t>(
    text: &'t str,
    part: &'t str,
    separates: fn(char) -> bool,
    source: SourceId,
) -> impl Iterator<Item = (&'t str, Span)> {
    part.split(separates)
        .filter(|word| !word.is_empty())
        .map(move |word| {
            let start = word.as_ptr().addr() - text.as_ptr().addr();
            (word, Span::new(source, start, start + word.len()))
        })
}

/// The first line that is neither blank nor a comment after `#`, without the blanks around it.
fn first_line(text: &str) -> &str {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'))
        .unwrap_or("")
}
