//! The loop that follows all tasks of a guest, from its start to the end of the last.
//!
//! A tracer must be transparent: a task gets the signals that it would get, stays stopped when job control stops it,
//! and new tasks run on without further stops. A task can be killed at any time, also while it is stopped; then every
//! request for it fails with `ESRCH`, and its end is reported next.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tamis_abi::{Action, ActionKind, SeccompData};
use tamis_bpf::{Op, Program, Stack};
use tamis_kernel::spawn::{Body, Child, HeldChild, Signaller, Spawn};
use tamis_kernel::tracee::{
    Event, Restarts, Resume, Stop, Stopped, TraceError, TraceOptions, Tracee,
};
use tamis_kernel::{Ended, Errno, affinity, install, poll};
use tamis_vm::Evaluator;

use super::call::Phase;
use super::filters::{self, Catcher, OF_COUNTED, OF_PATCHED};
use super::interrupted::ForwardedCalls;
use super::stopping::FirstStop;
use super::vfork::VforkParents;
use super::{Mechanism, notify};
use crate::error::PlatformError;
use crate::patched::channels::{Channels, StubInterface};
use crate::patched::counted::Counting;
use crate::patched::dispatcher::{Channel, Dispatcher};
use crate::patched::inject::NextStop;
use crate::patched::orphans::{OrphanTracer, TraceRequest, restart_after};
use crate::patched::stopper::TaskStopper as _;
use crate::patched::{self, Patching, Tally};
use crate::platform::{Guest, Options, Placement};
use crate::supervisor::Supervisor;
use crate::sys::machine;
use crate::task::TaskId;

/// Stops at calls between two checks of the CPU that the guest runs on.
const STOPS_PER_LOOK: u32 = 64;

/// The start of a guest, if not by executing its program under its filter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Start<'a> {
    /// The code that the guest's process runs.
    pub(crate) body: Option<&'a dyn Body>,
    /// The filter that is installed in place of the guest's.
    pub(crate) filter: Option<&'a Program>,
    /// The answers to the calls of its stub, if it has one.
    pub(crate) stub: Option<StubInterface<'a>>,
    /// The environment that its programs are moved into once they are executed, if other than their process.
    pub(crate) residence: Option<&'a dyn Residence>,
}

