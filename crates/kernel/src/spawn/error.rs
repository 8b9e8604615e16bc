//! The reason why a command was not executed.

use std::error;
use std::fmt;
use std::io;

use crate::errno::Errno;
use crate::install::InstallError;

/// A step of starting a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// Mapping the memory shared with the parent.
    Memory,
    /// Creating a pipe.
    Pipe,
    /// Starting the thread that forwards signals.
    Thread,
    /// Forking.
    Fork,
    /// The child's first steps.
    Child,
}

/// The reason why a command was not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnError {
    /// The program's name or an argument contains a zero byte.
    ZeroByte,
    /// The child was not started.
    Start {
        /// The step that failed.
        step: Step,
        /// The kernel's error.
        errno: Errno,
    },
    /// A filter that this process has inherited killed the child before it installed its own.
    Killed,
    /// A filter was not installed.
    Install {
        /// The index of the filter, counted from the oldest.
        filter: usize,
        /// The reason.
        error: InstallError,
    },
    /// `execve` failed: `ENOENT` if there is no such program, `EACCES` if it may not be executed, … or the error of
    /// a filter; `Errno(0)` if a filter answered it with 0.
    Exec(Errno),
}

impl Step {
    pub(super) const fn failed(self, errno: Errno) -> SpawnError {
        SpawnError::Start { step: self, errno }
    }

    pub(super) fn failed_io(self, error: &io::Error) -> SpawnError {
        self.failed(Errno(error.raw_os_error().unwrap_or(libc::EIO)))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Memory => "mapping shared memory",
            Step::Pipe => "making a pipe",
            Step::Thread => "starting a thread",
            Step::Fork => "forking",
            Step::Child => "setting up the child",
        })
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnError::ZeroByte => f.write_str("the command contains a zero byte"),
            SpawnError::Start { step, errno } => write!(f, "{step} failed: {errno}"),
            SpawnError::Killed => f.write_str("an inherited filter killed the new process"),
            SpawnError::Install { error, .. } => error.fmt(f),
            SpawnError::Exec(errno) => write!(f, "execve failed: {errno}"),
        }
    }
}

impl error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            SpawnError::Install { error, .. } => Some(error),
            _ => None,
        }
    }
}
