//! The reason why a measurement failed.

use std::error;
use std::fmt;

use crate::errno::Errno;
use crate::install::InstallError;

use super::child::TIME_LIMIT;
use super::{MAX_CALLS, MAX_SEQUENCE};

/// The reason why a measurement failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MeasureError {
    /// More than [`MAX_CALLS`] sequences, or one with more than [`MAX_SEQUENCE`] calls.
    TooManyCalls,
    /// Shared memory or the fork failed.
    Start(Errno),
    /// The child could not stay on one CPU.
    Pin(Errno),
    /// The child could not set `no_new_privs`.
    NoNewPrivs(Errno),
    /// A filter was not installed.
    Install {
        /// The stack.
        subject: usize,
        /// The filter, counted from the oldest.
        filter: usize,
        /// The reason.
        error: InstallError,
    },
    /// The child ended before it had timed all calls: killed by the filter, or otherwise.
    Died {
        /// The stack.
        subject: usize,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// The child took more than a minute.
    TimedOut {
        /// The stack.
        subject: usize,
    },
}

impl MeasureError {
    /// The same error of another stack.
    pub(super) fn of_subject(self, subject: usize) -> MeasureError {
        match self {
            MeasureError::Install { filter, error, .. } => MeasureError::Install {
                subject,
                filter,
                error,
            },
            MeasureError::Died { signal, .. } => MeasureError::Died { subject, signal },
            MeasureError::TimedOut { .. } => MeasureError::TimedOut { subject },
            other => other,
        }
    }
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeasureError::TooManyCalls => write!(
                f,
                "at most {MAX_CALLS} sequences of at most {MAX_SEQUENCE} calls can be timed together"
            ),
            MeasureError::Start(errno) => {
                write!(f, "the measuring process could not be started: {errno}")
            }
            MeasureError::Pin(errno) => {
                write!(f, "the measuring process may not choose its CPU: {errno}")
            }
            MeasureError::NoNewPrivs(errno) => {
                write!(f, "the measuring process may not set no_new_privs: {errno}")
            }
            MeasureError::Install { error, .. } => error.fmt(f),
            MeasureError::Died {
                signal: Some(signal),
                ..
            } => write!(f, "the measuring process was killed by signal {signal}"),
            MeasureError::Died { signal: None, .. } => {
                f.write_str("the measuring process ended before it was done")
            }
            MeasureError::TimedOut { .. } => write!(
                f,
                "the measuring process took more than {} seconds",
                TIME_LIMIT.as_secs()
            ),
        }
    }
}

impl error::Error for MeasureError {}