/// The environment that programs of a guest run in.
pub(crate) trait Residence: fmt::Debug + Sync {
    /// A task has stopped because it has executed a program.
    ///
    /// # Errors
    /// As of tracing. Any other failure ends the task.
    fn move_in(&self, stopped: &Stopped, next: NextStop<'_>) -> Result<(), TraceError>;

    /// Whether the residence of a task that is about to get a signal has failed, which ends the task.
    ///
    /// # Errors
    /// As of tracing.
    fn has_failed(&self, stopped: &Stopped, signal: i32) -> Result<bool, TraceError>;
}

/// Runs a guest on the calling thread, which must have no other children or tracees.
pub(super) fn run(
    mechanism: Mechanism,
    guest: &Guest<'_>,
    start: &Start<'_>,
    supervisor: &dyn Supervisor,
    options: &Options<'_>,
) -> Result<Ended, PlatformError> {
    let evaluator = evaluator(mechanism, guest)?;
    let tally = tally(mechanism, guest, options);
    let held = start_guest(mechanism, tally, guest, start, options)?;
    let signaller = held.child().signaller();
    let pending = held.child().listener();
    let has_ended = AtomicBool::new(false);
    let (stop, stopper) = io::pipe().map_err(|error| PlatformError::of_io("pipe", &error))?;
    let is_patched = mechanism == Mechanism::Patch && tally.is_none() && !guest.has_results;
    let dispatcher = match (start.stub, evaluator.as_ref().filter(|_| is_patched)) {
        (Some(stub), _) => stub_dispatcher(guest, options, &stub, supervisor, &signaller).into(),
        (None, Some(evaluator)) => dispatcher(guest, options, evaluator, supervisor, &signaller),
        (None, None) => None,
    };
    let orphans = &OrphanTracer::new(held.pid());
    let forwarded = ForwardedCalls::new(guest.filter);
    let until_first = until_first(start, held.pid())?;
    supervisor.started(TaskId(held.pid()), None);
    thread::scope(|scope| {
        let guard = EndOnDrop(&has_ended);
        // Closed at the end of this function on every path.
        let mut stopper = stopper;
        if let Some(until) = options.until {
            start_until(scope, until, &stop, &signaller)?;
        }
        let (pid, dispatcher, stub) = (held.pid(), &dispatcher, start.stub);
        let answering = notify::Responder {
            supervisor,
            pending: &pending,
            has_ended: &has_ended,
            stop: &stop,
            signaller: &signaller,
            cpu: supervisor_cpu(options.placement),
            forwarded: &forwarded,
        };
        let is_notified = mechanism == Mechanism::Notify;
        let answer = || {
            let open = move || Some(channels(scope, dispatcher.as_ref()?, pid, &stub?, orphans));
            let run = move || answering.run(open().as_ref());
            start_thread(scope, "tamis-notify", run)
        };
        let answering = is_notified.then(answer).transpose()?;
        let follows = options.placement == Placement::Free && !is_notified && dispatcher.is_none();
        let mut tracer = Tracer::new(mechanism, supervisor, held.release(), orphans);
        tracer.evaluator = evaluator.as_ref();
        tracer.has_results = guest.has_results;
        tracer.follow = follows.then(CpuFollower::default);
        tracer.until_first = until_first;
        tracer.forwarded = makes_again(mechanism, start).then_some(&forwarded);
        tracer.residence = start.residence;
        let patched = dispatcher.as_ref().filter(|_| start.stub.is_none());
        tracer.patching = patched.map(|dispatcher| patching(scope, dispatcher));
        tracer.counting = tally.map(|tally| Counting::new(tally, OF_COUNTED));
        let ended = tracer.until_end();
        drop(guard);
        // Writing a byte is needed because the pipe isn't closed while another thread is between fork and exec.
        let _ = stopper.write_all(&[1]);
        let answered = answering.map_or(Ok(()), joined);
        let failure = dispatcher.as_ref().and_then(Dispatcher::failure);
        failure.map_or(Ok(()), Err)?;
        answered.and(ended)
    })
}

/// Whether the tracer restarts calls that the supervisor hasn't received. In a virtual machine the signal handler is
/// the monitor's, which continues the call itself; the tasks of a stub aren't traced.
fn makes_again(mechanism: Mechanism, start: &Start<'_>) -> bool {
    mechanism == Mechanism::Notify && start.stub.is_none() && start.residence.is_none()
}

/// The result of a thread, whose panic is propagated.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    let result = thread.join();
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Starts a thread that kills the guest once a descriptor is readable, if it hasn't ended before.
fn start_until<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    until: BorrowedFd<'scope>,
    stop: &'scope io::PipeReader,
    signaller: &'scope Signaller,
) -> Result<(), PlatformError> {
    let kill = move || {
        if poll::readable(&[until, stop.as_fd()]) == Ok(0) {
            let _ = signaller.send(libc::SIGKILL);
        }
    };
    start_thread(scope, "tamis-until", kill).map(|_| ())
}

/// A descriptor that is readable after the end of a guest's first process, if other threads trace, which may reap it.
fn until_first(start: &Start<'_>, pid: i32) -> Result<Option<OwnedFd>, PlatformError> {
    let end = start.stub.map(|_| machine::end_of(pid));
    end.transpose().map_err(|errno| PlatformError::Request {
        request: "pidfd_open",
        errno,
    })
}

/// The dispatcher that answers the calls of patched sites, unless the guest's sites can't be patched.
fn dispatcher<'a>(
    guest: &Guest<'_>,
    options: &Options<'a>,
    evaluator: &'a Evaluator,
    supervisor: &'a dyn Supervisor,
    signaller: &'a Signaller,
) -> Option<Dispatcher<'a>> {
    let shares_cpu = || shares_cpu(options.placement);
    let settings = patched::settings(guest.filter, evaluator, options.spin, shares_cpu)?;
    Some(Dispatcher::new(
        supervisor,
        evaluator,
        settings,
        signaller,
        options.unpatch,
    ))
}

