//! The slots of a guest's threads, and decisions that its calls already have.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::thread;

use tamis_abi::{Action, ActionKind, Arch, SeccompData};
use tamis_kernel::Errno;
use tamis_kernel::listener::Notification;
use tamis_kernel::tracee::TraceError;

use tamis_vm::Evaluator;

use super::dispatcher::{Channel, Dispatcher, Handler, Slots, lock};
use super::orphans::{OrphanTracer, TraceRequest};
use crate::supervisor::Answer;
use crate::sys::stub;

/// The numbers of x86-64, which other architectures may lack.
const SYS_FORK: i64 = 57;
const SYS_VFORK: i64 = 58;

/// The answers to a guest whose signal handler hands calls over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StubInterface<'a> {
    pub(crate) evaluator: &'a Evaluator,
    pub(crate) slots: &'a Arc<Slots>,
    /// Whether the supervisor is notified before a call is made, since its caller might outlive the supervisor.
    pub(crate) may_leave: fn(&SeccompData) -> bool,
    /// The handler.
    pub(crate) handler: Handler,
    /// The address of the guest's table of numbers.
    pub(crate) numbers: u64,
}

/// The channels of a guest. Dropping it ends the threads that serve them.
pub(crate) struct Channels<'a> {
    dispatcher: &'a Dispatcher<'a>,
    slots: Arc<Slots>,
    /// Starts a thread that serves a channel; returns whether it could.
    start: Box<dyn Fn(Channel) -> bool + Sync + 'a>,
    may_leave: fn(&SeccompData) -> bool,
    /// The address of the guest's table of numbers.
    numbers: u64,
    /// Starts a thread that traces; returns whether it could.
    trace: Box<dyn Fn(TraceRequest) -> bool + Sync + 'a>,
    orphans: &'a OrphanTracer,
    /// The only process with the memory of the slots.
    pid: i32,
    registry: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    channels: HashMap<i32, Channel>,
    keys: u64,
}

impl<'a> Channels<'a> {
    pub(crate) fn new(
        dispatcher: &'a Dispatcher<'a>,
        answers: &StubInterface<'a>,
        pid: i32,
        start: Box<dyn Fn(Channel) -> bool + Sync + 'a>,
        trace: Box<dyn Fn(TraceRequest) -> bool + Sync + 'a>,
        orphans: &'a OrphanTracer,
    ) -> Channels<'a> {
        Channels {
            dispatcher,
            slots: Arc::clone(answers.slots),
            may_leave: answers.may_leave,
            numbers: answers.numbers,
            start,
            trace,
            orphans,
            pid,
            registry: Mutex::default(),
        }
    }

    /// Traces a task before a call that might let it outlive the supervisor.
    ///
    /// # Errors
    /// The task can't be traced: its call must not be made.
    pub(crate) fn forward(&self, notification: &Notification) -> Result<(), TraceError> {
        let call = &notification.call;
        if !(self.may_leave)(call) {
            return Ok(());
        }
        let nr = i64::from(call.nr);
        let is_parent = call.arch == Arch::X86_64.audit()
            && [libc::SYS_clone, SYS_FORK, SYS_VFORK].contains(&nr);
        let added = self
            .orphans
            .add(notification.thread, is_parent, &*self.trace);
        match added {
            // The task has been killed.
            Err(error) if error.errno == Errno(libc::ESRCH) => Ok(()),
            Err(_) if has_ended(notification.thread) => Ok(()),
            added => added,
        }
    }

    /// The answer to the call that registers a thread, or to a call that has been decided.
    pub(crate) fn answer(&self, notification: &Notification) -> Option<Answer> {
        let call = &notification.call;
        if call.nr == stub::HELLO && call.arch == Arch::X86_64.audit() {
            let index = self.hello(notification.thread);
            return Some(Answer::Return(index.map_or(-1, |index| index as i64)));
        }
        let said = Action::from_ret(self.dispatcher.evaluator.run(call)).kind;
        if (self.may_leave)(call) && said != ActionKind::Notify {
            return Some(Answer::Forward);
        }
        let permit = self.dispatcher.take_permit(notification.thread, call)?;
        Some(match (permit.replacement, permit.descriptor) {
            (_, Some(fd)) => Answer::Descriptor(fd),
            (Some(new), None) => Answer::ForwardWith(new),
            (None, None) => Answer::Forward,
        })
    }

    /// Registers a thread and assigns a slot.
    fn hello(&self, tid: i32) -> Option<usize> {
        if !self.has(tid) {
            return None;
        }
        let mut registry = lock(&self.registry);
        if let Some(channel) = registry.channels.get(&tid) {
            return Some(channel.index);
        }
        let index = self.free().or_else(|| self.sweep(&mut registry))?;
        // Removes permits of a former thread with this number.
        self.dispatcher.permits.left(tid);
        let channel = Channel {
            tid,
            slots: Arc::clone(&self.slots),
            index,
            is_closed: Arc::default(),
            known: Arc::default(),
            copies: false,
            numbers: Some(self.numbers),
        };
        registry.keys += 1;
        channel.slot().reset(registry.keys, self.dispatcher.pace());
        if !(self.start)(channel.clone()) {
            lock(&self.slots.free).push(index);
            return None;
        }
        registry.channels.insert(tid, channel);
        Some(index)
    }

    /// The index of an unused slot.
    fn free(&self) -> Option<usize> {
        lock(&self.slots.free).pop()
    }

    /// Closes the channels of threads that have ended; returns the index of one of their slots.
    fn sweep(&self, registry: &mut Registry) -> Option<usize> {
        /// The number of chances that the serving threads get to end.
        const TIMES: u32 = 1000;
        let before = registry.channels.len();
        registry.channels.retain(|tid, channel| {
            let is_there = self.has(*tid);
            if !is_there {
                channel.close();
                self.dispatcher.permits.left(*tid);
            }
            is_there
        });
        let is_any_closed = registry.channels.len() < before;
        (0..if is_any_closed { TIMES } else { 0 }).find_map(|_| {
            thread::yield_now();
            self.free()
        })
    }

    /// Whether the process has this thread.
    fn has(&self, tid: i32) -> bool {
        fs::exists(format!("/proc/{}/task/{tid}", self.pid)).unwrap_or(false)
    }
}

impl Drop for Channels<'_> {
    fn drop(&mut self) {
        for channel in lock(&self.registry).channels.values() {
            channel.close();
        }
    }
}

/// Whether a task has ended: a zombie can't be traced.
fn has_ended(tid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_none_or(|state| state.starts_with(['Z', 'X']))
}
