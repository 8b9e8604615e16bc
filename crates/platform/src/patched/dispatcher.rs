//! The thread of the supervisor that answers one thread of the guest through its slot.
//!
//! The contents of a slot are untrusted: the guest's filter is evaluated for each request, and only `notify` goes to
//! the supervisor. A forwarded call is decided again by the kernel when the guest makes it: a *permit* shows the tracer
//! that it has been decided, and lets it pass once.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tamis_abi::{Action, ActionKind, Arch, SeccompData, errno};
use tamis_kernel::spawn::Signaller;
use tamis_kernel::{Errno, memory};
use tamis_vm::Evaluator;

use super::PatchSettings;
use super::area;
use super::pace::Pace;
use super::permits::{Permit, Permits};
use super::slot::{COPY_BYTES, Reply, Request, Slot};
use crate::error::{PlatformError, Unsupported};
use crate::remote::Remote;
use crate::supervisor::{Answer, Supervisor};
use crate::sys::shared::Shared;
use crate::sys::stub;
use crate::task::{Space, Task, TaskId};

/// The call numbers that are counted.
const COUNTED: usize = stub::ERRORS;
/// The number of forwarded calls until calls of a number no longer go through slots, unless more were answered.
const FORWARDS: u32 = 16;

/// The state that all serving threads share.
pub(crate) struct Dispatcher<'a> {
    pub(crate) supervisor: &'a dyn Supervisor,
    pub(crate) evaluator: &'a Evaluator,
    pub(super) settings: PatchSettings,
    pub(crate) signaller: &'a Signaller,
    pub(super) permits: Permits,
    failure: Mutex<Option<PlatformError>>,
    pub(crate) counts: Box<[Counts]>,
    /// The signal handler in the guest, if calls come from one.
    handler: Option<Handler>,
    /// Once true, sites are rolled back and no site is patched.
    unpatch: Option<&'a AtomicBool>,
}

/// The treatment of forwarded calls by a signal handler in the guest: it sets signal masks in its own way. The kernel
/// notifies the calls that it makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handler {
    /// Whether it carries out a call without making it.
    pub(crate) is_emulated: fn(&SeccompData) -> bool,
    /// Whether it may do so with calls of a number.
    pub(crate) may_emulate: fn(u32) -> bool,
    /// The arguments of the guest's call for a call of the handler, given the arguments that it may have had.
    pub(crate) args_of: fn(&SeccompData, &[u64; 6]) -> [u64; 6],
}

/// The number of answers of each kind to calls of one number.
#[derive(Default)]
pub(crate) struct Counts {
    values: AtomicU32,
    forwards: AtomicU32,
}

/// The slots of a guest's process.
#[derive(Debug)]
pub(crate) struct Slots {
    pub(crate) memory: Arc<Shared<Slot>>,
    pub(crate) free: Mutex<Vec<usize>>,
}

/// Addresses in a guest's memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct GuestAddresses {
    /// The `syscall` of each trampoline's site, by the low half of the address where the trampoline continues.
    pub(crate) sites: BTreeMap<u32, u64>,
    pub(crate) areas: Vec<u64>,
}

/// One thread's slot.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(crate) tid: i32,
    pub(crate) slots: Arc<Slots>,
    pub(crate) index: usize,
    pub(crate) is_closed: Arc<AtomicBool>,
    pub(crate) known: Arc<Mutex<GuestAddresses>>,
    /// Whether the guest copies memory for the supervisor while it waits.
    pub(crate) copies: bool,
    /// The address of the guest's table of numbers, if it has only one.
    pub(crate) numbers: Option<u64>,
}

impl Channel {
    pub(crate) fn slot(&self) -> &Slot {
        &self.slots.memory[self.index]
    }

    pub(crate) fn close(&self) {
        self.slot().close(&self.is_closed);
    }
}

