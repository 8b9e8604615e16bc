//! Being told of a user's wish to end, instead of being ended by it.
//!
//! While an [`Interrupts`] lives, `SIGINT`, `SIGTERM` and `SIGHUP` don't end this process: they are noted, for work that has a
//! result worth keeping. One that comes more than half a second after the first ends the process, in case the work doesn't.
//! Until then others are part of the same wish: `timeout` sends its signal to a command and then to the command's group. So
//! the value is kept until the result is written: a signal that comes after its end does what it did before.

use crate::sys::interrupt;

/// The signals are noted while this lives. There should be only one in a process.
///
/// ```
/// let interrupts = tamis_kernel::interrupt::Interrupts::catch();
/// assert!(!interrupts.arrived());
/// ```
#[derive(Debug)]
pub struct Interrupts {
    _caught: interrupt::Noted,
}

impl Interrupts {
    /// Begins to note them.
    pub fn catch() -> Interrupts {
        Interrupts {
            _caught: interrupt::Noted::begin(),
        }
    }

    /// Whether one has arrived.
    pub fn arrived(&self) -> bool {
        interrupt::arrived()
    }
}
