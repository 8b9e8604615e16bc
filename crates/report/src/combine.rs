//! Several policies as one: `tamis combine`.

use std::fmt;

use serde::Serialize;
use tamis_diag::words::joined;

use crate::convert::ConvertReport;
use crate::entry::counted;

/// A combination, with the text in which it was written.
#[derive(Serialize)]
pub struct CombineReport {
    /// The operation: `intersect`, `union`, `overlay` or `minus`.
    pub operation: &'static str,
    pub inputs: Vec<String>,
    pub bound: Bound,
    /// The calls that the result may execute, by origin.
    pub origins: Vec<OriginEntry>,
    #[serde(flatten)]
    pub converted: ConvertReport,
}

/// The proved relation of a combination to its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Never looser than any part.
    NotLooser,
    /// Never looser than the first part.
    NotLooserThanFirst,
    /// Never stricter than any part.
    NotStricter,
    /// None.
    None,
}

/// Calls with the same origin.
#[derive(Serialize)]
pub struct OriginEntry {
    /// The parts that treat the calls as the result does.
    pub inputs: Vec<String>,
    pub calls: Vec<&'static str>,
}

/// The origin of calls, as a comment.
pub fn origin_note(inputs: &[&str], is_all: bool) -> String {
    match (inputs, is_all) {
        ([], _) => "from more than one input".to_owned(),
        (_, true) => "as in all inputs".to_owned(),
        (inputs, false) => {
            let names: Vec<String> = inputs.iter().map(|&name| name.to_owned()).collect();
            format!("as in {}", joined(&names, "and"))
        }
    }
}

/// The proof and the origins; then the result of the conversion.
impl fmt::Display for CombineReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inputs = joined(&self.inputs, "and");
        write!(f, "{} of {inputs}: proved for every call", self.operation)?;
        match (self.bound, self.inputs.first()) {
            (Bound::NotLooser, _) => f.write_str(", never looser than an input")?,
            (Bound::NotLooserThanFirst, Some(first)) => write!(f, ", never looser than {first}")?,
            (Bound::NotStricter, _) => f.write_str(", never stricter than an input")?,
            (Bound::NotLooserThanFirst, None) | (Bound::None, _) => {}
        }
        for origin in &self.origins {
            let names: Vec<&str> = origin.inputs.iter().map(String::as_str).collect();
            let note = origin_note(&names, names.len() == self.inputs.len());
            let calls = counted(origin.calls.len(), "call");
            write!(f, "\n  {note}: {calls}")?;
        }
        write!(f, "\n{}", self.converted)
    }
}
