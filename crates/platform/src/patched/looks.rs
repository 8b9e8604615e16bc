//! Waiting for a moment at which something can be done, while other reports are seen to.

use std::thread;
use std::time::Duration;

/// Looks for one such moment. Between them the task that waits for it makes its call again.
#[derive(Debug, Default)]
pub(super) struct Looks(u32);

impl Looks {
    /// Whether there were so many that those who are in the way may wait for the caller: more than half a second.
    pub(super) const fn are_enough(&self) -> bool {
        const ENOUGH: u32 = 1000;
        self.0 > ENOUGH
    }

    /// Pauses before the next.
    pub(super) fn pause(&mut self) {
        /// At least and at most.
        const PAUSES: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(1)];
        let pause = PAUSES[0] * (1 + self.0 / 8);
        self.0 = self.0.saturating_add(1);
        thread::sleep(pause.min(PAUSES[1]));
    }

    /// It has come.
    pub(super) const fn end(&mut self) {
        self.0 = 0;
    }
}
