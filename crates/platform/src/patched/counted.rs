//! Sites whose calls are executed and only counted: for supervisors that forward all calls.
//!
//! A site is patched after a number of stops. Its trampoline increments the count of the call's number, in memory that
//! the supervisor shares, and makes the call at a *gate*: one of 4096 places at a fixed address, where the filter
//! allows every call. So this is no boundary, and the guest's filter must be one that returns `notify` for every call.
//! Calls that can't be patched stop as before.
//!
//! No code waits here: a signal may come or a thread be killed between any two instructions, and forked processes go on
//! with the same counts. Code that inspects the address of a call sees the original program: before a process installs
//! a filter, dispatches its calls, or handles the C library's cancellation signal, its sites are restored for good, and
//! its threads at gates are moved to the addresses that they would have without gates.

use std::sync::Arc;

use tamis_abi::{Action, Arch, SeccompData};
use tamis_bpf::{AluOp, Op, Operand, Test};
use tamis_kernel::memory;
use tamis_kernel::tracee::{Stopped, TraceError};

use super::area::{self, Area};
use super::backoff::Backoff;
use super::inject::{Injection, NextStop, ORIG_RAX, RAX, RIP, Refusal, Words};
use super::site::SYSCALL_BYTES;
use super::sites::{AppliedPatch, Patch, Plan, Sites, site_of};
use super::space::{self, ALIGNMENT};
use super::spaces::{Departure, Spaces};
use super::stopper::{TaskStopper, unless_ended};
use super::tally::{Count, NUMBERS, Tally};
use super::trampoline::{self, CounterAddresses, GATE_BYTES, Places, Trampoline};
use crate::installing::may_install;
use crate::offsets::{IP_HIGH, IP_LOW};
use crate::sys::machine;
use crate::sys::shared::Shared;

/// The address of the gates: below the kernel's mappings, and in a region that the sanitizers of threads, memory and
/// addresses leave to programs.
const GATES: u64 = 0x7e90_0000_0000;
const GATES_BYTES: u64 = 0x1_0000;
/// The address of the counts.
const COUNTS: u64 = GATES + GATES_BYTES;

/// Instructions of a filter that allow calls from a gate; they leave the registers unchanged.
pub(crate) fn allow_at_gates() -> [Op; 7] {
    [
        Op::LoadData(IP_HIGH),
        Op::branch(Test::Eq, (GATES >> 32) as u32, 0, 4),
        Op::LoadData(IP_LOW),
        Op::Alu(AluOp::And, Operand::K(!(GATES_BYTES as u32 - 1))),
        Op::branch(Test::Eq, GATES as u32, 0, 1),
        Op::RetImm(Action::ALLOW.ret()),
        Op::Alu(AluOp::And, Operand::K(0)),
    ]
}

/// The counting of a guest.
pub(crate) struct Counting<'a> {
    tally: &'a Tally,
    sites: Sites,
    spaces: Spaces<Space>,
    /// The attempts of tasks to restore sites.
    backoff: Backoff,
    /// The number of filters of a task that has installed none itself, if the kernel reports it.
    filters: Option<u32>,
}

/// The counting of one address space.
#[derive(Clone, Debug)]
struct Space {
    counts: Arc<Shared<Count>>,
    areas: Vec<Area>,
    /// For each gate, the address of its site's `syscall` and the patch of the site.
    gates: Vec<(u64, Patch)>,
    /// Whether its sites were restored, for good.
    is_over: bool,
}

