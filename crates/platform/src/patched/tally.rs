//! Counts of the calls that a guest's trampolines count.
//!
//! The counts are in memory that the guest's processes share with the supervisor. A guest can overwrite them, so they
//! are reliable only for programs that aren't hostile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::sites::returns_once;
use crate::sys::shared::{Atomic, Shared};

/// The numbers that can be counted: 0 to 511.
pub(super) const NUMBERS: usize = 512;

/// Counts of calls of x86-64 that a guest makes without its supervisor, by their numbers.
///
/// A supervisor that forwards all calls with a number, and only counts them, leaves them to a tally: see
/// [`Options::tally`](crate::Options).
#[derive(Debug)]
pub struct Tally {
    is_counted: [bool; NUMBERS],
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    in_use: Vec<Arc<Shared<Count>>>,
    /// The counts of released memory.
    former: Vec<(u32, u64)>,
}

/// A count in shared memory.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Count(AtomicU64);

// SAFETY: an atomic number only.
#[expect(unsafe_code, reason = "a promise about the field above")]
unsafe impl Atomic for Count {}

impl Tally {
    /// A tally of the calls for whose numbers `is_counted` returns true. Calls are excluded that may end or replace the
    /// program, return twice, or have the program inspect calls.
    pub fn new(is_counted: impl Fn(u32) -> bool) -> Tally {
        let can_be = |nr: u32| {
            let stops = [
                libc::SYS_exit,
                libc::SYS_exit_group,
                libc::SYS_execve,
                libc::SYS_execveat,
                // After these the program may inspect the addresses of calls.
                libc::SYS_prctl,
                libc::SYS_ptrace,
                libc::SYS_rt_sigaction,
                libc::SYS_seccomp,
            ];
            returns_once(nr) && !stops.contains(&i64::from(nr))
        };
        Tally {
            is_counted: std::array::from_fn(|nr| can_be(nr as u32) && is_counted(nr as u32)),
            memory: Mutex::default(),
        }
    }

    /// The numbers of calls and how often they were counted so far, which takes no time in the guest.
    pub fn counts(&self) -> Vec<(u32, u64)> {
        let memory = self.memory();
        let mut counts = memory.former.clone();
        for one in &memory.in_use {
            add(&mut counts, one);
        }
        counts
    }

    /// Whether calls with a number are counted.
    pub(super) fn has(&self, nr: u32) -> bool {
        self.is_counted.get(nr as usize).copied().unwrap_or(false)
    }

    /// Adds memory with counts.
    pub(super) fn extend(&self, memory: Arc<Shared<Count>>) {
        self.memory().in_use.push(memory);
    }

    /// Releases memory that no process of the guest has any more, and keeps its counts.
    pub(super) fn tidy(&self) {
        let Memory { in_use, former } = &mut *self.memory();
        in_use.retain(|one| {
            let is_used = Arc::strong_count(one) > 1;
            if !is_used {
                add(former, one);
            }
            is_used
        });
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn add(counts: &mut Vec<(u32, u64)>, memory: &[Count]) {
    for (nr, Count(count)) in (0..).zip(memory) {
        let count = count.load(Ordering::Relaxed);
        if count == 0 {
            continue;
        }
        match counts.binary_search_by_key(&nr, |(nr, _)| *nr) {
            Ok(found) => counts[found].1 = counts[found].1.saturating_add(count),
            Err(place) => counts.insert(place, (nr, count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_calls_that_return_twice_are_not_counted() {
        let tally = Tally::new(|_| true);
        for nr in [libc::SYS_read, libc::SYS_futex, libc::SYS_getppid] {
            assert!(tally.has(nr as u32), "{nr}");
        }
        for nr in [
            libc::SYS_clone,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_vfork,
            libc::SYS_exit,
            libc::SYS_execve,
        ] {
            assert!(!tally.has(nr as u32), "{nr}");
        }
        assert!(!tally.has(NUMBERS as u32) && !Tally::new(|_| false).has(0));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn counts_of_memory_that_is_gone_are_kept() {
        let tally = Tally::new(|_| true);
        let memory = Arc::new(Shared::<Count>::with_children(NUMBERS).unwrap());
        tally.extend(Arc::clone(&memory));
        memory[7].0.store(u64::MAX, Ordering::Relaxed);
        let other = Arc::new(Shared::<Count>::with_children(NUMBERS).unwrap());
        tally.extend(Arc::clone(&other));
        other[7].0.store(2, Ordering::Relaxed);
        other[3].0.store(5, Ordering::Relaxed);
        let expected = [(3, 5), (7, u64::MAX)];
        assert_eq!(tally.counts(), expected);
        tally.tidy();
        drop(memory);
        tally.tidy();
        assert_eq!(tally.memory().in_use.len(), 1);
        assert_eq!(tally.counts(), expected);
    }
}
