//! Decisions about calls that the kernel decides again.
//!
//! A thread may have several: a signal handler that interrupts it between the answer and the call makes its own calls.
//! Each permit lets one call pass, of the same architecture, with the same number and arguments: 11 is `munmap` in one
//! interface and `execve` in another.
//!
//! If a handler leaves by a jump, the interrupted call is never made, unnoticed. Its permit stays until the thread makes
//! such a call, ends, or has too many permits. The effect is bounded: one call that was decided earlier passes later
//! without a new decision, and a thread keeps a few hundred bytes.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Mutex;

use tamis_abi::SeccompData;

use super::dispatcher::lock;

/// The most permits of a thread.
const MAX_PER_THREAD: usize = 4;

/// A decision about the next call of a task.
#[derive(Debug)]
pub(crate) struct Permit {
    pub(super) arch: u32,
    pub(super) nr: u32,
    pub(super) args: [u64; 6],
    /// The call that is made instead.
    pub(crate) replacement: Option<SeccompData>,
    /// The descriptor that is the answer to a call that isn't made.
    pub(crate) descriptor: Option<OwnedFd>,
}

/// The permits of all threads, from the oldest to the newest.
#[derive(Debug, Default)]
pub(super) struct Permits(Mutex<HashMap<i32, Vec<Permit>>>);

impl Permits {
    pub(super) fn grant(&self, tid: i32, permit: Permit) {
        let mut all = lock(&self.0);
        let permits = all.entry(tid).or_default();
        if permits.len() == MAX_PER_THREAD {
            permits.remove(0);
        }
        permits.push(permit);
    }

    /// Removes and returns the newest permit of a thread that matches a call.
    pub(super) fn take(&self, tid: i32, matches: impl Fn(&Permit) -> bool) -> Option<Permit> {
        let mut all = lock(&self.0);
        let permits = all.get_mut(&tid)?;
        let index = permits.iter().rposition(matches)?;
        let taken = permits.remove(index);
        if permits.is_empty() {
            all.remove(&tid);
        }
        Some(taken)
    }

    /// Removes the permits of a thread that has ended, or has executed another program.
    pub(super) fn left(&self, tid: i32) {
        lock(&self.0).remove(&tid);
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::Arch;

    use super::{MAX_PER_THREAD, Permit, Permits};

    fn permit(nr: u32) -> Permit {
        Permit {
            arch: Arch::X86_64.audit(),
            nr,
            args: [0; 6],
            replacement: None,
            descriptor: None,
        }
    }

    fn takes(permits: &Permits, tid: i32, nr: u32) -> bool {
        permits.take(tid, |permit| permit.nr == nr).is_some()
    }

    #[test]
    fn an_interrupted_call_keeps_its_permit() {
        let permits = Permits::default();
        permits.grant(1, permit(10));
        permits.grant(1, permit(11));
        assert!(!takes(&permits, 2, 10), "another thread's");
        assert!(takes(&permits, 1, 11));
        assert!(takes(&permits, 1, 10));
        assert!(!takes(&permits, 1, 10), "it counts once");
    }

    #[test]
    fn who_has_left_has_none() {
        let permits = Permits::default();
        permits.grant(1, permit(10));
        permits.left(1);
        assert!(!takes(&permits, 1, 10));
    }

    #[test]
    fn the_oldest_of_too_many_is_dropped() {
        let permits = Permits::default();
        let last = MAX_PER_THREAD as u32;
        for nr in 0..=last {
            permits.grant(1, permit(nr));
        }
        assert!(!takes(&permits, 1, 0));
        assert!((1..=last).all(|nr| takes(&permits, 1, nr)));
    }
}
