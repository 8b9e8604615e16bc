//! The end of a process, and ending in the same way.

use crate::sys::signal;

/// The end of a process or thread.
///
/// ```
/// use tamis_kernel::Ended;
/// assert_eq!(Ended::Exited(3).pass_on(), 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    /// It exited with this code, 0 to 255.
    Exited(u8),
    /// It was killed by a signal.
    Signalled {
        /// The signal's number.
        signal: i32,
        /// Whether it left a core dump.
        core_dumped: bool,
    },
}

impl Ended {
    /// The end in a status of `waitpid` or a task's `exit_code`; `None` if it is the status of a stop.
    pub fn of_status(status: i32) -> Option<Ended> {
        if libc::WIFEXITED(status) {
            return Some(Ended::Exited(libc::WEXITSTATUS(status) as u8));
        }
        libc::WIFSIGNALED(status).then(|| Ended::Signalled {
            signal: libc::WTERMSIG(status),
            core_dumped: libc::WCOREDUMP(status),
        })
    }

    /// Ends the calling process in the same way: returns the exit code, or doesn't return because the command's
    /// signal kills the process, without a core dump.
    pub fn pass_on(self) -> u8 {
        match self {
            Ended::Exited(code) => code,
            Ended::Signalled { signal, .. } => {
                signal::raise_fatal(signal);
                // The convention of shells for a deadly signal.
                128u8.wrapping_add(signal as u8)
            }
        }
    }

    /// Whether this signal ended it.
    pub fn is_by(self, signal: i32) -> bool {
        matches!(self, Ended::Signalled { signal: found, .. } if found == signal)
    }
}