impl<'a> Dispatcher<'a> {
    pub(crate) fn new(
        supervisor: &'a dyn Supervisor,
        evaluator: &'a Evaluator,
        settings: PatchSettings,
        signaller: &'a Signaller,
        unpatch: Option<&'a AtomicBool>,
    ) -> Dispatcher<'a> {
        Dispatcher {
            supervisor,
            evaluator,
            settings,
            signaller,
            unpatch,
            handler: None,
            permits: Permits::default(),
            failure: Mutex::default(),
            counts: (0..COUNTED).map(|_| Counts::default()).collect(),
        }
    }

    /// The failure that has ended the guest, once.
    pub(crate) fn failure(&self) -> Option<PlatformError> {
        lock(&self.failure).take()
    }

    /// The initial pace of both sides.
    pub(crate) const fn pace(&self) -> &Pace {
        self.settings.pace()
    }

    /// Sets the guest's signal handler.
    pub(crate) const fn of_handler(mut self, handler: Handler) -> Dispatcher<'a> {
        self.handler = Some(handler);
        self
    }

    pub(crate) fn is_unpatched(&self) -> bool {
        let unpatch = self.unpatch;
        unpatch.is_some_and(|unpatch| unpatch.load(Ordering::Relaxed))
    }

    /// Answers a thread until its channel is closed.
    pub(crate) fn serve(&self, channel: &Channel) {
        let _guard = KillOnPanic(self.signaller);
        let (mut own, mut of_guest) = (self.settings.pace, self.settings.pace);
        let mut last = (0, 0);
        while let Some(request) = channel.slot().receive(&mut own, &channel.is_closed) {
            if last.0 != request.site {
                let known = lock(&channel.known);
                last = (
                    request.site,
                    known.sites.get(&request.site).copied().unwrap_or(0),
                );
            }
            if let Some(answer) = self.decide(channel, &request, last.1, &mut own) {
                channel.slot().answer(answer, &mut of_guest);
            }
        }
        lock(&channel.slots.free).push(channel.index);
    }

    /// The answer to a request; `None` if the guest is being killed.
    fn decide(
        &self,
        channel: &Channel,
        request: &Request,
        ip: u64,
        pace: &mut Pace,
    ) -> Option<Reply> {
        let call = SeccompData {
            nr: request.nr,
            arch: Arch::X86_64.audit(),
            ip,
            args: request.args,
        };
        let action = Action::from_ret(self.evaluator.run(&call));
        match action.kind {
            // If the site is to be rolled back, its tracer decides.
            ActionKind::Notify if !self.is_unpatched() => {}
            ActionKind::Errno => {
                let error = i64::from(action.data.min(errno::MAX));
                return Some(Reply::Value(-error));
            }
            _ => return Some(Reply::ByKernel),
        }
        let mut task = SlotTask {
            space: SlotMemory {
                channel,
                pace: Cell::new(*pace),
                remote: Remote { tid: channel.tid },
            },
        };
        let mut answer = self.supervisor.call(&mut task, &call);
        while let Answer::Later(time, next) = answer {
            thread::sleep(time);
            answer = *next;
        }
        *pace = task.space.pace.get();
        let (replacement, descriptor) = match answer {
            Answer::Return(value) => return Some(self.value(call.nr, value)),
            Answer::Errno(errno) => return Some(self.value(call.nr, -i64::from(errno))),
            // The handler emulates the call without another request.
            Answer::Forward if self.handler.is_some_and(|one| (one.is_emulated)(&call)) => {
                return Some(Reply::ByKernel);
            }
            Answer::Forward => (None, None),
            Answer::ForwardWith(_) if self.handler.is_some() => {
                return self.refuse("replacing a call by another");
            }
            Answer::ForwardWith(new) => (Some(new), None),
            Answer::Descriptor(fd) if self.handler.is_some() => (None, Some(fd)),
            Answer::Descriptor(_) => return self.refuse("answering with a descriptor"),
            Answer::Kill | Answer::Later(..) => {
                let _ = self.signaller.send(libc::SIGKILL);
                return None;
            }
        };
        self.count_forward(channel, call.nr);
        let permit = Permit {
            arch: call.arch,
            nr: call.nr,
            args: call.args,
            replacement,
            descriptor,
        };
        self.permits.grant(channel.tid, permit);
        Some(Reply::ByKernel)
    }

    /// Fails for an answer that isn't supported.
    fn refuse(&self, what: &'static str) -> Option<Reply> {
        let failure = PlatformError::Unsupported(Unsupported::new(what));
        lock(&self.failure).get_or_insert(failure);
        let _ = self.signaller.send(libc::SIGKILL);
        None
    }

    fn value(&self, nr: u32, value: i64) -> Reply {
        if let Some(counts) = self.counts.get(nr as usize) {
            // Concurrent increments by another thread may be lost; an atomic addition takes longer.
            let values = &counts.values;
            values.store(
                values.load(Ordering::Relaxed).wrapping_add(1),
                Ordering::Relaxed,
            );
        }
        Reply::Value(value)
    }

    /// Stops using slots for calls that are mostly forwarded, which take two round trips instead of one.
    fn count_forward(&self, channel: &Channel, nr: u32) {
        let Some(counts) = self.counts.get(nr as usize) else {
            return;
        };
        // Calls that the handler emulates can't be decided anywhere else.
        if self
            .handler
            .is_some_and(|handler| (handler.may_emulate)(nr))
        {
            return;
        }
        let forwards = counts.forwards.fetch_add(1, Ordering::Relaxed) + 1;
        if forwards >= FORWARDS && forwards > counts.values.load(Ordering::Relaxed) {
            let known = lock(&channel.known);
            let of_areas = known.areas.iter().map(|area| area + area::NUMBERS as u64);
            for table in of_areas.chain(channel.numbers) {
                // If writing fails, the guest continues to use the slot.
                let place = table + u64::from(nr);
                let _ = memory::overwrite(channel.tid, place, &[stub::BY_KERNEL]);
            }
        }
    }

    /// Takes the permit for a call that has stopped in the kernel.
    pub(crate) fn take_permit(&self, tid: i32, call: &SeccompData) -> Option<Permit> {
        self.permits.take(tid, |permit| {
            let args = match self.handler {
                Some(handler) => (handler.args_of)(call, &permit.args),
                None => call.args,
            };
            (permit.arch, permit.nr, permit.args) == (call.arch, call.nr, args)
        })
    }
}

