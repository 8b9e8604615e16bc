//! Tracing of the tasks of a guest that would otherwise outlive their supervisor.
//!
//! A guest with a stub isn't traced, since each of its calls is a signal, and a traced task stops at signals. Its first
//! process dies with the thread that has started it, by a signal from the kernel (`PR_SET_PDEATHSIG`). Tasks that this
//! signal doesn't reach are traced in advance: a task that is about to create a process is traced until it has created
//! it; a task that is about to execute a program, or to change its user, is traced from then on. Each has its own
//! tracing thread. A thread with no tasks left waits for the next one, since starting a thread takes as long as a
//! native fork.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, ThreadId};

use tamis_abi::restart;
use tamis_kernel::tracee::{
    self, Event, Request, Restarts, Resume, Stop, Stopped, TraceError, TraceOptions, Tracee,
};
use tamis_kernel::{Ended, Errno};

use super::dispatcher::lock;
use super::inject::{ORIG_RAX, RAX, Words};

/// The tasks that are traced.
pub(crate) struct OrphanTracer {
    /// The guest's first process.
    first: i32,
    tasks: Mutex<Tasks>,
}

#[derive(Default)]
struct Tasks {
    /// The tasks that were seized here and those that they have created, each with the thread that traces it. The
    /// kernel's information isn't used: a task can let its parent trace it.
    tracers: BTreeMap<i32, ThreadId>,
    /// The threads that wait for a task to trace.
    idle: Vec<Sender<TraceRequest>>,
    /// Whether all tasks are being killed.
    is_ending: bool,
    /// The end of the first process, if it was reaped here.
    first: Option<Ended>,
}

/// A task to be traced.
#[derive(Debug)]
pub(crate) struct TraceRequest {
    tid: i32,
    /// Whether it is only traced until it has created a process.
    is_parent: bool,
    is_traced: Sender<Result<(), TraceError>>,
}

impl OrphanTracer {
    /// The tracer of a guest with this first process.
    pub(crate) fn new(first: i32) -> OrphanTracer {
        OrphanTracer {
            first,
            tasks: Mutex::default(),
        }
    }

    /// The end of the first process, if it was reaped here.
    pub(crate) fn first(&self) -> Option<Ended> {
        lock(&self.tasks).first
    }

    /// Starts tracing a task that waits in the kernel before a call. `start` starts a thread that
    /// [traces](Self::trace).
    ///
    /// # Errors
    /// The task can't be traced: its call must not be executed.
    pub(crate) fn add(
        &self,
        tid: i32,
        is_parent: bool,
        start: &dyn Fn(TraceRequest) -> bool,
    ) -> Result<(), TraceError> {
        if lock(&self.tasks).tracers.contains_key(&tid) {
            return Ok(());
        }
        let failed = |errno| TraceError {
            request: Request::Seize,
            errno: Errno(errno),
        };
        let (is_traced, answer) = mpsc::channel();
        let request = TraceRequest {
            tid,
            is_parent,
            is_traced,
        };
        let idle = lock(&self.tasks).idle.pop();
        // An idle thread waits until the guest ends.
        let left = match idle {
            Some(idle) => idle.send(request).err().map(|unsent| unsent.0),
            None => Some(request),
        };
        if left.is_some_and(|request| !start(request)) {
            return Err(failed(libc::EAGAIN));
        }
        answer.recv().unwrap_or(Err(failed(libc::ESRCH)))
    }

    /// Traces a task and its descendants until none is left, and then others, until the guest ends or enough threads
    /// wait.
    pub(crate) fn trace(&self, request: TraceRequest) {
        const ENOUGH: usize = 2;
        let mut next = Some(request);
        while let Some(request) = next {
            self.trace_one(&request);
            let (sender, requests) = mpsc::channel();
            {
                let mut tasks = lock(&self.tasks);
                if tasks.is_ending || tasks.idle.len() >= ENOUGH {
                    return;
                }
                tasks.idle.push(sender);
            }
            next = requests.recv().ok();
        }
    }

