//! Handing calls over through shared memory: one slot for each thread of a guest.
//!
//! A slot has two cache lines. The first alternates between both sides: the guest writes the call and then `turn`; the
//! supervisor writes the answer and then `turn`. The second changes seldom: the sleeping sides, and the guest's
//! spinning time. The guest can write all of it at any time. The supervisor reads each field of a request once, trusts
//! no information about the sender, and keeps no state here that it relies on.

use std::hint;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;

use crate::patched::pace::Pace;
use crate::sys::shared::Atomic;
use crate::sys::{futex, stub};

/// The values of `turn`: the guest's, the supervisor's, and the bit that is flipped in both when the slot is closed.
const ASKED: u32 = 1;
const ANSWERED: u32 = 2;
const CLOSED: u32 = 1 << 31;

/// The most bytes of its memory that a guest copies at once.
pub(crate) const COPY_BYTES: usize = 32;

/// The slot of one thread. [`stub`](crate::sys::stub) has the offsets.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Slot {
    turn: AtomicU32,
    /// The call's number; then the meaning of the answer.
    word: AtomicU32,
    /// The low half of the address where the guest continues.
    site: AtomicU32,
    _padding: AtomicU32,
    /// The arguments; then the answer, in the first, or an address, a count of bytes, and the bytes.
    values: [AtomicU64; 6],
    guest_sleeps: AtomicU32,
    supervisor_sleeps: AtomicU32,
    /// Rounds that the guest spins before it yields or sleeps.
    spins: AtomicU32,
    /// The number of the guest's yields before it sleeps.
    yields: AtomicU32,
    /// The key of its thread: keys are unique, and 0 means that the slot is unused.
    key: AtomicU64,
}

/// The first bytes of a slot, up to an answer.
pub(crate) type RequestBytes = [u8; 24];

// SAFETY: atomic numbers only.
#[expect(unsafe_code, reason = "a promise about the fields above")]
unsafe impl Atomic for Slot {}

/// A call as the guest has written it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) nr: u32,
    /// The low half of the address where the guest continues.
    pub(crate) site: u32,
    pub(crate) args: [u64; 6],
}

/// An answer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The call returns this value.
    Value(i64),
    /// The guest makes the call, and the kernel decides.
    ByKernel,
}

impl Slot {
    /// Prepares the slot for a new thread.
    pub(crate) fn reset(&self, key: u64, pace: &Pace) {
        self.key.store(key, Ordering::SeqCst);
        self.turn.store(ANSWERED, Ordering::SeqCst);
        self.guest_sleeps.store(0, Ordering::Relaxed);
        self.tell(pace);
    }

    /// Sets the guest's spinning and yielding.
    fn tell(&self, pace: &Pace) {
        let (spins, yields) = (pace.spins(), pace.yields());
        if self.spins.load(Ordering::Relaxed) != spins {
            self.spins.store(spins, Ordering::Relaxed);
        }
        if self.yields.load(Ordering::Relaxed) != yields {
            self.yields.store(yields, Ordering::Relaxed);
        }
    }

    /// The initial contents of a forked process's slot in place of this one. They hold the answer that its parent has
    /// got, which the child may be about to read where a signal handler has forked; otherwise they make the guest make
    /// its call itself. The slot has no key, so a guest that is about to hand a call over makes its call itself, too.
    pub(crate) fn of_forked(&self) -> RequestBytes {
        let is_answered = self.turn.load(Ordering::Acquire) == ANSWERED
            && self.word.load(Ordering::Relaxed) == stub::ANSWER_VALUE;
        let (word, value) = match is_answered {
            true => (stub::ANSWER_VALUE, self.values[0].load(Ordering::Relaxed)),
            false => (stub::ANSWER_BY_KERNEL, 0),
        };
        let mut bytes = RequestBytes::default();
        bytes[..4].copy_from_slice(&ANSWERED.to_le_bytes());
        bytes[4..8].copy_from_slice(&word.to_le_bytes());
        bytes[16..].copy_from_slice(&value.to_le_bytes());
        bytes
    }

    /// Waits for a request; `None` once the slot is closed.
    pub(crate) fn receive(&self, pace: &mut Pace, is_closed: &AtomicBool) -> Option<Request> {
        self.await_guest(pace, is_closed).then(|| Request {
            nr: self.word.load(Ordering::Relaxed),
            site: self.site.load(Ordering::Relaxed),
            args: self
                .values
                .each_ref()
                .map(|one| one.load(Ordering::Relaxed)),
        })
    }

