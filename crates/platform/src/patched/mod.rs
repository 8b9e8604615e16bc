//! Guests whose call sites are patched: calls reach the supervisor through shared memory.
//!
//! The guest is traced, and a filter stops it at the calls that need the supervisor: that is the boundary, which stays
//! in place. If a site's calls are answered by values, the site is patched: its `syscall` and its neighbours are
//! replaced by a jump to a trampoline, which hands the call over in a [slot](slot) and waits for the answer without the
//! kernel. Forwarded calls are made by the trampoline's own `syscall`, where the filter stops. So a guest that jumps
//! into these mappings, or writes there, can only make calls that its filter decides.
//!
//! | module | function |
//! |---|---|
//! | `sites` | selects sites that are due, and patches them |
//! | `site` | selects the instructions that are replaced |
//! | `trampoline` | the code of one site |
//! | `area` | the memory for trampolines and tables in the guest |
//! | `inject` | system calls that are injected into a stopped task |
//! | `space` | the mappings of one address space |
//! | `spaces` | the address space of each task |
//! | `slot` | handing a call over |
//! | `stopper` | stops the tasks of a guest |
//! | `orphans` | tracing of tasks that would outlive a guest that isn't traced itself |
//! | `backoff` | waiting for a moment to change memory |
//! | `pace` | the spinning of a side that waits |
//! | `dispatcher` | the thread that answers a slot |
//! | `counted` | sites whose calls are executed and only counted |
//! | `tally` | those counts |
//!
//! While a site is patched, all threads that share its memory are stopped. A thread between the replaced instructions
//! continues in the trampoline. A site stays unpatched if an address between these instructions is on the stack of a
//! thread, because a signal handler will return there, if a thread can't be stopped at once, and while another process
//! shares the memory.

mod area;
mod backoff;
pub(crate) mod channels;
pub(crate) mod counted;
pub(crate) mod dispatcher;
pub(crate) mod inject;
pub(crate) mod orphans;
mod pace;
mod permits;
mod site;
mod sites;
pub(crate) mod slot;
mod space;
mod spaces;
pub(crate) mod stopper;
mod tally;
mod trampoline;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tamis_abi::SeccompData;
use tamis_bpf::Program;
use tamis_kernel::memory;
use tamis_kernel::tracee::{Stop, Stopped, TraceError};
use tamis_vm::Evaluator;

use crate::offsets::reads_ip;
use crate::spin::Spin;
use crate::sys::{machine, stub};
pub(crate) use area::{Numbers, Tables};
use backoff::Backoff;
use dispatcher::{Channel, Dispatcher, lock};
use inject::{Injection, RIP, Refusal, Words};
pub(crate) use pace::Pace;
use sites::{Plan, Sites};
use space::Space;
use spaces::{Departure, Inheritance, Spaces};
use stopper::{TaskStopper, unless_ended};
pub use tally::Tally;

/// The patching of a guest, without the answers.
pub(crate) struct Patching<'a> {
    dispatcher: &'a Dispatcher<'a>,
    /// Starts a thread that serves a channel; returns whether it could.
    start: Box<dyn Fn(Channel) -> bool + 'a>,
    spaces: Spaces<Space>,
    /// The channels of each thread, with their entries in its table of threads. A thread has several if signal handlers
    /// have interrupted its calls and changed its FS base.
    channels: HashMap<i32, Vec<(usize, Channel)>>,
    /// The number of keys given to slots.
    keys: u64,
    /// The creators of tasks that haven't run yet.
    creators: HashMap<i32, i32>,
    /// Forked processes that haven't run yet.
    forked: HashSet<i32>,
    /// The sites whose calls were answered.
    sites: Sites,
    /// The waits of filters for threads.
    backoff: Backoff,
    /// The threads that a filter waits for, by the thread that installs it.
    inside: HashMap<i32, Vec<i32>>,
    /// The number of filters of a task that has installed none itself, if the kernel reports it.
    filters: Option<u32>,
}

/// The settings for handing over a guest's calls.
#[derive(Debug)]
pub(crate) struct PatchSettings {
    numbers: Numbers,
    /// The initial pace of both sides.
    pace: Pace,
}

/// Whether the kernel reports which tasks share memory; without that no site is patched.
pub(crate) fn knows_memory() -> bool {
    let own = std::process::id() as i32;
    memory::is_shared(own, own) == Ok(true)
}