/// The tally for the calls of patched sites, if they are only counted.
fn tally<'a>(mechanism: Mechanism, guest: &Guest<'_>, options: &Options<'a>) -> Option<&'a Tally> {
    let notify = ActionKind::Notify;
    let is_asked = |op| {
        !matches!(op, Op::RetA)
            && !matches!(op, Op::RetImm(ret) if Action::from_ret(ret).kind != notify)
    };
    let asks_about_all = || guest.filter.ops().all(is_asked);
    let can_count = mechanism == Mechanism::Patch && !guest.has_results;
    options
        .tally
        .filter(|_| can_count && asks_about_all() && patched::knows_memory())
}

/// The channels of a guest with a stub, which have threads of this scope.
fn channels<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    dispatcher: &'scope Dispatcher<'scope>,
    pid: i32,
    answers: &StubInterface<'scope>,
    orphans: &'scope OrphanTracer,
) -> Channels<'scope> {
    let serve = move |channel: Channel| {
        start_thread(scope, "tamis-channel", move || dispatcher.serve(&channel)).is_ok()
    };
    let trace = move |request: TraceRequest| {
        start_thread(scope, "tamis-orphans", move || orphans.trace(request)).is_ok()
    };
    Channels::new(
        dispatcher,
        answers,
        pid,
        Box::new(serve),
        Box::new(trace),
        orphans,
    )
}

/// The dispatcher that answers the calls of a stub.
fn stub_dispatcher<'a>(
    guest: &Guest<'_>,
    options: &Options<'a>,
    stub: &StubInterface<'a>,
    supervisor: &'a dyn Supervisor,
    signaller: &'a Signaller,
) -> Dispatcher<'a> {
    let shares_cpu = shares_cpu(options.placement);
    let settings = patched::signal_settings(guest.filter, stub.evaluator, options.spin, shares_cpu);
    Dispatcher::new(supervisor, stub.evaluator, settings, signaller, None).of_handler(stub.handler)
}

/// The patching of a guest, whose channels have threads of this scope.
fn patching<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    dispatcher: &'scope Dispatcher<'scope>,
) -> Patching<'scope> {
    let serve = move |channel: Channel| {
        start_thread(scope, "tamis-channel", move || dispatcher.serve(&channel)).is_ok()
    };
    Patching::new(dispatcher, OF_PATCHED, Box::new(serve))
}

/// A child that waits, traced and on its CPU. Dropping it ends all processes of the guest.
fn start_guest(
    mechanism: Mechanism,
    tally: Option<&Tally>,
    guest: &Guest<'_>,
    start: &Start<'_>,
    options: &Options<'_>,
) -> Result<HeldChild, PlatformError> {
    let filter = start.filter.unwrap_or(guest.filter);
    let catcher = match (start.stub, tally) {
        (Some(_), _) => Catcher::Stub,
        (None, Some(_)) => Catcher::Guest,
        (None, None) => Catcher::Kernel(mechanism),
    };
    let programs = filters::filters(catcher, filter);
    let programs = programs.map_err(PlatformError::Unsupported)?;
    let mut spawn = Spawn::new(guest.program.clone());
    spawn.body = start.body;
    spawn.name = options.name.map(OsStr::to_owned);
    spawn.args.clone_from(&guest.args);
    let filters = programs.iter().map(|(program, flags)| (program, *flags));
    spawn.filters = filters.collect();
    spawn.forward_signals = options.forwards_signals;
    let watches = mechanism == Mechanism::Watch;
    // The kernel kills traced tasks when their tracer ends.
    spawn.die_with_parent = !watches;
    // Then programs keep the privileges that their files grant.
    spawn.no_new_privs = !(watches && install::is_privileged());
    let held = spawn.start().map_err(PlatformError::Spawn)?;
    place(options.placement, &held)?;
    // A traced task stops at each signal.
    if start.stub.is_none() {
        seize(mechanism, &held)?;
    }
    Ok(held)
}