    /// Waits for the guest; false once the slot is closed.
    fn await_guest(&self, pace: &mut Pace, is_closed: &AtomicBool) -> bool {
        let is_asked = || self.turn.load(Ordering::Acquire) == ASKED;
        let has_come = self.poll(pace, is_asked);
        pace.waited(has_come);
        while !is_asked() {
            self.supervisor_sleeps.store(1, Ordering::SeqCst);
            let turn = self.turn.load(Ordering::SeqCst);
            if is_closed.load(Ordering::SeqCst) {
                return false;
            }
            if turn != ASKED {
                futex::wait(&self.turn, turn);
            }
            self.supervisor_sleeps.store(0, Ordering::Relaxed);
        }
        !is_closed.load(Ordering::Relaxed)
    }

    /// Makes the guest, which waits for an answer, read its memory at an address: at most [`COPY_BYTES`]. Returns the
    /// number of bytes read, or `None` once the slot is closed.
    pub(crate) fn read(
        &self,
        address: u64,
        bytes: &mut [u8],
        pace: &mut Pace,
        is_closed: &AtomicBool,
    ) -> Option<usize> {
        let copied = self.copy(stub::ANSWER_READ, address, bytes.len(), pace, is_closed)?;
        let words = self.values[2..]
            .iter()
            .map(|one| one.load(Ordering::Relaxed));
        for (place, word) in bytes.chunks_mut(size_of::<u64>()).zip(words) {
            place.copy_from_slice(&word.to_le_bytes()[..place.len()]);
        }
        Some(copied)
    }

    /// Makes the guest write to its memory in the same way.
    pub(crate) fn write(
        &self,
        address: u64,
        bytes: &[u8],
        pace: &mut Pace,
        is_closed: &AtomicBool,
    ) -> Option<usize> {
        for (place, chunk) in self.values[2..].iter().zip(bytes.chunks(size_of::<u64>())) {
            let mut word = [0; size_of::<u64>()];
            word[..chunk.len()].copy_from_slice(chunk);
            place.store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        self.copy(stub::ANSWER_WRITE, address, bytes.len(), pace, is_closed)
    }

    fn copy(
        &self,
        what: u32,
        address: u64,
        len_bytes: usize,
        pace: &mut Pace,
        is_closed: &AtomicBool,
    ) -> Option<usize> {
        self.word.store(what, Ordering::Relaxed);
        self.values[0].store(address, Ordering::Relaxed);
        self.values[1].store(len_bytes as u64, Ordering::Relaxed);
        self.turn_over();
        let has_come = self.await_guest(pace, is_closed);
        let left = self.values[1].load(Ordering::Relaxed) as usize;
        has_come.then(|| len_bytes.saturating_sub(left))
    }

    /// Spins and yields as long as the pace permits; returns whether the event has come meanwhile.
    fn poll(&self, pace: &Pace, has_come: impl Fn() -> bool) -> bool {
        for _ in 0..pace.spins() {
            if has_come() {
                return true;
            }
            hint::spin_loop();
        }
        for _ in 0..pace.yields() {
            if has_come() {
                return true;
            }
            thread::yield_now();
        }
        has_come()
    }

    /// Answers the request. `of_guest` is the pace of the guest's waiting.
    pub(crate) fn answer(&self, answer: Reply, of_guest: &mut Pace) {
        let (word, value) = match answer {
            Reply::Value(value) => (stub::ANSWER_VALUE, value),
            Reply::ByKernel => (stub::ANSWER_BY_KERNEL, 0),
        };
        self.word.store(word, Ordering::Relaxed);
        self.values[0].store(value as u64, Ordering::Relaxed);
        let was_asleep = self.turn_over();
        of_guest.waited(!was_asleep);
        self.tell(of_guest);
    }

    /// Gives the turn to the guest; returns whether it was asleep.
    fn turn_over(&self) -> bool {
        // A guest that was interrupted in its sleep may be about to sleep again: this requires a total order.
        self.turn.swap(ANSWERED, Ordering::SeqCst);
        // This load may be late, when the guest has sent another request and is about to sleep: only the guest resets
        // its flag.
        let is_asleep = self.guest_sleeps.load(Ordering::SeqCst) != 0;
        if is_asleep {
            futex::wake(&self.turn);
        }
        is_asleep
    }

    /// The guest's side: hands a call over and waits for the answer. `wait` sleeps while the word has this value,
    /// `wake` wakes the sleeper, and `pass` yields.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn ask(
        &self,
        request: &Request,
        mut wait: impl FnMut(&AtomicU32, u32),
        wake: impl Fn(&AtomicU32),
        pass: impl Fn(),
    ) -> Reply {
        self.word.store(request.nr, Ordering::Relaxed);
        self.site.store(request.site, Ordering::Relaxed);
        for (place, arg) in self.values.iter().zip(request.args) {
            place.store(arg, Ordering::Relaxed);
        }
        self.turn.swap(ASKED, Ordering::SeqCst);
        if self.supervisor_sleeps.load(Ordering::SeqCst) != 0 {
            wake(&self.turn);
        }
        let is_asked = || self.turn.load(Ordering::Acquire) == ASKED;
        for _ in 0..self.spins.load(Ordering::Relaxed) {
            if !is_asked() {
                break;
            }
            hint::spin_loop();
        }
        for _ in 0..self.yields.load(Ordering::Relaxed) {
            if !is_asked() {
                break;
            }
            pass();
        }
        while is_asked() {
            self.guest_sleeps.store(1, Ordering::SeqCst);
            if self.turn.load(Ordering::SeqCst) == ASKED {
                wait(&self.turn, ASKED);
            }
        }
        if self.guest_sleeps.load(Ordering::Relaxed) != 0 {
            self.guest_sleeps.store(0, Ordering::Relaxed);
        }
        match self.word.load(Ordering::Relaxed) {
            stub::ANSWER_VALUE => Reply::Value(self.values[0].load(Ordering::Relaxed) as i64),
            _ => Reply::ByKernel,
        }
    }