impl<'a> Counting<'a> {
    /// The counting of a guest with this number of filters.
    pub(crate) fn new(tally: &'a Tally, filters: u32) -> Counting<'a> {
        Counting {
            tally,
            sites: Sites::default(),
            spaces: Spaces::default(),
            backoff: Backoff::default(),
            filters: machine::filters_with(filters),
        }
    }

    /// Handles the creation of a task, which is stopped.
    pub(crate) fn created(&mut self, tid: i32, parent: Option<i32>) {
        if let Some(parent) = parent {
            self.spaces.created(tid, parent, Space::clone);
        }
    }

    /// Handles a task that has ended, or has executed another program.
    pub(crate) fn left(&mut self, tid: i32) {
        self.backoff.end(tid);
        if let Departure::Gone = self.spaces.left(tid) {
            self.tally.tidy();
        }
    }

    /// Handles a task's stop at a call; returns whether the supervisor is to be skipped.
    pub(crate) fn decides(
        &mut self,
        tracer: &mut dyn TaskStopper,
        stopped: &Stopped,
        call: &SeccompData,
    ) -> Result<bool, TraceError> {
        if (GATES..COUNTS).contains(&call.ip) {
            // A filter of the guest's own returns `trace` without a tracer.
            stopped.skip_call()?;
            return stopped.set_result(-i64::from(libc::ENOSYS)).map(|()| true);
        }
        let tid = stopped.tracee().tid();
        if looks_at_addresses(tid, call) {
            if !self.roll_back(tracer, stopped)? {
                // The task restarts the call, and other reports are handled meanwhile.
                stopped.skip_call()?;
                return stopped
                    .repeat_call(call.nr, &call.args, call.ip)
                    .map(|()| true);
            }
            self.backoff.end(tid);
        }
        self.takes(tracer, stopped, call)
    }

    /// Restores the sites in a stopped task's memory; false if it is to be tried again after other reports. If a task
    /// that may run can't be stopped, the sites stay patched.
    fn roll_back(
        &mut self,
        tracer: &mut dyn TaskStopper,
        stopped: &Stopped,
    ) -> Result<bool, TraceError> {
        let tid = stopped.tracee().tid();
        let is_patched = |space: &&mut Space| !space.is_over && !space.gates.is_empty();
        let Some(space) = self.spaces.of_mut(tid).filter(is_patched) else {
            return Ok(true);
        };
        let others = tracer.stop_sharing(tid)?;
        let mut is_moment = others.are_all;
        for one in &others.stopped {
            is_moment &= !unless_ended(space.is_before_gate(one))?;
        }
        if !is_moment && !self.backoff.is_exhausted(tid) {
            self.backoff.pause(tid);
            return Ok(false);
        }
        if others.are_all {
            space.roll_back(tid);
            for one in &others.stopped {
                unless_ended(space.leave_gate(one))?;
            }
        }
        Ok(true)
    }

    /// Whether the task restarts a call, since its site is patched from now on.
    fn takes(
        &mut self,
        tracer: &mut dyn TaskStopper,
        stopped: &Stopped,
        call: &SeccompData,
    ) -> Result<bool, TraceError> {
        let is_counted = call.arch == Arch::X86_64.audit() && self.tally.has(call.nr);
        if !is_counted || !self.sites.is_due(call) {
            return Ok(false);
        }
        let tid = stopped.tracee().tid();
        let Some(plan) = self.sites.plan(tid, call) else {
            self.sites.refuse(call);
            return Ok(false);
        };
        let is_over = self.spaces.space(tid).is_some_and(|space| space.is_over);
        if is_over || !self.is_prepared(tid, &plan) && self.is_confined(tid) {
            return Ok(false);
        }
        let Some(others) = tracer.stop_others(tid)? else {
            return Ok(false);
        };
        if !plan.is_free(stopped, &others)? {
            return Ok(false);
        }
        stopped.skip_call()?;
        stopped.set_result(i64::from(call.nr))?;
        match self.prepare(tracer, stopped, &plan) {
            Ok(()) => {}
            Err(Refusal::Refused) => self.sites.refuse(call),
            Err(Refusal::Lost(error)) => return Err(error),
        }
        again(stopped, call)?;
        match self.patch(tid, &others, &plan) {
            Some(put) => put.move_threads(others.iter().chain([stopped]))?,
            None => self.sites.refuse(call),
        }
        Ok(true)
    }

    fn is_prepared(&self, tid: i32, plan: &Plan) -> bool {
        let space = self.spaces.space(tid);
        space.is_some_and(|space| area::serving(&space.areas, &plan.mapping).is_some())
    }

    /// Whether a task has filters of its own, which may kill it for injected calls.
    fn is_confined(&self, tid: i32) -> bool {
        machine::has_other_filters(tid, self.filters)
    }

    /// Makes the mappings that the address space of a task lacks.
    fn prepare(
        &mut self,
        tracer: &mut dyn TaskStopper,
        stopped: &Stopped,
        plan: &Plan,
    ) -> Result<(), Refusal> {
        let tid = stopped.tracee().tid();
        if self.is_prepared(tid, plan) {
            return Ok(());
        }
        let mut space = self.spaces.space(tid).cloned();
        let mut injection = Injection::begin_asked(stopped)?;
        let ip = injection.ip();
        let mut next = |tid| tracer.next_stop(tid);
        let made = Space::extend(&mut space, tid, plan, self.tally, &mut injection, &mut next);
        for signal in injection.end(ip)? {
            let _ = machine::signal_thread(tid, signal);
        }
        made?;
        let space = space.ok_or(Refusal::Refused)?;
        match self.spaces.of_mut(tid) {
            Some(former) => *former = space,
            None => {
                self.tally.extend(Arc::clone(&space.counts));
                self.spaces.add(tid, space);
            }
        }
        Ok(())
    }

    /// Patches a site, if it has room for that.
    fn patch(&mut self, tid: i32, others: &[Stopped], plan: &Plan) -> Option<AppliedPatch> {
        let others = others.iter().map(|one| one.tracee().tid());
        self.spaces.join(tid, others);
        self.spaces.of_mut(tid)?.patch(tid, plan)
    }
}

/// Whether any code may inspect the addresses of calls after this call of a task.
fn looks_at_addresses(tid: i32, call: &SeccompData) -> bool {
    /// Syscall user dispatch, except from a range of addresses.
    const DISPATCH: i32 = 59;
    /// The cancellation signals of glibc and musl. glibc uses musl's for another purpose.
    const CANCELS: [i32; 2] = [32, 33];
    let first = call.args[0] as i32;
    let is_own = call.arch == Arch::X86_64.audit()
        && match i64::from(call.nr) {
            libc::SYS_prctl => first == DISPATCH,
            libc::SYS_rt_sigaction if call.args[1] == 0 => false,
            libc::SYS_rt_sigaction if first == CANCELS[1] => blocks_signals(tid, call.args[1]),
            libc::SYS_rt_sigaction => first == CANCELS[0],
            _ => false,
        };
    is_own || may_install(call)
}

/// Whether an action for a signal, in a task's memory, blocks other signals during its handler: musl's for cancellation
/// does.
fn blocks_signals(tid: i32, action: u64) -> bool {
    /// The offset of `sa_mask` in the kernel's `struct sigaction`.
    const MASK_OFFSET: u64 = 24;
    let mut mask = [0; size_of::<u64>()];
    let read = memory::read(tid, action.wrapping_add(MASK_OFFSET), &mut mask);
    read == Ok(mask.len()) && mask != [0; size_of::<u64>()]
}

/// Makes a task that has skipped a call restart it.
fn again(stopped: &Stopped, call: &SeccompData) -> Result<(), TraceError> {
    if let Some(mut words) = Words::read(stopped)? {
        words.0[RAX] = u64::from(call.nr);
        words.0[RIP] = site_of(call);
        words.set(stopped)?;
    }
    Ok(())
}

impl Space {
    /// Makes a task create the missing mappings: counts and gates, and an area near the code.
    fn extend(
        space: &mut Option<Space>,
        tid: i32,
        plan: &Plan,
        tally: &Tally,
        injection: &mut Injection<'_>,
        next: NextStop<'_>,
    ) -> Result<(), Refusal> {
        if space.is_none() {
            let at = Some((COUNTS, libc::MAP_FIXED_NOREPLACE));
            let (counts, counts_at) = space::share(tid, NUMBERS, at, injection, next)?;
            if counts_at != COUNTS {
                return Err(Refusal::Refused);
            }
            space::map_code(GATES, GATES_BYTES, injection, next)?;
            *space = Some(Space {
                counts: Arc::new(counts),
                areas: Vec::new(),
                gates: Vec::new(),
                is_over: false,
            });
        }
        let space = space.as_mut().ok_or(Refusal::Refused)?;
        let at = plan.place_of_area(tid).ok_or(Refusal::Refused)?;
        space::map_code(at, area::LEN_BYTES as u64, injection, next)?;
        let table: Vec<u8> = (0..NUMBERS as u32).map(|nr| tally.has(nr).into()).collect();
        let written = memory::overwrite(tid, at + area::NUMBERS as u64, &table);
        written.map_err(|_| Refusal::Refused)?;
        space.areas.push(Area { start: at, used: 0 });
        Ok(())
    }

