//! A command with intercepted calls: `tamis sandbox`, and the parts shared with `tamis inject`.

use std::fmt;

use serde::Serialize;

use crate::entry::counted;

/// The end of a command in a sandbox, and the calls that the supervisor handled. It is written to standard error,
/// because standard output belongs to the command.
#[derive(Serialize)]
pub struct SandboxReport {
    /// The platform that intercepted the calls.
    pub platform: String,
    #[serde(flatten)]
    pub ended: EndOfGuest,
    /// The calls that the supervisor handled, the most frequent first.
    pub asked: Vec<AskedEntry>,
    /// The number of tasks, if the platform reports it.
    pub tasks: Option<u64>,
}

/// The end of a command.
#[derive(Clone, Copy, Serialize)]
pub struct EndOfGuest {
    /// The exit code, unless a signal ended the command.
    pub exit_code: Option<u8>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
}

/// The number of times that the supervisor handled a call.
#[derive(Serialize)]
pub struct AskedEntry {
    pub call: String,
    pub count: u64,
}

impl fmt::Display for SandboxReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count: u64 = self.asked.iter().map(|entry| entry.count).sum();
        let calls = counted(count, "call");
        write!(f, "tamis: {}: asked for {calls}", self.platform)?;
        if let Some(tasks) = self.tasks {
            write!(f, " by {}", counted(tasks, "task"))?;
        }
        writeln!(f)?;
        for entry in &self.asked {
            writeln!(f, "{:>10}  {}", entry.count, entry.call)?;
        }
        Ok(())
    }
}
