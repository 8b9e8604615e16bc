//! How a process ended, and ending the same way.

use crate::sys::signal;

/// How a process or thread ended.
///
/// ```
/// use tamis_kernel::Ended;
/// assert_eq!(Ended::Exited(3).pass_on(), 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    /// It exited with this code, 0 to 255.
    Exited(u8),
    /// A signal ended it.
    Signalled {
        /// The signal's number.
        signal: i32,
        /// Whether it left a core dump.
        core_dumped: bool,
    },
}

impl Ended {
    /// Ends the calling process the same way: gives the exit code to end with, or doesn't return
    /// because the command's signal ends the process, without a core dump of its own.
    pub fn pass_on(self) -> u8 {
        match self {
            Ended::Exited(code) => code,
            Ended::Signalled { signal, .. } => {
                signal::raise_fatal(signal);
                // Shells report a deadly signal so.
                128u8.wrapping_add(signal as u8)
            }
        }
    }

    /// Whether this signal ended it.
    pub fn is_by(self, signal: i32) -> bool {
        matches!(self, Ended::Signalled { signal: found, .. } if found == signal)
    }
}