    /// Wakes a sleeping guest, which checks for its answer.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn wake(&self, wake: impl Fn(&AtomicU32)) {
        wake(&self.turn);
    }

    /// Ends the supervisor's thread that waits here, and makes a waiting guest make its call itself.
    pub(crate) fn close(&self, is_closed: &AtomicBool) {
        is_closed.store(true, Ordering::SeqCst);
        self.key.store(0, Ordering::SeqCst);
        self.word.store(stub::ANSWER_BY_KERNEL, Ordering::Relaxed);
        // This changes any value that the guest has written, also for a side that is about to sleep on that value.
        self.turn.fetch_xor(CLOSED, Ordering::SeqCst);
        futex::wake(&self.turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spin::Spin;

    #[test]
    fn a_forked_process_has_its_parents_answer_or_makes_its_call() {
        let slot = Slot::default();
        let begin = |turn: u32, word: u32, value: u64| {
            let words = [u64::from(turn) | u64::from(word) << 32, 0, value];
            words.map(u64::to_le_bytes).as_flattened().to_vec()
        };
        let left = begin(ANSWERED, stub::ANSWER_BY_KERNEL, 0);
        assert_eq!(slot.of_forked().to_vec(), left);
        slot.values[0].store(7, Ordering::Relaxed);
        for (turn, word) in [
            (ASKED, stub::ANSWER_VALUE),
            (ANSWERED, stub::ANSWER_READ),
            (ANSWERED, stub::ANSWER_BY_KERNEL),
            (CLOSED | ANSWERED, stub::ANSWER_VALUE),
        ] {
            slot.turn.store(turn, Ordering::Relaxed);
            slot.word.store(word, Ordering::Relaxed);
            assert_eq!(slot.of_forked().to_vec(), left, "{turn} {word}");
        }
        slot.turn.store(ANSWERED, Ordering::Relaxed);
        slot.word.store(stub::ANSWER_VALUE, Ordering::Relaxed);
        let answered = begin(ANSWERED, stub::ANSWER_VALUE, 7);
        assert_eq!(slot.of_forked().to_vec(), answered);
    }

    /// A side may be stopped between handing over and its check whether the other sleeps. Until then the other may have
    /// got its answer, sent another request, and be about to sleep.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn who_wakes_does_not_take_back_that_the_other_sleeps() {
        let slot = Slot::default();
        let never = Pace::new(Spin::Never, false, false);
        slot.guest_sleeps.store(1, Ordering::Relaxed);
        slot.answer(Reply::Value(6), &mut never.clone());
        assert_eq!(slot.guest_sleeps.load(Ordering::Relaxed), 1);
        slot.supervisor_sleeps.store(1, Ordering::Relaxed);
        let (request, woken) = (
            Request {
                nr: 1,
                site: 2,
                args: [3; 6],
            },
            AtomicU32::new(0),
        );
        let answer = |_: &AtomicU32, _| slot.answer(Reply::Value(7), &mut never.clone());
        let wake = |_: &AtomicU32| woken.store(1, Ordering::Relaxed);
        assert_eq!(slot.ask(&request, answer, wake, || ()), Reply::Value(7));
        let words = [&slot.supervisor_sleeps, &slot.guest_sleeps, &woken];
        assert_eq!(words.map(|word| word.load(Ordering::Relaxed)), [1, 0, 1]);
    }

    /// A guest may have written any value before; a side that was about to sleep sees another value.
    #[test]
    fn closing_changes_the_turn_whatever_it_was() {
        for turn in [0, ASKED, ANSWERED, 3, CLOSED, CLOSED | ANSWERED, u32::MAX] {
            let (slot, is_closed) = (Slot::default(), AtomicBool::new(false));
            slot.turn.store(turn, Ordering::Relaxed);
            slot.close(&is_closed);
            assert_ne!(slot.turn.load(Ordering::Relaxed), turn);
            let mut pace = Pace::new(Spin::Never, false, false);
            assert_eq!(slot.receive(&mut pace, &is_closed), None);
        }
    }
}
