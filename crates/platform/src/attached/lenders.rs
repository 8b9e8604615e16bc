//! Which tasks wait for a child of `vfork`, and which of them can be stopped.
//!
//! Such a task waits in the kernel until its child ends or executes a program; of all signals only one that kills it ends that. Who interrupts it and
//! waits for its stop waits for the child, which may be stopped itself: for ever. What is known for certain:
//!
//! - It waits at the earliest after its report that it has created the child, and not any more when it has reported something else.
//! - The kernel ends the wait before the child loses the memory that it has borrowed. So a child that has lost it has nobody waiting, and while one that has it
//!   is stopped, the lender stays in the kernel.
//! - Of a child with a copy of the memory (`CLONE_VFORK` without `CLONE_VM`) only the reports tell when it has left that.

use std::collections::BTreeMap;

use tamis_kernel::{Errno, memory};

/// Tasks that may wait for a child, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Lenders(BTreeMap<i32, Loan>);

#[derive(Clone, Copy, Debug)]
struct Loan {
    child: i32,
    /// Whether the child has the memory itself, and no copy.
    is_shared: bool,
}

/// Whether a task waits for its child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Not any more: it stops if it is interrupted.
    Over,
    /// As long as a task is stopped.
    Lasts,
    /// It may begin to run at any time, or not.
    Unknown,
}

impl Lenders {
    /// A task goes on that has created a child which it waits for.
    pub(super) fn add(&mut self, tid: i32, child: i32) {
        let is_shared = match memory::is_shared(tid, child) {
            Err(Errno(libc::ESRCH)) => return,
            is_shared => is_shared == Ok(true),
        };
        self.0.insert(tid, Loan { child, is_shared });
    }

    /// A task has reported something, so it doesn't wait.
    pub(super) fn forget(&mut self, tid: i32) {
        self.0.remove(&tid);
    }

    /// A task has left its memory.
    pub(super) fn left(&mut self, tid: i32) {
        self.forget(tid);
        self.0.retain(|_, loan| loan.child != tid);
    }

    pub(super) fn contains(&self, tid: i32) -> bool {
        self.0.contains_key(&tid)
    }

    /// What is known about a task, with those that are stopped and those whose report that they have left their memory is still to
    /// be handled.
    pub(super) fn wait(
        &self,
        tid: i32,
        is_stopped: &dyn Fn(i32) -> bool,
        has_left: &dyn Fn(i32) -> bool,
    ) -> Wait {
        let Some(loan) = self.0.get(&tid).filter(|loan| !has_left(loan.child)) else {
            return Wait::Over;
        };
        if !loan.is_shared {
            return Wait::Unknown;
        }
        match memory::is_shared(tid, loan.child) {
            Ok(false) | Err(Errno(libc::ESRCH)) => Wait::Over,
            Ok(true) if is_stopped(loan.child) => Wait::Lasts,
            // A child that waits for one of its own doesn't run either.
            Ok(true) if self.contains(loan.child) => {
                match self.wait(loan.child, is_stopped, has_left) {
                    Wait::Over => Wait::Unknown,
                    wait => wait,
                }
            }
            _ => Wait::Unknown,
        }
    }
}
