//! The recorded tasks: a byte for each, which programs read and write.

use std::sync::atomic::Ordering;

use tamis_kernel::bpf::Array;
use tamis_kernel::{Errno, lives};

use super::Start;
use super::programs;

/// The states of all tasks, and the number of recorded ones.
#[derive(Debug)]
pub(super) struct Tasks {
    pub(super) states: Array,
    pub(super) totals: Array,
}

impl Tasks {
    /// States for tasks with numbers below `tasks`.
    pub(super) fn new(tasks: usize) -> Result<Tasks, Errno> {
        Ok(Tasks {
            states: Array::new(tasks.div_ceil(programs::TASKS_PER_WORD))?,
            totals: Array::new(programs::TOTALS)?,
        })
    }

    /// Records a task and its future descendants. Returns false if there is no such task.
    pub(super) fn record(&self, task: i32, start: Start) -> bool {
        let Ok(number) = usize::try_from(task) else {
            return false;
        };
        let Some(word) = self.states.get(number / programs::TASKS_PER_WORD) else {
            return false;
        };
        let state = match start {
            Start::Now => programs::TRACKED | programs::NEW,
            Start::AtExec => programs::ARMED,
        };
        let distance = number % programs::TASKS_PER_WORD * programs::STATE_BITS;
        let bits = ((1 << programs::STATE_BITS) - 1) << distance;
        let is_set = |word: u64| word & bits != 0;
        let set = |word: u64| (!is_set(word)).then_some(word | state << distance);
        if word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, set)
            .is_err()
        {
            // Already recorded.
            return true;
        }
        self.totals[programs::LIVE].fetch_add(1, Ordering::Relaxed);
        if lives(task) {
            return true;
        }
        // The program for ends of tasks clears the state of an ended task. If it ran before this was set, it found no
        // state.
        if is_set(word.fetch_and(!bits, Ordering::AcqRel)) {
            self.totals[programs::LIVE].fetch_sub(1, Ordering::Relaxed);
        }
        false
    }

    /// The number of recorded tasks that live.
    pub(super) fn live(&self) -> u64 {
        self.total(programs::LIVE)
    }

    /// One of the totals.
    pub(super) fn total(&self, index: usize) -> u64 {
        self.totals[index].load(Ordering::Relaxed)
    }
}
