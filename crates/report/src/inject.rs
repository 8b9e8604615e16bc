//! The effects of rules on a command: `tamis inject`.

use std::fmt;

use serde::Serialize;

use crate::sandbox::EndOfGuest;

/// The end of a command, and the effects of the rules. It is written to standard error, because standard output belongs
/// to the command.
#[derive(Serialize)]
pub struct InjectReport {
    /// The platform that intercepted the calls.
    pub platform: String,
    #[serde(flatten)]
    pub ended: EndOfGuest,
    /// The rules, in their order.
    pub rules: Vec<InjectedEntry>,
}

/// The numbers of calls that a rule matched and changed.
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
