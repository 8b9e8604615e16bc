//! What a run tells: plain data, and how to say it.

use std::error;
use std::fmt;

use tamis_abi::{Action, SeccompData};

use crate::ended::Ended;
use crate::errno::Errno;
use crate::install::InstallError;

/// How much of a process a filter killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Only the thread that made the call: others of its process live on.
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
    /// What died.
    pub scope: Scope,
    /// The signal: `SIGSYS`.
    pub signal: i32,
    /// The call. `None` if the kernel didn't tell, for want of `/proc`.
    pub call: Option<SeccompData>,
    /// The filter of this run that decided, counted from the oldest, and its answer; `None` if it
    /// was one that the command had installed itself or inherited.
    pub decided_by: Option<(usize, Action)>,
}

/// A `SIGSYS` that a filter sent with the action trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trapped {
    /// The process.
    pub process: i32,
    /// The thread that made the call.
    pub thread: i32,
    /// The call; its arguments are zero if the kernel didn't tell them.
    pub call: SeccompData,
    /// The data of the action, which the handler sees as `si_errno`.
    pub data: u16,
    /// Whether the process handles the signal; if not, it dies.
    pub is_caught: bool,
}

/// Something that a run could not do for its caller; the command ran all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// The command could not be traced, so that kills are not explained.
    NotTraced(Errno),
    /// Another run of this process is forwarding signals; this one's were not.
    SignalsNotForwarded,
    /// The process was killed before it executed the command: by whoever sends signals, or for want of
    /// memory.
    NotExecuted,
    /// The listener failed, so that notified calls were no longer answered.
    NotAnswered(Errno),
    /// A process with several threads was killed by `SIGSYS` and the thread that caused it could not
    /// be told.
    ThreadUnknown {
        /// The process.
        process: i32,
    },
    /// More kills or traps happened than are recorded.
    NotAllRecorded {
        /// How many are missing.
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

/// What happened to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How it ended.
    pub ended: Ended,
    /// Every process and thread of it that a filter killed, in order; empty if not traced.
    pub killed: Vec<Killed>,
    /// Every trap, in order; empty if not traced.
    pub trapped: Vec<Trapped>,
    /// What could not be done.
    pub notes: Vec<Note>,
}

/// Why a command was not run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// The program's name or an argument contains a zero byte.
    ZeroByte,
    /// Something before the command could be started failed: a thread, a pipe, the fork.
    Start(Errno),
    /// The command could not be waited for, and was killed: a filter that this process has inherited
    /// denies `waitid` or `wait4`.
    NotWaitedFor(Errno),
    /// A filter was not installed.
    Install {
        /// Which one, counted from the oldest.
        filter: usize,
        /// Why.
        error: InstallError,
    },
    /// The command was not executed.
    Exec {
        /// What `execve` answered: `ENOENT` if there is no such program, `EACCES` if it may not be
        /// executed, … unless `denied_by` says that it was the filter.
        errno: Errno,
        /// The filter that answers `execve` with just this error, and its answer.
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
