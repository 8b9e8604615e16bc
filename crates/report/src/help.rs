//! Help and version: `--help`, `tamis help` and `--version`.

use serde::Serialize;

/// The requested text.
#[derive(Serialize)]
pub struct HelpReport {
    pub version: &'static str,
    pub text: String,
}

impl HelpReport {
    /// The text of this version of tamis.
    pub const fn new(version: &'static str, text: String) -> HelpReport {
        HelpReport { version, text }
    }
}
