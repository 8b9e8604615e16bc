//! Diagnostics: errors, warnings and notes about the user's input.
//!
//! A [`Diagnostic`] is data: a stable [`Code`], a severity, a message, labelled [`Span`]s in the
//! [`Sources`] that were read, notes and a help text. Parsers collect as many as they can and return them
//! with a partial result; [`render`] turns them into text for people, and the command line into JSON for
//! programs. Bugs of tamis itself are not diagnostics, they are panics.
#![forbid(unsafe_code)]

pub mod code;
pub mod cursor;
pub mod diagnostic;
pub mod document;
pub mod escape;
pub mod json;
pub mod limits;
pub mod render;
pub mod source;
pub mod suggest;
pub mod words;
#[cfg(feature = "yaml")]
pub mod yaml;

pub use code::Code;
pub use cursor::Cursor;
pub use diagnostic::{Diagnostic, Label, Severity, sort_by_place};
pub use source::{Source, SourceId, Sources, Span};