/// The settings for handing over the calls of a guest with this filter, if possible: the filter must allow the calls by
/// which the stub waits, and mustn't depend on addresses, which are those of trampolines.
pub(crate) fn settings(
    program: &Program,
    evaluator: &Evaluator,
    spin: Spin,
    shares_cpu: impl FnOnce() -> bool,
) -> Option<PatchSettings> {
    let numbers = Numbers::new(program, evaluator);
    if reads_ip(program)
        || !knows_memory()
        || !machine::has_fs_base()
        || !numbers.allows(libc::SYS_futex)
    {
        return None;
    }
    let pace = Pace::new(spin, shares_cpu(), numbers.allows(libc::SYS_sched_yield));
    Some(PatchSettings { numbers, pace })
}

/// The same for guests whose calls raise a signal: their stubs may wait whatever the filter.
pub(crate) fn signal_settings(
    program: &Program,
    evaluator: &Evaluator,
    spin: Spin,
    shares_cpu: bool,
) -> PatchSettings {
    PatchSettings {
        numbers: Numbers::new(program, evaluator),
        pace: Pace::new(spin, shares_cpu, true),
    }
}

impl PatchSettings {
    /// The initial pace of both sides.
    pub(crate) const fn pace(&self) -> &Pace {
        &self.pace
    }
}