    fn patch(&mut self, tid: i32, plan: &Plan) -> Option<AppliedPatch> {
        let index = area::serving(&self.areas, &plan.mapping)?;
        let gate = GATES + (self.gates.len() * GATE_BYTES) as u64;
        if gate + GATE_BYTES as u64 > COUNTS {
            return None;
        }
        let area = &mut self.areas[index];
        let places = Places {
            own: area.next(),
            numbers: area.start + area::NUMBERS as u64,
            window: plan.place().start,
        };
        let counted = CounterAddresses {
            counts: COUNTS,
            numbers: NUMBERS as u32,
            gate,
        };
        let trampoline = Trampoline::counting(&plan.window, &places, &counted)?;
        let resume = places.own + trampoline.resume as u64;
        memory::overwrite(tid, gate, &trampoline::gate(resume)).ok()?;
        area.used += trampoline.code.len().next_multiple_of(ALIGNMENT);
        let put = plan.put(tid, &places, trampoline)?;
        let site = places.window + plan.window.before.len() as u64;
        self.gates.push((site, Patch::from_plan(plan, &put)));
        Some(put)
    }

    fn roll_back(&mut self, tid: i32) {
        for (_, patch) in &self.gates {
            patch.take_back(tid);
        }
        self.is_over = true;
    }

    /// Whether a stopped thread is in a trampoline, on its way to a gate.
    fn is_before_gate(&self, stopped: &Stopped) -> Result<bool, TraceError> {
        let Some(words) = Words::read(stopped)? else {
            return Ok(false);
        };
        let is_in_call = words.0[ORIG_RAX] as i64 >= 0;
        let mut areas = self.areas.iter();
        Ok(!is_in_call && areas.any(|area| area.contains(words.0[RIP])))
    }

    /// Moves a stopped thread that is at a gate to the gate's site.
    fn leave_gate(&self, stopped: &Stopped) -> Result<(), TraceError> {
        let Some(mut words) = Words::read(stopped)? else {
            return Ok(());
        };
        let Some(offset) = words.0[RIP].checked_sub(GATES) else {
            return Ok(());
        };
        let (index, within) = (offset as usize / GATE_BYTES, offset % GATE_BYTES as u64);
        if let Some((site, _)) = self.gates.get(index)
            && within <= SYSCALL_BYTES as u64
        {
            words.0[RIP] = site + within;
            words.set(stopped)?;
        }
        Ok(())
    }
}
