//! Waiting for a moment at which something can be done, while other reports are seen to.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

/// How often tasks have looked for such a moment. Between looks a task makes its call again.
#[derive(Debug, Default)]
pub(super) struct Looks(HashMap<i32, u32>);

impl Looks {
    /// Whether a task has looked so often, for more than half a second, that those who are in the way may wait for itself.
    pub(super) fn are_enough(&self, tid: i32) -> bool {
        const ENOUGH: u32 = 1000;
        self.0.get(&tid).is_some_and(|count| *count > ENOUGH)
    }

    /// Pauses before the next.
    pub(super) fn pause(&mut self, tid: i32) {
        /// At least and at most.
        const PAUSES: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(1)];
        let count = self.0.entry(tid).or_default();
        let pause = PAUSES[0] * (1 + *count / 8);
        *count = count.saturating_add(1);
        thread::sleep(pause.min(PAUSES[1]));
    }

    /// Those that wait.
    pub(super) fn tasks(&self) -> impl Iterator<Item = i32> {
        self.0.keys().copied()
    }

    /// The call is made, or the task has ended.
    pub(super) fn end(&mut self, tid: i32) {
        self.0.remove(&tid);
    }
}
