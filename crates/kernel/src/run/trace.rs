//! Traces a command and its descendants to find the call for which one of them is killed.
//!
//! A thread killed by a filter dies without a signal stop (since 5.16), but every thread stops once more when it
//! exits, with its status: there its last call can still be read. If a filter kills a whole process, each of its
//! threads stops with the same status. The thread that made the call is found by evaluating the filters, which
//! allow the last calls of the others. Traps are ordinary signals with the call in their `siginfo`.
//!
//! Tracing is transparent for the command: `PTRACE_SEIZE` doesn't affect job control (a stopped task is left to
//! listen), `SECCOMP_RET_TRACE` still fails with `ENOSYS`, and system calls don't stop. A signal that a task ignores
//! would end some of its calls, which are made again ([`Restarts`]); such a call stops at its exit, where its restarts
//! are forgotten. When the command has ended, its surviving descendants are released: the kernel does this when the
//! tracing thread ends.

use std::collections::BTreeSet;

use tamis_abi::{Action, ActionKind, Arch, SeccompData};
use tamis_bpf::stack::Stack;

use crate::ended::Ended;
use crate::errno::Errno;
use crate::run::report::{Killed, Note, RunResult, Scope, Trapped};
use crate::run::verdict;
use crate::spawn::{Child, HeldChild};
use crate::status::Status;
use crate::tracee::{
    self, CallPhase, Event, INTERRUPTED, Restarts, Resume, Stop, Stopped, TraceError, TraceOptions,
    Tracee,
};

/// The most kills, and the most traps, that are recorded: a command that handles traps may have millions.
const MAX_RECORDED: usize = 1000;

/// Starts tracing a child of the calling thread and its future descendants.
pub(crate) fn attach(held: &HeldChild) -> Result<Tracee, TraceError> {
    let options = TraceOptions::EXIT
        | TraceOptions::CLONE
        | TraceOptions::FORK
        | TraceOptions::VFORK
        | TraceOptions::EXEC;
    Tracee::seize(held.pid(), options)
}

/// Runs the child and its descendants until the child has ended.
pub(crate) fn until_end(
    child: &mut Child,
    stack: &Stack,
    report: &mut RunResult,
) -> Result<Ended, Errno> {
    let mut tracer = Tracer {
        stack,
        report,
        doomed: BTreeSet::new(),
        unexplained: BTreeSet::new(),
        restarts: Restarts::default(),
        missing: 0,
    };
    let ended = loop {
        let tracee = tracee::next().map_err(|error| error.errno)?;
        match child.poll(tracee) {
            // Another report came first, such as a kill during a stop.
            Ok(None) => {}
            Err(error) if error.errno == Errno(libc::ECHILD) => {}
            Ok(Some(Event::Stopped(stopped))) => tracer.on_stop(stopped),
            Ok(Some(Event::Ended(ended))) => {
                tracer.on_end(tracee.tid(), ended);
                if tracee.tid() == child.pid() {
                    break ended;
                }
            }
            Err(error) => return Err(error.errno),
        }
    };
    if tracer.missing > 0 {
        let missing = tracer.missing;
        tracer.report.notes.push(Note::NotAllRecorded { missing });
    }
    Ok(ended)
}

struct Tracer<'a> {
    stack: &'a Stack,
    report: &'a mut RunResult,
    /// Processes whose end by `SIGSYS` has been explained.
    doomed: BTreeSet<i32>,
    /// Processes of several threads that end by `SIGSYS`, for an unknown call.
    unexplained: BTreeSet<i32>,
    /// The calls that ignored signals have ended, and that are made again.
    restarts: Restarts,
    missing: u64,
}

