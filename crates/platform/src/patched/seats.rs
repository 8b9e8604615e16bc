//! Which thread of the guest has which slot, and what of its calls has been decided already.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::thread;

use tamis_abi::{Action, ActionKind, Arch, SeccompData};
use tamis_kernel::Errno;
use tamis_kernel::listener::Notification;
use tamis_kernel::tracee::TraceError;

use tamis_vm::Evaluator;

use super::serve::{Desk, Handler, Seat, Slots, lock};
use crate::attached::heirs::{Heir, Heirs};
use crate::supervisor::Answer;
use crate::sys::stub;

/// The numbers of x86-64, which other machines may lack.
const SYS_FORK: i64 = 57;
const SYS_VFORK: i64 = 58;

/// What answers a guest that asks by a signal handler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answers<'a> {
    pub(crate) evaluator: &'a Evaluator,
    pub(crate) slots: &'a Arc<Slots>,
    /// Whether the supervisor is told of a call before it is made, since its caller might outlive the supervisor.
    pub(crate) may_leave: fn(&SeccompData) -> bool,
    /// The handler.
    pub(crate) handler: Handler,
    /// Where the guest has its table of numbers.
    pub(crate) numbers: u64,
}

/// The seats of a guest. Dropping it ends the threads that serve them.
pub(crate) struct Seats<'a> {
    desk: &'a Desk<'a>,
    slots: Arc<Slots>,
    /// Starts a thread that serves a seat; whether it could.
    start: Box<dyn Fn(Seat) -> bool + Sync + 'a>,
    may_leave: fn(&SeccompData) -> bool,
    /// Where the guest has its table of numbers.
    numbers: u64,
    /// Starts a thread that traces; whether it could.
    trace: Box<dyn Fn(Heir) -> bool + Sync + 'a>,
    heirs: &'a Heirs,
    /// The only process with the memory of the slots.
    pid: i32,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    seats: HashMap<i32, Seat>,
    keys: u64,
}

impl<'a> Seats<'a> {
    pub(crate) fn new(
        desk: &'a Desk<'a>,
        answers: &Answers<'a>,
        pid: i32,
        start: Box<dyn Fn(Seat) -> bool + Sync + 'a>,
        trace: Box<dyn Fn(Heir) -> bool + Sync + 'a>,
        heirs: &'a Heirs,
    ) -> Seats<'a> {
        Seats {
            desk,
            slots: Arc::clone(answers.slots),
            may_leave: answers.may_leave,
            numbers: answers.numbers,
            start,
            trace,
            heirs,
            pid,
            taken: Mutex::default(),
        }
    }

    /// A call is about to be made: who might outlive the supervisor by it is traced before.
    ///
    /// # Errors
    /// It can't be: its call must not be made.
    pub(crate) fn forward(&self, notification: &Notification) -> Result<(), TraceError> {
        let call = &notification.call;
        if !(self.may_leave)(call) {
            return Ok(());
        }
        let nr = i64::from(call.nr);
        let is_parent = call.arch == Arch::X86_64.audit()
            && [libc::SYS_clone, SYS_FORK, SYS_VFORK].contains(&nr);
        let added = self.heirs.add(notification.thread, is_parent, &*self.trace);
        match added {
            // It has been killed.
            Err(error) if error.errno == Errno(libc::ESRCH) => Ok(()),
            Err(_) if has_ended(notification.thread) => Ok(()),
            added => added,
        }
    }

    /// The answer to a call that only this knows of, or that has been decided.
    pub(crate) fn answer(&self, notification: &Notification) -> Option<Answer> {
        let call = &notification.call;
        if call.nr == stub::HELLO && call.arch == Arch::X86_64.audit() {
            let index = self.hello(notification.thread);
            return Some(Answer::Return(index.map_or(-1, |index| index as i64)));
        }
        let said = Action::from_ret(self.desk.evaluator.run(call)).kind;
        if (self.may_leave)(call) && said != ActionKind::Notify {
            return Some(Answer::Forward);
        }
        let order = self.desk.take_order(notification.thread, call)?;
        Some(match (order.replacement, order.descriptor) {
            (_, Some(fd)) => Answer::Descriptor(fd),
            (Some(new), None) => Answer::ForwardWith(new),
            (None, None) => Answer::Forward,
        })
    }

    /// A thread asks for a slot.
    fn hello(&self, tid: i32) -> Option<usize> {
        if !self.has(tid) {
            return None;
        }
        let mut taken = lock(&self.taken);
        if let Some(seat) = taken.seats.get(&tid) {
            return Some(seat.index);
        }
        let index = self.free().or_else(|| self.sweep(&mut taken))?;
        // Those of a former thread with this number.
        self.desk.orders.left(tid);
        let seat = Seat {
            tid,
            slots: Arc::clone(&self.slots),
            index,
            is_closed: Arc::default(),
            known: Arc::default(),
            copies: false,
            numbers: Some(self.numbers),
        };
        taken.keys += 1;
        seat.slot().reset(taken.keys, self.desk.pace());
        if !(self.start)(seat.clone()) {
            lock(&self.slots.free).push(index);
            return None;
        }
        taken.seats.insert(tid, seat);
        Some(index)
    }

    /// The index of a slot that is in no use.
    fn free(&self) -> Option<usize> {
        lock(&self.slots.free).pop()
    }

    /// Closes the seats of threads that have ended; the index of a slot of theirs.
    fn sweep(&self, taken: &mut Taken) -> Option<usize> {
        /// How often the threads that serve them get a chance to end.
        const TIMES: u32 = 1000;
        let before = taken.seats.len();
        taken.seats.retain(|tid, seat| {
            let is_there = self.has(*tid);
            if !is_there {
                seat.close();
                self.desk.orders.left(*tid);
            }
            is_there
        });
        let is_any_closed = taken.seats.len() < before;
        (0..if is_any_closed { TIMES } else { 0 }).find_map(|_| {
            thread::yield_now();
            self.free()
        })
    }

    /// Whether a thread is one of the process.
    fn has(&self, tid: i32) -> bool {
        fs::exists(format!("/proc/{}/task/{tid}", self.pid)).unwrap_or(false)
    }
}

impl Drop for Seats<'_> {
    fn drop(&mut self) {
        for seat in lock(&self.taken).seats.values() {
            seat.close();
        }
    }
}

/// Whether a task has ended, which can't be traced any more then even if nobody has waited for it.
fn has_ended(tid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_none_or(|state| state.starts_with(['Z', 'X']))
}
