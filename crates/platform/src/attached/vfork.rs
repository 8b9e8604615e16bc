//! Tasks that wait for a child of `vfork`, and whether they can be stopped.
//!
//! Such a task waits in the kernel until its child ends or executes a program; the only signals that end the wait are
//! fatal. Waiting for its stop means waiting for the child, which may be stopped itself: a deadlock. These facts are
//! certain:
//!
//! - The task waits at the earliest after its report that it has created the child, and no longer after its next
//!   report.
//! - The kernel ends the wait before the child loses the memory that it has borrowed. So a child without that memory
//!   has no waiting parent. While the child is stopped, the parent stays in the kernel.
//! - The end of the loan of a copy of the memory (`CLONE_VFORK` without `CLONE_VM`) is visible in reports alone.

use std::collections::BTreeMap;

use tamis_kernel::{Errno, memory};

/// Tasks that may wait for a child, by their numbers.
#[derive(Debug, Default)]
pub(super) struct VforkParents(BTreeMap<i32, VforkChild>);

#[derive(Clone, Copy, Debug)]
struct VforkChild {
    child: i32,
    /// Whether the child shares the memory itself, not a copy.
    is_shared: bool,
}

/// The wait of a task for its child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The wait is over: the task stops if it is interrupted.
    Over,
    /// The wait lasts as long as a task is stopped.
    Lasts,
    /// The task may begin to run at any time, or not.
    Unknown,
}

impl VforkParents {
    /// Adds a task that goes on after it has created a child that it waits for.
    pub(super) fn add(&mut self, tid: i32, child: i32) {
        let is_shared = match memory::is_shared(tid, child) {
            Err(Errno(libc::ESRCH)) => return,
            is_shared => is_shared == Ok(true),
        };
        self.0.insert(tid, VforkChild { child, is_shared });
    }

    /// Removes a task that has reported, so doesn't wait.
    pub(super) fn forget(&mut self, tid: i32) {
        self.0.remove(&tid);
    }

    /// Removes a task that has left its memory, and the loan to it.
    pub(super) fn left(&mut self, tid: i32) {
        self.forget(tid);
        self.0.retain(|_, loan| loan.child != tid);
    }

    pub(super) fn contains(&self, tid: i32) -> bool {
        self.0.contains_key(&tid)
    }

    /// The wait of a task, given the stopped tasks and the tasks that have left their memory in a report that is still
    /// to be handled.
    pub(super) fn wait(
        &self,
        tid: i32,
        is_stopped: &dyn Fn(i32) -> bool,
        has_left: &dyn Fn(i32) -> bool,
    ) -> Wait {
        let mut parent = tid;
        // If a child waits for its own child, it runs again when that wait is over.
        let mut over = Wait::Over;
        // The guest controls the length of the chain.
        for _ in 0..=self.0.len() {
            let Some(loan) = self.0.get(&parent).filter(|loan| !has_left(loan.child)) else {
                return over;
            };
            if !loan.is_shared {
                return Wait::Unknown;
            }
            match memory::is_shared(parent, loan.child) {
                Ok(false) | Err(Errno(libc::ESRCH)) => return over,
                Ok(true) if is_stopped(loan.child) => return Wait::Lasts,
                Ok(true) if self.contains(loan.child) => parent = loan.child,
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
        let mut vfork_parents = VforkParents::default();
        vfork_parents.add(first, second);
        vfork_parents.add(second, third);
        let nobody = |_: i32| false;
        let wait = |vfork_parents: &VforkParents, stopped: i32, left: i32| {
            vfork_parents.wait(first, &|tid| tid == stopped, &|tid| tid == left)
        };
        // Under a container's filter that refuses the comparison, no wait is known.
        let lasts = match memory::is_shared(first, second) {
            Err(Errno(libc::EPERM | libc::ENOSYS)) => Wait::Unknown,
            _ => Wait::Lasts,
        };
        assert_eq!(wait(&vfork_parents, third, 0), lasts);
        assert_eq!(wait(&vfork_parents, second, 0), lasts);
        assert_eq!(wait(&vfork_parents, 0, third), Wait::Unknown);
        assert_eq!(wait(&vfork_parents, 0, second), Wait::Over);
        assert_eq!(vfork_parents.wait(third, &nobody, &nobody), Wait::Over);
        // Numbers may be reused before all reports have come.
        vfork_parents.add(third, first);
        assert_eq!(wait(&vfork_parents, 0, 0), Wait::Unknown);
        for (end, own) in ends {
            drop(end);
            own.join().unwrap();
        }
    }
}
