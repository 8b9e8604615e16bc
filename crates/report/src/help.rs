//! What is told instead of a result: `--help`, `tamis help` and `--version`.

use serde::Serialize;

/// The text that was asked for.
#[derive(Serialize)]
pub struct HelpReport {
    pub version: &'static str,
    pub text: String,
}

impl HelpReport {
    /// What this version of tamis says.
    pub const fn new(version: &'static str, text: String) -> HelpReport {
        HelpReport { version, text }
    }
}