impl Tracer<'_> {
    /// Handles a stop and resumes the task. A task that is killed meanwhile fails all requests with `ESRCH`; its
    /// end is reported next.
    fn on_stop(&mut self, stopped: Stopped) {
        match stopped.stop() {
            Stop::Group(_) => {
                let _ = stopped.listen();
                return;
            }
            Stop::Signal(libc::SIGSYS) => self.on_sigsys(&stopped),
            Stop::Exit => self.on_exit(&stopped),
            _ => {}
        }
        let signal = stopped.signal();
        let how = match stopped.stop() {
            Stop::Signal(signal) if self.is_made_again(&stopped, signal) => Resume::ToCall,
            Stop::Call if self.is_in_call(&stopped) => Resume::ToCall,
            _ => Resume::Run,
        };
        let _ = stopped.resume(how, signal);
    }

    /// Makes a task's call again if a signal has ended it that the task ignores. Returns whether it is made again.
    fn is_made_again(&mut self, stopped: &Stopped, signal: i32) -> bool {
        // Without the phase of a call, its arguments can't be restored.
        let has_phase = stopped.call().is_ok();
        let may_replace = |call: &SeccompData, changed: &SeccompData| {
            let is_native = Arch::of_call(call.arch, call.nr) == Some(Arch::X86_64);
            is_native && has_phase && verdict(self.stack, call) == verdict(self.stack, changed)
        };
        let made = self
            .restarts
            .restart_shortened(stopped, signal, may_replace);
        let is_made = matches!(made, Ok(Some(_)));
        if !is_made {
            // A task that is killed meanwhile needs no arguments.
            let _ = self.restarts.restore(stopped);
            self.restarts.forget(stopped.tracee().tid());
        }
        is_made
    }

    /// At a stop of a call that is made again: whether the task is at its entry. At its exit the restarts are forgotten,
    /// unless a signal has ended the call once more.
    fn is_in_call(&mut self, stopped: &Stopped) -> bool {
        match stopped.call().map(|info| info.phase) {
            Ok(CallPhase::Entry { .. }) => true,
            Ok(CallPhase::Exit { result, .. }) => {
                let _ = self.restarts.restore(stopped);
                if result != INTERRUPTED {
                    self.restarts.forget(stopped.tracee().tid());
                }
                false
            }
            // Kernels before 5.3 don't report the phase.
            _ => false,
        }
    }

    /// A task is about to get `SIGSYS`: from a filter or from another process.
    fn on_sigsys(&mut self, stopped: &Stopped) {
        let Ok(info) = stopped.signal_info() else {
            return;
        };
        let tid = stopped.tracee().tid();
        let status = Status::read(tid);
        let process = process_of(tid, status.as_ref());
        let in_set = |set| {
            let status = status.as_ref()?;
            status.has_signal(set, libc::SIGSYS)
        };
        let is_caught = in_set("SigCgt").unwrap_or(false);
        // A process can't ignore a trap.
        let is_ignored = !info.is_trap() && in_set("SigIgn").unwrap_or(false);
        if info.is_trap() {
            let call = SeccompData {
                nr: info.nr,
                arch: info.arch,
                ..stopped.fatal_call().unwrap_or_default()
            };
            if self.kill_of(&call).is_some() {
                // Before 5.16 a killed process stops here.
                self.record_kill(process, tid, Some(call), Scope::Process);
            } else {
                self.record_trap(Trapped {
                    process,
                    thread: tid,
                    call,
                    data: info.errno as u16,
                    is_caught,
                });
            }
        }
        if !is_caught && !is_ignored {
            self.doomed.insert(process);
        }
    }

    /// A thread is about to exit.
    fn on_exit(&mut self, stopped: &Stopped) {
        let Ok(message) = stopped.message() else {
            return;
        };
        if message as i32 & STATUS_SIGNAL != libc::SIGSYS {
            return;
        }
        let tid = stopped.tracee().tid();
        let status = Status::read(tid);
        let process = process_of(tid, status.as_ref());
        if self.doomed.contains(&process) {
            return;
        }
        let is_alone = status.and_then(|status| status.number("Threads")) == Some(1);
        let call = stopped.fatal_call().map(|call| self.with_arch(call));
        match call.and_then(|call| self.kill_of(&call)) {
            Some((_, action)) if action.kind == ActionKind::KillThread && !is_alone => {
                self.record_kill(process, tid, call, Scope::Thread);
            }
            Some(_) => self.record_kill(process, tid, call, Scope::Process),
            None if is_alone => self.record_kill(process, tid, call, Scope::Process),
            // Either another thread of the killed process, or killed by an unknown filter.
            None => {
                self.unexplained.insert(process);
            }
        }
    }

    /// A process or thread has ended, a process after all its threads.
    fn on_end(&mut self, tid: i32, ended: Ended) {
        self.restarts.forget(tid);
        let is_doomed = self.doomed.remove(&tid);
        let is_unexplained = self.unexplained.remove(&tid) && !is_doomed;
        if is_unexplained && ended.is_by(libc::SIGSYS) {
            self.note(Note::ThreadUnknown { process: tid });
        }
    }

    /// The filter of this run that kills for a call, and its action.
    fn kill_of(&self, call: &SeccompData) -> Option<(usize, Action)> {
        verdict(self.stack, call).filter(|(_, action)| {
            matches!(
                action.kind,
                ActionKind::KillProcess | ActionKind::KillThread
            )
        })
    }

    /// The call with an architecture, which is assumed if it is unknown.
    fn with_arch(&mut self, mut call: SeccompData) -> SeccompData {
        if call.arch == 0 {
            call.arch = tamis_abi::host::arch().map_or(0, tamis_abi::Arch::audit);
            self.note(Note::ArchAssumed);
        }
        call
    }

    fn record_kill(&mut self, process: i32, thread: i32, call: Option<SeccompData>, scope: Scope) {
        if scope == Scope::Process {
            self.doomed.insert(process);
        }
        if self.report.killed.len() == MAX_RECORDED {
            self.missing += 1;
            return;
        }
        let decided_by = call.and_then(|call| self.kill_of(&call));
        self.report.killed.push(Killed {
            process,
            thread,
            scope,
            signal: libc::SIGSYS,
            call,
            decided_by,
        });
    }

    fn record_trap(&mut self, trapped: Trapped) {
        if self.report.trapped.len() == MAX_RECORDED {
            self.missing += 1;
        } else {
            self.report.trapped.push(trapped);
        }
    }

    /// Adds a note unless it is already present.
    fn note(&mut self, note: Note) {
        if !self.report.notes.contains(&note) {
            self.report.notes.push(note);
        }
    }
}

/// The bits of a wait status that hold the deadly signal.
const STATUS_SIGNAL: i32 = 0x7f;

/// The process of a thread; the thread itself if `/proc` doesn't have it.
fn process_of(tid: libc::pid_t, status: Option<&Status>) -> i32 {
    status
        .and_then(|status| status.number("Tgid"))
        .map_or(tid, |process| process as i32)
}
