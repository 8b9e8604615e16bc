//! What rules did to a command: `tamis inject`.

use std::fmt;

use serde::Serialize;

use crate::sandbox::EndOfGuest;

/// The end of a command, and what became of the rules. It is written to standard error, because standard output belongs
/// to the command.
#[derive(Serialize)]
pub struct InjectReport {
    /// The name of the platform that caught the calls.
    pub platform: String,
    #[serde(flatten)]
    pub ended: EndOfGuest,
    /// The rules, in their order.
    pub rules: Vec<InjectedEntry>,
}

/// How often a rule matched a call, and how often it changed one.
#[derive(Serialize)]
pub struct InjectedEntry {
    pub rule: String,
    pub matched: u64,
    pub fired: u64,
}

impl fmt::Display for InjectReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tamis: {}: matched, fired, rule", self.platform)?;
        for entry in &self.rules {
            let InjectedEntry {
                rule,
                matched,
                fired,
            } = entry;
            writeln!(f, "{matched:>10} {fired:>10}  {rule}")?;
        }
        Ok(())
    }
}
