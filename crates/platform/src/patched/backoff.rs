//! Waiting for a suitable moment, while other reports are handled.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

/// The attempts of tasks. Between two attempts a task restarts its call.
#[derive(Debug, Default)]
pub(super) struct Backoff(HashMap<i32, u32>);

impl Backoff {
    /// Whether a task has tried for more than half a second, so that the tasks that block it may be waiting for it.
    pub(super) fn is_exhausted(&self, tid: i32) -> bool {
        const ENOUGH: u32 = 1000;
        self.0.get(&tid).is_some_and(|count| *count > ENOUGH)
    }

    /// Pauses before the next attempt.
    pub(super) fn pause(&mut self, tid: i32) {
        /// The shortest and longest pause.
        const PAUSES: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(1)];
        let count = self.0.entry(tid).or_default();
        let pause = PAUSES[0] * (1 + *count / 8);
        *count = count.saturating_add(1);
        thread::sleep(pause.min(PAUSES[1]));
    }

    /// The tasks that wait.
    pub(super) fn tasks(&self) -> impl Iterator<Item = i32> {
        self.0.keys().copied()
    }

    /// Removes a task that makes its call or has ended.
    pub(super) fn end(&mut self, tid: i32) {
        self.0.remove(&tid);
    }
}