/// Sets the flag of the guest's end, whatever ended its loop.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn start_thread<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<thread::ScopedJoinHandle<'scope, T>, PlatformError> {
    let builder = thread::Builder::new().name(name.to_owned());
    let started = builder.spawn_scoped(scope, body);
    started.map_err(|error| PlatformError::of_io("starting a thread", &error))
}

/// The guest's filter, if the mechanism doesn't have the kernel evaluate it.
fn evaluator(mechanism: Mechanism, guest: &Guest<'_>) -> Result<Option<Evaluator>, PlatformError> {
    if mechanism == Mechanism::Notify {
        return Ok(None);
    }
    let stack = Stack::from(guest.filter.clone());
    let evaluator = match mechanism {
        Mechanism::Patch => Evaluator::cached(&stack),
        _ => Evaluator::new(&stack),
    };
    evaluator
        .map(Some)
        .map_err(|error| PlatformError::Filter(error.to_string()))
}

/// The CPU of the thread that calls the supervisor; `None` if it is free.
fn supervisor_cpu(placement: Placement) -> Option<usize> {
    match placement {
        Placement::Free => None,
        Placement::Same(cpu)
        | Placement::Apart {
            supervisor: cpu, ..
        } => Some(cpu),
    }
}

/// Whether the guest and its supervisor take turns on one CPU.
fn shares_cpu(placement: Placement) -> bool {
    match placement {
        Placement::Same(_) => true,
        Placement::Apart { guest, supervisor } => guest == supervisor,
        Placement::Free => affinity::allowed().is_ok_and(|cpus| cpus.len() == 1),
    }
}

fn place(placement: Placement, held: &HeldChild) -> Result<(), PlatformError> {
    let failed = |errno| PlatformError::Request {
        request: "sched_setaffinity",
        errno,
    };
    let guest = match placement {
        Placement::Free => return Ok(()),
        Placement::Same(cpu) | Placement::Apart { guest: cpu, .. } => cpu,
    };
    affinity::keep_on(held.pid(), guest).map_err(failed)?;
    supervisor_cpu(placement).map_or(Ok(()), |cpu| affinity::stay_on(cpu).map_err(failed))
}

/// Starts tracing the waiting child.
fn seize(mechanism: Mechanism, held: &HeldChild) -> Result<(), PlatformError> {
    let follow = TraceOptions::EXIT_KILL
        | TraceOptions::FORK
        | TraceOptions::VFORK
        | TraceOptions::CLONE
        | TraceOptions::EXEC;
    let options = match mechanism {
        Mechanism::Notify => follow,
        _ => follow | TraceOptions::SECCOMP,
    };
    let tracee = Tracee::seize(held.pid(), options)?;
    if matches!(mechanism, Mechanism::Syscall | Mechanism::Emulate) {
        tracee.interrupt()?;
    }
    Ok(())
}

/// The tracer of a guest.
pub(super) struct Tracer<'a> {
    pub(super) mechanism: Mechanism,
    pub(super) supervisor: &'a dyn Supervisor,
    /// The guest's filter, if the mechanism doesn't have the kernel evaluate it.
    pub(super) evaluator: Option<&'a Evaluator>,
    pub(super) has_results: bool,
    pub(super) child: Child,
    /// Whether the first task has its filters: earlier calls are not calls of the guest.
    is_armed: bool,
    pub(super) tasks: BTreeMap<i32, State>,
    /// The first stops of tasks that their creators haven't reported yet, where their memory matters.
    pub(super) held_back: Vec<FirstStop>,
    /// Tasks that may wait for a child of `vfork`.
    pub(super) vfork_parents: VforkParents,
    /// Calls that are made again because a task was stopped in them.
    pub(super) repeated: BTreeMap<i32, SeccompData>,
    /// Calls that are made again because an ignored signal has ended them.
    repeats: Restarts,
    /// Tasks that were interrupted, and haven't stopped for that yet.
    pub(super) interrupted: BTreeSet<i32>,
    /// Whether everything is being killed.
    pub(super) is_ending: bool,
    failure: Option<PlatformError>,
    follow: Option<CpuFollower>,
    /// Reports that came during a wait for another. Their tasks are stopped.
    pub(super) queue: VecDeque<(Tracee, Event)>,
    /// Tasks that other threads trace.
    orphans: &'a OrphanTracer,
    /// Readable after the end of the first process, if other threads trace, which may reap it.
    until_first: Option<OwnedFd>,
    residence: Option<&'a dyn Residence>,
    /// The calls that were forwarded, if the kernel may interrupt calls before the supervisor receives them.
    forwarded: Option<&'a ForwardedCalls<'a>>,
    pub(super) patching: Option<Patching<'a>>,
    /// Used instead of `patching` if calls are only counted.
    pub(super) counting: Option<Counting<'a>>,
}

