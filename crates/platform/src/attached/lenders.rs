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
        let mut lender = tid;
        // A child that waits for one of its own runs again when that wait is over.
        let mut over = Wait::Over;
        // The guest decides how many wait for each other.
        for _ in 0..=self.0.len() {
            let Some(loan) = self.0.get(&lender).filter(|loan| !has_left(loan.child)) else {
                return over;
            };
            if !loan.is_shared {
                return Wait::Unknown;
            }
            match memory::is_shared(lender, loan.child) {
                Ok(false) | Err(Errno(libc::ESRCH)) => return over,
                Ok(true) if is_stopped(loan.child) => return Wait::Lasts,
                Ok(true) if self.contains(loan.child) => lender = loan.child,
                _ => return Wait::Unknown,
            }
            over = Wait::Unknown;
        }
        Wait::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::mpsc;
    use std::thread;

    /// Threads stand for processes that have one memory.
    #[test]
    fn the_last_of_a_chain_decides() {
        let (tids, all) = mpsc::channel();
        let ends: Vec<_> = (0..3)
            .map(|_| {
                let (end, ended) = mpsc::channel::<()>();
                let tids = tids.clone();
                let own = thread::spawn(move || {
                    let path = fs::read_link("/proc/thread-self").unwrap();
                    let tid = path.file_name().unwrap().to_str().unwrap();
                    tids.send(tid.parse::<i32>().unwrap()).unwrap();
                    let _ = ended.recv();
                });
                (end, own)
            })
            .collect();
        let [first, second, third] = [(); 3].map(|()| all.recv().unwrap());
        let mut lenders = Lenders::default();
        lenders.add(first, second);
        lenders.add(second, third);
        let nobody = |_: i32| false;
        let wait = |lenders: &Lenders, stopped: i32, left: i32| {
            lenders.wait(first, &|tid| tid == stopped, &|tid| tid == left)
        };
        assert_eq!(wait(&lenders, third, 0), Wait::Lasts);
        assert_eq!(wait(&lenders, second, 0), Wait::Lasts);
        assert_eq!(wait(&lenders, 0, third), Wait::Unknown);
        assert_eq!(wait(&lenders, 0, second), Wait::Over);
        assert_eq!(lenders.wait(third, &nobody, &nobody), Wait::Over);
        // Numbers may come again before all reports have come.
        lenders.add(third, first);
        assert_eq!(wait(&lenders, 0, 0), Wait::Unknown);
        for (end, own) in ends {
            drop(end);
            own.join().unwrap();
        }
    }
}