    /// Traces a task and its descendants until none is left.
    fn trace_one(&self, request: &TraceRequest) {
        let options = TraceOptions::EXIT_KILL
            | TraceOptions::FORK
            | TraceOptions::VFORK
            | TraceOptions::CLONE
            | TraceOptions::EXEC;
        let seized = Tracee::seize(request.tid, options).map(|_| ());
        let tracer = thread::current().id();
        let is_traced = seized.is_ok();
        if is_traced {
            lock(&self.tasks).tracers.insert(request.tid, tracer);
        }
        // The receiver is the thread that requested the tracing.
        let _ = request.is_traced.send(seized);
        let mut restarts = Restarts::default();
        while is_traced && let Ok(tracee) = tracee::next() {
            // The number of a task may be reused once its end has been reaped.
            let mut tasks = lock(&self.tasks);
            match tracee.poll() {
                Ok(Some(Event::Stopped(_))) if tasks.is_ending => {
                    let _ = tracee.kill();
                }
                Ok(Some(Event::Stopped(stopped))) => {
                    tasks.renumber(&stopped, tracer);
                    // A request fails only for a task that has been killed.
                    if on_stop(stopped, request, &mut restarts) == Ok(true) {
                        tasks.forget(tracee.tid(), tracer);
                    }
                }
                Ok(Some(Event::Ended(ended))) => {
                    tasks.forget(tracee.tid(), tracer);
                    restarts.forget(tracee.tid());
                    if tracee.tid() == self.first {
                        tasks.first = Some(ended);
                    }
                }
                // The task has been killed meanwhile, and its end is reported after that of its threads.
                Ok(None) | Err(_) => {}
            }
        }
        // The end of a process's first thread isn't reported if another thread has executed a program.
        lock(&self.tasks).tracers.retain(|_, by| *by != tracer);
    }

    /// Kills all tasks. Tasks that are created meanwhile are killed at their first stop.
    pub(crate) fn end(&self) {
        let mut tasks = lock(&self.tasks);
        tasks.is_ending = true;
        tasks.idle.clear();
        for tid in tasks.tracers.keys() {
            let _ = Tracee::of_this_thread(*tid).kill();
        }
    }
}

impl Tasks {
    /// Notes the stop of a task that this thread traces. A task that has executed a program gets its process's number.
    fn renumber(&mut self, stopped: &Stopped, tracer: ThreadId) {
        let tid = stopped.tracee().tid();
        if stopped.stop() == Stop::Exec
            && let Ok(former) = stopped.message()
        {
            self.forget(former as i32, tracer);
        }
        self.tracers.insert(tid, tracer);
    }

    /// Removes a task that this thread no longer traces.
    fn forget(&mut self, tid: i32, tracer: ThreadId) {
        if self.tracers.get(&tid) == Some(&tracer) {
            self.tracers.remove(&tid);
        }
    }
}

/// Resumes a task; returns whether it was detached.
fn on_stop(
    stopped: Stopped,
    request: &TraceRequest,
    restarts: &mut Restarts,
) -> Result<bool, TraceError> {
    let is_parent = request.is_parent && stopped.tracee().tid() == request.tid;
    match stopped.stop() {
        Stop::Group(_) => stopped.listen().map(|()| false),
        Stop::Fork | Stop::Vfork | Stop::Clone if is_parent => stopped.detach(None).map(|()| true),
        // The task couldn't create a process.
        Stop::Signal(libc::SIGSYS) if is_parent => {
            stopped.detach(Some(libc::SIGSYS)).map(|()| true)
        }
        Stop::Signal(signal) => {
            restart_after(&stopped)?;
            restarts.restart(&stopped, signal)?;
            stopped.resume(Resume::Run, Some(signal)).map(|()| false)
        }
        _ => stopped.resume(Resume::Run, None).map(|()| false),
    }
}

/// Restarts certain calls before a task handles a signal that has come before the notification was received. Calls that
/// create processes or execute programs are restarted whatever the handler, as they are without notification.
pub(crate) fn restart_after(stopped: &Stopped) -> Result<(), TraceError> {
    /// `clone`, `fork`, `vfork`, `execve` and `execveat` on x86-64.
    const CALLS: [u64; 5] = [56, 57, 58, 59, 322];
    if let Some(mut words) = Words::read(stopped)?
        && words.0[RAX] as i64 == restart::SYS
        && CALLS.contains(&u64::from(words.0[ORIG_RAX] as u32))
    {
        words.0[RAX] = restart::NO_INTR as u64;
        words.set(stopped)?;
    }
    Ok(())
}