impl<'a> Patching<'a> {
    /// The patching of a guest with this number of filters.
    pub(crate) fn new(
        dispatcher: &'a Dispatcher<'a>,
        filters: u32,
        start: Box<dyn Fn(Channel) -> bool + 'a>,
    ) -> Patching<'a> {
        Patching {
            dispatcher,
            start,
            spaces: Spaces::default(),
            channels: HashMap::new(),
            keys: 0,
            creators: HashMap::new(),
            forked: HashSet::new(),
            sites: Sites::default(),
            backoff: Backoff::default(),
            inside: HashMap::new(),
            filters: machine::filters_with(filters),
        }
    }

    pub(crate) const fn dispatcher(&self) -> &'a Dispatcher<'a> {
        self.dispatcher
    }

    /// Registers a task by its FS base; the result of its call.
    pub(crate) fn hello(&mut self, tid: i32, known_by: u64) -> i64 {
        let opened = self.channel(tid, known_by);
        opened.map_or(-i64::from(libc::ENOSYS), |()| 0)
    }

    fn channel(&mut self, tid: i32, known_by: u64) -> Option<()> {
        self.keys += 1;
        let key = self.keys;
        let space = self.spaces.of_mut(tid)?;
        let entry = space.entry(tid, known_by)?;
        let taken = lock(&space.slots.free).pop();
        let slot = taken.and_then(|index| {
            let channel = Channel {
                tid,
                slots: Arc::clone(&space.slots),
                index,
                is_closed: Arc::default(),
                known: Arc::clone(&space.known),
                copies: true,
                numbers: None,
            };
            channel.slot().reset(key, &self.dispatcher.settings.pace);
            if !(self.start)(channel.clone()) {
                lock(&space.slots.free).push(index);
                return None;
            }
            let channels = self.channels.entry(tid).or_default();
            channels.retain(|(former, channel)| {
                let is_in_call = *former != entry && space.is_in_use(tid, *former);
                if !is_in_call {
                    channel.close();
                }
                is_in_call
            });
            channels.push((entry, channel));
            Some(space.slot_address(index))
        });
        // Without a slot, the thread's calls stop.
        space.write_entry(tid, entry, known_by, slot.unwrap_or(0), key)
    }

    /// Handles the creation of a task, which is stopped.
    pub(crate) fn created(&mut self, tid: i32, parent: Option<i32>) {
        let Some(parent) = parent else {
            return;
        };
        let channels = self.channels.values().flatten().map(|(_, channel)| channel);
        let forked = |space: &Space| space.forked(parent, channels);
        match self.spaces.created(tid, parent, forked) {
            Some(Inheritance::Same) => {
                self.creators.insert(tid, parent);
            }
            Some(Inheritance::Copy) => {
                self.forked.insert(tid);
            }
            None => {}
        }
    }

    /// Prepares a new task that is about to run. A forked process gets memory of its own; a thread with the FS base of
    /// an ended thread gets a slot of its own.
    pub(crate) fn arrived(
        &mut self,
        tracer: &mut dyn TaskStopper,
        stopped: &Stopped,
    ) -> Result<(), TraceError> {
        let tid = stopped.tracee().tid();
        if self.forked.remove(&tid) {
            return match self.separate(tracer, stopped) {
                Err(Refusal::Lost(error)) => Err(error),
                Ok(()) => Ok(()),
                // The process shares memory with its parent, so it must not use it.
                Err(Refusal::Refused) => {
                    self.put_back(tracer, tid)?;
                    self.left(tid);
                    Ok(())
                }
            };
        }
        let Some(creator) = self.creators.remove(&tid) else {
            return Ok(());
        };
        let (Some(space), Some(words)) = (self.spaces.of_mut(tid), Words::read(stopped)?) else {
            return Ok(());
        };
        // The former owner has ended, even if that hasn't been reported yet, unless it has created this task without an
        // FS base of its own.
        if let Some(owner) = space.owner(words.known_by())
            && ![tid, creator].contains(&owner)
        {
            space.forget(owner);
            self.close_channels(owner);
        }
        Ok(())
    }

    /// Makes slots for a forked process.
    fn separate(&mut self, tracer: &mut dyn TaskStopper, stopped: &Stopped) -> Result<(), Refusal> {
        let tid = stopped.tracee().tid();
        let space = self.spaces.of_mut(tid).ok_or(Refusal::Refused)?;
        let mut injection = Injection::begin_new(stopped, self.dispatcher.evaluator)?;
        let ip = injection.ip();
        let mut next = |tid| tracer.next_stop(tid);
        let separated = space.separate(tid, &mut injection, &mut next);
        for signal in injection.end(ip)? {
            let _ = machine::signal_thread(tid, signal);
        }
        separated
    }

    /// Whether a signal that a task is about to get is a fault of the stub while it copies memory for the supervisor:
    /// then the stub continues behind the copy.
    pub(crate) fn is_fault(&self, stopped: &Stopped, signal: i32) -> Result<bool, TraceError> {
        let tid = stopped.tracee().tid();
        let space = self.spaces.space(tid);
        let (libc::SIGSEGV | libc::SIGBUS, Some(space)) = (signal, space) else {
            return Ok(false);
        };
        let Some(mut words) = Words::read(stopped)? else {
            return Ok(false);
        };
        let (copy, next) = stub::copy();
        let is_copy = |area: &u64| words.0[RIP] == area + copy;
        let is_fault = stopped.signal_info()?.code > 0;
        let found = lock(&space.known).areas.iter().copied().find(is_copy);
        let (Some(area), true) = (found, is_fault) else {
            return Ok(false);
        };
        words.0[RIP] = area + next;
        words.set(stopped)?;
        Ok(true)
    }

    fn close_channels(&mut self, tid: i32) {
        for (_, channel) in self.channels.remove(&tid).unwrap_or_default() {
            channel.close();
        }
    }

    /// Handles a task that has ended, or has executed another program.
    pub(crate) fn left(&mut self, tid: i32) {
        self.close_channels(tid);
        self.creators.remove(&tid);
        self.forked.remove(&tid);
        self.inside.remove(&tid);
        self.backoff.end(tid);
        self.dispatcher.permits.left(tid);
        if let Departure::Others(space) = self.spaces.left(tid) {
            space.forget(tid);
        }
    }

    /// Handles a call that has been answered by a value; the task is stopped before it, with the answer in place.
    pub(crate) fn answered(
        &mut self,
        tracer: &mut dyn TaskStopper,
        stopped: &Stopped,
        call: &SeccompData,
    ) -> Result<(), TraceError> {
        let tid = stopped.tracee().tid();
        if self.dispatcher.is_unpatched() {
            return self.put_back(tracer, tid).map(|_| ());
        }
        if !self.sites.is_due(call) || self.is_awaited(tid) || self.is_confined(tid) {
            return Ok(());
        }
        let Some(plan) = self.sites.plan(tid, call) else {
            self.sites.refuse(call);
            return Ok(());
        };
        let Some(others) = tracer.stop_others(tid)? else {
            return Ok(());
        };
        let mut tids = others.iter().map(|one| one.tracee().tid());
        if tids.any(|other| self.is_confined(other)) {
            return Ok(());
        }
        match self.apply(tracer, stopped, &others, &plan) {
            Ok(()) => Ok(()),
            Err(Refusal::Refused) => {
                self.sites.refuse(call);
                Ok(())
            }
            Err(Refusal::Lost(error)) => Err(error),
        }
    }

    /// Whether a task that shares the memory of `tid` waits to install a filter: then no thread may enter trampolines
    /// any more.
    fn is_awaited(&self, tid: i32) -> bool {
        let mut waiting = self.backoff.tasks();
        waiting.any(|one| self.spaces.are_same(one, tid))
    }

    /// Whether a task has filters of its own, which may deny the stub's calls.
    fn is_confined(&self, tid: i32) -> bool {
        machine::has_other_filters(tid, self.filters)
    }

    /// Restores the patched sites in the memory of a stopped task, if all tasks that may run there can be stopped;
    /// returns whether no site is patched there afterwards.
    fn put_back(&mut self, tracer: &mut dyn TaskStopper, tid: i32) -> Result<bool, TraceError> {
        if !self.spaces.space(tid).is_some_and(Space::is_patched) {
            return Ok(true);
        }
        let are_all = tracer.stop_sharing(tid)?.are_all;
        if let Some(space) = self.spaces.of_mut(tid).filter(|_| are_all) {
            space.roll_back(tid);
        }
        Ok(are_all)
    }

    /// Prepares the memory of a stopped task, and of all threads of its process if `of_all`, for a filter that the task
    /// is about to install; false if that is to be tried again after other reports.
    ///
    /// # Errors
    /// As of tracing.
    pub(crate) fn is_ready(
        &mut self,
        tracer: &mut dyn TaskStopper,
        stopped: &Stopped,
        of_all: bool,
    ) -> Result<bool, TraceError> {
        let tid = stopped.tracee().tid();
        let is_back = self.put_back(tracer, tid)? || self.backoff.is_exhausted(tid);
        let is_ready = is_back && (!of_all || self.is_clear_of(tracer, tid)?);
        match is_ready {
            true => self.backoff.end(tid),
            false => self.backoff.pause(tid),
        }
        Ok(is_ready)
    }

    /// Whether all other threads of a stopped task have left the code that hands calls over: a filter that they are
    /// about to get may deny its calls. Threads that haven't left it run on for a moment.
    fn is_clear_of(&mut self, tracer: &mut dyn TaskStopper, tid: i32) -> Result<bool, TraceError> {
        let Some(space) = self.spaces.space(tid) else {
            return Ok(true);
        };
        let mut is_clear = true;
        // No further thread gets there.
        let others = match self.inside.remove(&tid) {
            Some(inside) => Some(tracer.stop_these(&inside)?),
            None => tracer.stop_others(tid)?,
        };
        if let Some(others) = others {
            let mut inside = Vec::new();
            for one in others {
                let words = match one.stop() {
                    Stop::Interrupted => unless_ended(Words::read(&one))?,
                    _ => None,
                };
                if words.is_some_and(|words| space.has_code_at(words.0[RIP])) {
                    is_clear = false;
                    inside.push(one.tracee().tid());
                    unless_ended(tracer.run_on(&one))?;
                }
            }
            if !is_clear {
                self.inside.insert(tid, inside);
            }
        } else {
            is_clear = self.backoff.is_exhausted(tid);
        }
        Ok(is_clear)
    }

    /// Patches a site, with all threads stopped.
    fn apply(
        &mut self,
        tracer: &mut dyn TaskStopper,
        stopped: &Stopped,
        others: &[Stopped],
        plan: &Plan,
    ) -> Result<(), Refusal> {
        let tid = stopped.tracee().tid();
        if !plan.is_free(stopped, others)? {
            return Err(Refusal::Refused);
        }
        let space = self.spaces.space(tid);
        let has_area = space.is_some_and(|space| space.area_for(&plan.mapping).is_some());
        let signals = if has_area {
            Vec::new()
        } else {
            let mut injection = Injection::begin(stopped, self.dispatcher.evaluator)?;
            let ip = injection.ip();
            let mut next = |tid| tracer.next_stop(tid);
            let prepared = self.prepare(tid, plan, &mut injection, &mut next);
            let signals = injection.end(ip)?;
            prepared?;
            signals
        };
        let tids = others.iter().map(|one| one.tracee().tid());
        self.spaces.join(tid, tids);
        let space = self.spaces.of_mut(tid).ok_or(Refusal::Refused)?;
        let put = space.patch(tid, plan).ok_or(Refusal::Refused)?;
        put.move_threads(others.iter().chain([stopped]))?;
        for signal in signals {
            let _ = machine::signal_thread(tid, signal);
        }
        Ok(())
    }

    /// Makes the mappings that the address space of a task lacks.
    fn prepare(
        &mut self,
        tid: i32,
        plan: &Plan,
        injection: &mut Injection<'_>,
        next: inject::NextStop<'_>,
    ) -> Result<(), Refusal> {
        if self.spaces.space(tid).is_none() {
            let space = Space::make(tid, injection, next)?;
            self.spaces.add(tid, space);
        }
        let space = self.spaces.of_mut(tid).ok_or(Refusal::Refused)?;
        let at = plan.place_of_area(tid).ok_or(Refusal::Refused)?;
        space.add_area(tid, at, &self.dispatcher.settings.numbers, injection, next)
    }
}

impl Drop for Patching<'_> {
    fn drop(&mut self) {
        for (_, channel) in self.channels.values().flatten() {
            channel.close();
        }
    }
}
