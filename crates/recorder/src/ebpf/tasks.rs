//! The tasks that are recorded: a byte for each, which programs look at.

use std::sync::atomic::Ordering;

use tamis_kernel::bpf::Array;
use tamis_kernel::{Errno, lives};

use super::Start;
use super::programs;

/// The states of all tasks, and how many are recorded.
#[derive(Debug)]
pub(super) struct Tasks {
    pub(super) states: Array,
    pub(super) totals: Array,
}

impl Tasks {
    /// For tasks whose numbers are less than this.
    pub(super) fn new(tasks: usize) -> Result<Tasks, Errno> {
        Ok(Tasks {
            states: Array::new(tasks.div_ceil(programs::TASKS_PER_WORD))?,
            totals: Array::new(programs::TOTALS)?,
        })
    }

    /// Records a task and all that it starts. False if there is none.
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
            // It is recorded already.
            return true;
        }
        self.totals[programs::LIVE].fetch_add(1, Ordering::Relaxed);
        if lives(task) {
            return true;
        }
        // The program for ends of tasks takes back what it finds. If it ran before, it has found nothing.
        if is_set(word.fetch_and(!bits, Ordering::AcqRel)) {
            self.totals[programs::LIVE].fetch_sub(1, Ordering::Relaxed);
        }
        false
    }

    /// How many of the recorded tasks live.
    pub(super) fn live(&self) -> u64 {
        self.total(programs::LIVE)
    }

    /// One of the totals.
    pub(super) fn total(&self, index: usize) -> u64 {
        self.totals[index].load(Ordering::Relaxed)
    }
}
