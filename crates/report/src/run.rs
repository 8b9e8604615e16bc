//! The end of a command under filters: `tamis run`.

use std::fmt;

use serde::Serialize;
use tamis_abi::{Action, ActionKind};

use crate::denied::DeniedEntry;

/// The help for a filter that prevents the command from starting.
pub const MUST_ALLOW_EXECVE: &str = "`tamis run` installs the filter before it executes the command, so \
    the filter must allow execve; a program can install a filter without execve itself";

/// The end of a command, and the effects of its filters. It is written to standard error, because standard output
/// belongs to the command.
#[derive(Serialize)]
pub struct RunReport {
    /// The exit code, unless a signal ended the command.
    pub exit_code: Option<u8>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    pub killed: Vec<KilledEntry>,
    pub trapped: Vec<TrappedEntry>,
    /// Calls that got an error from a filter, if requested.
    pub denied: Vec<DeniedEntry>,
    pub notes: Vec<String>,
}

/// A thread or process that a filter killed.
#[derive(Serialize)]
pub struct KilledEntry {
    pub process: i32,
    pub thread: i32,
    pub whole_process: bool,
    pub call: Option<String>,
    /// The filter that decided, by its index from the oldest.
    pub filter: Option<usize>,
    pub action: Option<String>,
    /// The part of its policy that decided.
    #[serde(skip)]
    pub reason: Option<String>,
    /// Whether the call executes a program.
    #[serde(skip)]
    pub is_execve: bool,
}

/// A call with the action `TRAP`.
#[derive(Serialize)]
pub struct TrappedEntry {
    pub process: i32,
    pub thread: i32,
    pub call: String,
    pub data: u16,
    pub is_caught: bool,
    /// The part of a policy that decided.
    #[serde(skip)]
    pub reason: Option<String>,
}

/// All effects that the command's exit status doesn't show, or an empty text. The caller prints notes.
impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for killed in &self.killed {
            writeln!(f, "{killed}")?;
            if killed.filter.is_some() && killed.is_execve {
                writeln!(f, "help: {MUST_ALLOW_EXECVE}")?;
            }
        }
        for denied in &self.denied {
            write!(f, "tamis: {denied}")?;
        }
        let mut uncaught = self.trapped.iter().filter(|trapped| !trapped.is_caught);
        uncaught.try_for_each(|trapped| writeln!(f, "{trapped}"))
    }
}

impl fmt::Display for KilledEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (process, thread) = (self.process, self.thread);
        match self.whole_process {
            true => write!(f, "tamis: a filter killed process {process}"),
            false => write!(
                f,
                "tamis: a filter killed thread {thread} of process {process}"
            ),
        }?;
        let Some(call) = &self.call else {
            return write!(f, "; the kernel didn't report the call");
        };
        write!(f, ": {call}")?;
        if let Some(action) = &self.action {
            write!(f, " -> {action}")?;
        }
        write_reason(self.reason.as_deref(), f)
    }
}

impl fmt::Display for TrappedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TrappedEntry { process, call, .. } = self;
        let trap = Action::new(ActionKind::Trap, self.data);
        write!(
            f,
            "tamis: process {process} had no handler for a trap and died: {call} -> {trap}"
        )?;
        write_reason(self.reason.as_deref(), f)
    }
}

/// Writes the reason on a separate line.
fn write_reason(reason: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match reason {
        Some(reason) => write!(f, "\n  {reason}"),
        None => Ok(()),
    }
}