/// The state of a task.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) phase: Phase,
    /// Whether its last resumption stops its next call without executing it.
    pub(super) is_emulated: bool,
}

impl<'a> Tracer<'a> {
    fn new(
        mechanism: Mechanism,
        supervisor: &'a dyn Supervisor,
        child: Child,
        orphans: &'a OrphanTracer,
    ) -> Tracer<'a> {
        Tracer {
            mechanism,
            supervisor,
            evaluator: None,
            has_results: false,
            child,
            is_armed: false,
            tasks: BTreeMap::new(),
            held_back: Vec::new(),
            vfork_parents: VforkParents::default(),
            repeated: BTreeMap::new(),
            repeats: Restarts::default(),
            interrupted: BTreeSet::new(),
            is_ending: false,
            failure: None,
            follow: None,
            queue: VecDeque::new(),
            orphans,
            until_first: None,
            residence: None,
            forwarded: None,
            patching: None,
            counting: None,
        }
    }
}

impl Tracer<'_> {
    /// Follows the guest until no task is left; returns the end of its first process.
    fn until_end(mut self) -> Result<Ended, PlatformError> {
        self.tasks.insert(self.child.pid(), State::default());
        let mut first = None;
        loop {
            let report = match self.next_queued() {
                Some(report) => Ok(report),
                None => {
                    if let Some(end) = &self.until_first {
                        let _ = poll::readable(&[end.as_fd()]);
                    }
                    self.child.next_event()
                }
            };
            let (tracee, event) = match report {
                Ok(report) => report,
                Err(error) if error.errno == Errno(libc::ECHILD) => break,
                Err(error) => return Err(error.into()),
            };
            match event {
                Event::Stopped(stopped) => self.on_stop(stopped),
                Event::Ended(ended) => {
                    self.on_ended(tracee.tid(), ended);
                    if tracee.tid() == self.child.pid() {
                        first = Some(ended);
                        if self.mechanism != Mechanism::Watch {
                            self.end();
                        }
                    }
                }
            }
        }
        if let (None, Some(ended)) = (first, self.orphans.first()) {
            self.on_ended(self.child.pid(), ended);
            self.end();
            first = Some(ended);
        }
        // No remaining number is a task of the guest: these tasks were killed when they had executed a program, under
        // other numbers.
        let killed = Ended::Signalled {
            signal: libc::SIGKILL,
            core_dumped: false,
        };
        for tid in std::mem::take(&mut self.tasks).into_keys() {
            self.supervisor.ended(TaskId(tid), killed);
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if let Some(error) = self.child.error() {
            return Err(PlatformError::Spawn(error));
        }
        first.ok_or(PlatformError::Request {
            request: "waitpid",
            errno: Errno(libc::ECHILD),
        })
    }

    /// Kills every task. Tasks that are created meanwhile are killed at their first stop.
    pub(super) fn end(&mut self) {
        self.is_ending = true;
        let _ = self.child.signaller().send(libc::SIGKILL);
        self.orphans.end();
        let held_back = self.held_back.iter().map(FirstStop::tid);
        for tid in self.tasks.keys().copied().chain(held_back) {
            let tracee = Tracee::of_this_thread(tid);
            // A thread that has executed a program and was killed before its report has no reported end.
            if tid != self.child.pid() && tracee.is_awaited() {
                let _ = tracee.kill();
            }
        }
    }

    /// Ends the guest because of an error.
    pub(super) fn fail(&mut self, failure: PlatformError) {
        self.failure.get_or_insert(failure);
        self.end();
    }

    fn on_stop(&mut self, stopped: Stopped) {
        if self.is_ending {
            let _ = stopped.tracee().kill();
            return;
        }
        match self.handle(stopped) {
            Ok(()) => {}
            // It was killed while it was stopped.
            Err(error) if error.errno == Errno(libc::ESRCH) => {}
            Err(error) => self.fail(error.into()),
        }
    }

    fn handle(&mut self, stopped: Stopped) -> Result<(), TraceError> {
        let tid = stopped.tracee().tid();
        let Some(stopped) = self.known(stopped) else {
            return Ok(());
        };
        self.vfork_parents.forget(tid);
        self.has_reported(tid);
        self.on_ignored(&stopped)?;
        match stopped.stop() {
            Stop::Group(_) => return stopped.listen(),
            Stop::Fork | Stop::Vfork | Stop::Clone => {
                if let Some(new) = stopped.new_task()? {
                    self.on_created(new.tid(), &stopped);
                }
            }
            Stop::Exec => {
                self.on_exec(tid, stopped.message()? as i32);
                if let Some(residence) = self.residence {
                    residence.move_in(&stopped, &mut |tid| self.next_stop(tid))?;
                }
            }
            Stop::Interrupted => {
                self.make_again(&stopped)?;
                // `arrived` also changes this tracer, which contains it.
                if let Some(mut patching) = self.patching.take() {
                    let done = patching.arrived(self, &stopped);
                    self.patching = Some(patching);
                    done?;
                }
            }
            Stop::Seccomp => self.on_filter(&stopped)?,
            Stop::Call => self.on_call(&stopped)?,
            Stop::Signal(_) if self.mechanism == Mechanism::Watch => {
                self.supervisor
                    .signalled(TaskId(tid), &stopped.signal_info()?);
            }
            Stop::Signal(signal)
                if let Some(residence) = self.residence
                    && residence.has_failed(&stopped, signal)? =>
            {
                return stopped.tracee().kill();
            }
            Stop::Signal(_) if let Some(forwarded) = self.forwarded => {
                forwarded.restart_unreceived(&stopped)?;
            }
            Stop::Signal(_) if self.mechanism == Mechanism::Notify => {
                restart_after(&stopped)?;
            }
            _ => {}
        }
        if self.is_ending {
            return Ok(());
        }
        if matches!(stopped.stop(), Stop::Seccomp | Stop::Call)
            && let Some(follow) = &mut self.follow
        {
            follow.after_stop(tid);
        }
        let resume = self.resume_of(tid);
        if let Some(state) = self.tasks.get_mut(&tid) {
            state.is_emulated = resume == Resume::Emulate;
        }
        let signal = match (stopped.signal(), &self.patching) {
            (Some(signal), Some(patching)) if patching.is_fault(&stopped, signal)? => None,
            (signal, _) => signal,
        };
        stopped.resume(resume, signal)
    }

    /// Handles a stop for a signal that the task ignores and that has ended its call.
    fn on_ignored(&mut self, stopped: &Stopped) -> Result<(), TraceError> {
        if let Some(signal) = stopped.signal()
            && let Some(call) = self.repeats.restart(stopped, signal)?
        {
            self.repeated.insert(stopped.tracee().tid(), call);
        }
        Ok(())
    }

    /// Whether a task's call is one that is made again; at another the former one has ended.
    pub(super) fn is_repeated(&mut self, tid: i32, call: &SeccompData) -> bool {
        let is_repeated = self.repeated.remove(&tid).as_ref() == Some(call);
        if !is_repeated {
            self.repeats.forget(tid);
        }
        is_repeated
    }

    /// The request that resumes a task.
    pub(super) fn resume_of(&self, tid: i32) -> Resume {
        let is_free = |state: &State| state.phase == Phase::Free;
        match self.mechanism {
            Mechanism::Emulate if self.is_armed && self.tasks.get(&tid).is_none_or(is_free) => {
                Resume::Emulate
            }
            Mechanism::Notify | Mechanism::Trace | Mechanism::Patch | Mechanism::Watch
                if self.tasks.get(&tid).is_none_or(is_free) =>
            {
                Resume::Run
            }
            _ => Resume::ToCall,
        }
    }

    /// Handles the creation of a task by a stopped one.
    fn on_created(&mut self, new: i32, stopped: &Stopped) {
        let tid = stopped.tracee().tid();
        if stopped.stop() == Stop::Vfork {
            self.vfork_parents.add(tid, new);
        }
        // It may have ended already, which hasn't been reported yet.
        if self.is_held_back(new) || Tracee::of_this_thread(new).is_awaited() {
            self.on_new(new, Some(tid), Some(tid));
            self.take_up(new);
        }
    }

    /// Handles the end of a task.
    fn on_ended(&mut self, tid: i32, ended: Ended) {
        self.on_left(tid);
        // The start of a task that was held back hasn't been reported.
        self.held_back.retain(|held| held.tid() != tid);
        if self.tasks.remove(&tid).is_some() {
            self.supervisor.ended(TaskId(tid), ended);
        }
        self.repeated.remove(&tid);
        self.repeats.forget(tid);
        self.interrupted.remove(&tid);
        if let Some(forwarded) = self.forwarded {
            forwarded.remove(tid);
        }
    }

    /// Handles a task that has left its address space.
    fn on_left(&mut self, tid: i32) {
        self.vfork_parents.left(tid);
        if let Some(patching) = &mut self.patching {
            patching.left(tid);
        }
        if let Some(counting) = &mut self.counting {
            counting.left(tid);
        }
    }

    /// Whether calls of this task are calls of the guest.
    pub(super) fn is_armed(&mut self) -> bool {
        self.is_armed = self.is_armed || self.child.has_filters();
        self.is_armed
    }

    /// Registers a new task; `certain` is its creator if a report has named it.
    pub(super) fn on_new(&mut self, tid: i32, parent: Option<i32>, certain: Option<i32>) {
        // The number of a task whose end is still to be reported is not reused.
        if let Entry::Vacant(entry) = self.tasks.entry(tid) {
            entry.insert(State::default());
            if let Some(patching) = &mut self.patching {
                patching.created(tid, certain);
            }
            if let Some(counting) = &mut self.counting {
                counting.created(tid, certain);
            }
            self.supervisor.started(TaskId(tid), parent.map(TaskId));
        }
    }

    /// Handles an execution by a thread with its former number: it gets its process's number, and the other threads are
    /// gone.
    fn on_exec(&mut self, tid: i32, former: i32) {
        self.on_left(tid);
        self.on_left(former);
        if former != tid
            && let Some(state) = self.tasks.remove(&former)
        {
            self.tasks.insert(tid, state);
            self.supervisor.renumbered(TaskId(tid), TaskId(former));
        }
    }
}

impl Drop for Tracer<'_> {
    /// Kills the remaining tasks, if the supervisor has panicked or waiting has failed, and waits for all of their
    /// ends: a process doesn't end before its threads, and those report to their tracer.
    fn drop(&mut self) {
        self.end();
        while let Ok((tracee, event)) = self.child.next_event() {
            if matches!(event, Event::Stopped(_)) {
                let _ = tracee.kill();
            }
        }
    }
}

/// Keeps the tracer on the guest's CPU: waking a task on another CPU takes several times as long as on the same one.
#[derive(Default)]
struct CpuFollower {
    stops: u32,
    cpu: Option<usize>,
}

impl CpuFollower {
    fn after_stop(&mut self, tid: i32) {
        self.stops = self.stops.wrapping_add(1);
        if !self.stops.is_multiple_of(STOPS_PER_LOOK) {
            return;
        }
        let cpu = affinity::current_cpu(tid);
        if cpu != self.cpu
            && let Some(new) = cpu
            && affinity::stay_on(new).is_ok()
        {
            self.cpu = cpu;
        }
    }
}
