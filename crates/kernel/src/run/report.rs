//! The report of a run: plain data, and its messages.

use std::error;
use std::fmt;

use tamis_abi::{Action, SeccompData};

use crate::ended::Ended;
use crate::errno::Errno;
use crate::install::InstallError;

/// The scope of a kill by a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Only the thread that made the call: other threads of its process survive.
    Thread,
    /// The whole process.
    Process,
}

/// A thread or process that a filter killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Killed {
    /// The process.
    pub process: i32,
    /// The thread that made the call; equal to the process in its first thread.
    pub thread: i32,
    /// The scope of the kill.
    pub scope: Scope,
    /// The signal: `SIGSYS`.
    pub signal: i32,
    /// The call; `None` if it couldn't be read without `/proc`.
    pub call: Option<SeccompData>,
    /// The index of the deciding filter of this run, counted from the oldest, and its action; `None` for a filter
    /// that the command had installed itself or inherited.
    pub decided_by: Option<(usize, Action)>,
}

/// A `SIGSYS` that a filter sent with the action trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trapped {
    /// The process.
    pub process: i32,
    /// The thread that made the call.
    pub thread: i32,
    /// The call; its arguments are zero if they are unknown.
    pub call: SeccompData,
    /// The data of the action, for the handler in `si_errno`.
    pub data: u16,
    /// Whether the process handles the signal; if not, it dies.
    pub is_caught: bool,
}

/// A limitation of a run; the command was run nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// The command could not be traced, so kills are not explained.
    NotTraced(Errno),
    /// Another run of this process was forwarding signals, so this one's were not.
    SignalsNotForwarded,
    /// The process was killed before it executed the command: by a signal, or for lack of memory.
    NotExecuted,
    /// The listener failed, so notified calls got no more replies.
    NotAnswered(Errno),
    /// Descendants outlived the command: their notified calls fail with `ENOSYS` from now on.
    TasksLeft,
    /// A process with several threads was killed by `SIGSYS`, and the thread that caused it is unknown.
    ThreadUnknown {
        /// The process.
        process: i32,
    },
    /// More kills or traps happened than are recorded.
    NotAllRecorded {
        /// The count of missing ones.
        missing: u64,
    },
    /// The call's architecture could not be read and is assumed to be the native one. Before 5.3.
    ArchAssumed,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::NotTraced(errno) => write!(
                f,
                "tracing is not permitted here ({errno}), so a kill can't be explained; the kernel \
                 log may have it: a line with `type=1326` names the call"
            ),
            Note::SignalsNotForwarded => {
                f.write_str("signals were not forwarded: another run of this process does that")
            }
            Note::NotExecuted => f.write_str("it was killed before the command was executed"),
            Note::NotAnswered(errno) => {
                write!(f, "notified calls were no longer answered: {errno}")
            }
            Note::TasksLeft => f.write_str(
                "what the command started still runs; from now on calls that would be handed over fail with ENOSYS there",
            ),
            Note::ThreadUnknown { process } => write!(
                f,
                "process {process} was killed by SIGSYS, but not which of its threads made the call \
                 could be found out"
            ),
            Note::NotAllRecorded { missing } => {
                write!(f, "{missing} more kills or traps are not listed")
            }
            Note::ArchAssumed => f.write_str(
                "this kernel doesn't tell the architecture of a call; the native one is assumed",
            ),
        }
    }
}

/// The report of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunResult {
    /// Its end.
    pub ended: Ended,
    /// Its processes and threads that a filter killed, in order; empty if not traced.
    pub killed: Vec<Killed>,
    /// Every trap, in order; empty if not traced.
    pub trapped: Vec<Trapped>,
    /// The limitations of the run.
    pub notes: Vec<Note>,
}

/// The reason why a command was not run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// The program's name or an argument contains a zero byte.
    ZeroByte,
    /// A step before the command failed: a thread, a pipe, the fork.
    Start(Errno),
    /// The command could not be waited for, and was killed: a filter that this process has inherited
    /// denies `waitid` or `wait4`.
    NotWaitedFor(Errno),
    /// A filter that this process has inherited killed the new process before it installed its own.
    Killed,
    /// A filter was not installed.
    Install {
        /// The index of the filter, counted from the oldest.
        filter: usize,
        /// The reason.
        error: InstallError,
    },
    /// The command was not executed.
    Exec {
        /// The error of `execve`: `ENOENT` if there is no such program, `EACCES` if it may not be executed, …
        /// unless `denied_by` names the filter.
        errno: Errno,
        /// The filter that returns this error for `execve`, and its action.
        denied_by: Option<(usize, Action)>,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::ZeroByte => f.write_str("the command contains a zero byte"),
            RunError::Start(errno) => write!(f, "the command could not be started: {errno}"),
            RunError::NotWaitedFor(errno) => write!(
                f,
                "the command was killed, because it can't be waited for: {errno}"
            ),
            RunError::Killed => f.write_str(
                "a filter that was installed before killed the process that was to execute the command",
            ),
            RunError::Install { error, .. } => error.fmt(f),
            RunError::Exec {
                errno,
                denied_by: None,
            } => write!(f, "the command could not be executed: {errno}"),
            RunError::Exec {
                denied_by: Some((_, action)),
                ..
            } => write!(
                f,
                "the command could not be executed: the filter answers execve with {action}"
            ),
        }
    }
}

impl error::Error for RunError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            RunError::Install { error, .. } => Some(error),
            _ => None,
        }
    }
}