/// Locks a mutex even if it is poisoned: the protected data is consistent after each statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills the guest, which would wait for the answer of a panicked supervisor for ever.
struct KillOnPanic<'a>(&'a Signaller);

impl Drop for KillOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self.0.send(libc::SIGKILL);
        }
    }
}

/// A task that waits for an answer in its slot.
struct SlotTask<'a> {
    space: SlotMemory<'a>,
}

impl Task for SlotTask<'_> {
    fn id(&self) -> TaskId {
        TaskId(self.space.channel.tid)
    }

    fn space(&self) -> &dyn Space {
        &self.space
    }
}

/// The memory of a task that waits in its slot. The task copies a few bytes itself, which takes a tenth of the time of
/// a system call of this process, if it runs on another CPU.
struct SlotMemory<'a> {
    channel: &'a Channel,
    pace: Cell<Pace>,
    remote: Remote,
}

impl SlotMemory<'_> {
    /// Copies by the task itself; `None` if that isn't the faster way.
    fn copy(&self, len_bytes: usize, copy: impl FnOnce(&mut Pace) -> Option<usize>) -> CopyResult {
        let mut pace = self.pace.get();
        if !self.channel.copies || len_bytes == 0 || len_bytes > COPY_BYTES || pace.spins() == 0 {
            return None;
        }
        let copied = copy(&mut pace);
        self.pace.set(pace);
        Some(match copied {
            None => Err(Errno(libc::ESRCH)),
            Some(0) => Err(Errno(libc::EFAULT)),
            Some(len_bytes) => Ok(len_bytes),
        })
    }
}

/// The result of a copy, if it was made.
type CopyResult = Option<Result<usize, Errno>>;

impl Space for SlotMemory<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let slot = self.channel.slot();
        let copied = self.copy(buffer.len(), |pace| {
            slot.read(address, buffer, pace, &self.channel.is_closed)
        });
        copied.unwrap_or_else(|| self.remote.read(address, buffer))
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<usize, Errno> {
        let slot = self.channel.slot();
        let copied = self.copy(bytes.len(), |pace| {
            slot.write(address, bytes, pace, &self.channel.is_closed)
        });
        copied.unwrap_or_else(|| self.remote.write(address, bytes))
    }
}
