//! Handling a user's interrupt without losing the result of the current work.
//!
//! While an [`Interrupts`] exists, `SIGINT`, `SIGTERM` and `SIGHUP` don't end this process; they are recorded. A signal
//! more than half a second after the first ends the process, in case the work doesn't stop. Signals within that time
//! count as repetitions: `timeout` sends its signal to a command and then to the command's group. Keep the value until
//! the result is written: afterwards signals have their previous effect.

use crate::sys::interrupt;

/// The signals are noted while this lives. There should be only one in a process.
///
/// ```
/// let interrupts = tamis_kernel::interrupt::Interrupts::catch();
/// assert!(!interrupts.arrived());
/// ```
#[derive(Debug)]
pub struct Interrupts {
    _caught: interrupt::SavedHandlers,
}

impl Interrupts {
    /// Begins to note them.
    pub fn catch() -> Interrupts {
        Interrupts {
            _caught: interrupt::SavedHandlers::begin(),
        }
    }

    /// Whether one has arrived.
    pub fn arrived(&self) -> bool {
        interrupt::arrived()
    }
}
