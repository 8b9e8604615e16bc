//! Running a command under filters.
//!
//! The caller's process may have other children and threads. So everything happens on a separate thread, which
//! [spawns](crate::spawn) the command and waits for it. With [`Command::explain`], the thread also
//! [traces](crate::tracee) the command and all its descendants to report the call for which one of them was killed;
//! [`supervise`] replies on another thread to the calls that its [listener](crate::listener) receives.
//!
//! Not included are pipes, time limits and new sessions; a caller that captures output redirects its own standard
//! streams or uses a shell.

mod report;
mod supervise;
mod trace;

use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tamis_abi::{Action, ActionKind, SeccompData, errno};
use tamis_bpf::stack::Stack;

use crate::errno::Errno;
use crate::flags::{Flag, Flags};
use crate::listener::{Listener, Notification, Reply};
use crate::spawn::{Child, HeldChild, Spawn, SpawnError};
use crate::status::Status;

pub use crate::ended::Ended;
pub use report::{Killed, Note, RunError, RunResult, Scope, Trapped};
use supervise::Answer;

/// A command and its filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program: a path if it contains a slash, otherwise a name in `PATH`.
    pub program: OsString,
    /// Its arguments, without the program's name.
    pub args: Vec<OsString>,
    /// The filters, the oldest first. Each must allow `seccomp`, to install the next. The last must allow `execve`.
    pub filters: Stack,
    /// The flags of each installation. [`run`] and [`supervise`] select those for a listener: [`Flag::NewListener`]
    /// is ignored, [`Flag::WaitKillableRecv`] is used by the latter.
    pub flags: Flags,
    /// Additional flags of single installations, in the order of [`filters`](Self::filters); the list may be
    /// shorter.
    pub filter_flags: Vec<Flags>,
    /// Set `no_new_privs` first; needed without `CAP_SYS_ADMIN`.
    pub no_new_privs: bool,
    /// Trace the command to report the call for which it was killed. Costs about a stop for each signal, new thread
    /// and new process, and keeps debuggers from attaching; the speed of system calls is unchanged.
    pub explain: bool,
    /// Forward signals while waiting. Handlers are process-wide, so only one run at a time can.
    pub forward_signals: bool,
    /// Kill the command if the calling process dies first, even by `SIGKILL`. This doesn't apply to its
    /// descendants, and the kernel resets it if the command executes a program with privileges of its own.
    pub die_with_parent: bool,
}

impl Command {
    /// A command without arguments and filters, with `no_new_privs`, explained, without forwarding.
    pub fn new(program: impl Into<OsString>) -> Command {
        Command {
            program: program.into(),
            args: Vec::new(),
            filters: Stack::default(),
            flags: Flags::NONE,
            filter_flags: Vec::new(),
            no_new_privs: true,
            explain: true,
            forward_signals: false,
            die_with_parent: false,
        }
    }

    /// The child to start; the last filter has the flags for a listener.
    fn spawn(&self, with_listener: bool) -> Spawn<'_> {
        let of_listener = Flag::NewListener | Flag::WaitKillableRecv;
        let last = self.filters.programs().len().wrapping_sub(1);
        let mut filters = Vec::new();
        for (filter, program) in self.filters.programs().iter().enumerate() {
            let own = self.filter_flags.get(filter).copied().unwrap_or_default();
            let wanted = self.flags | own;
            let flags = match with_listener && filter == last {
                true => wanted | Flag::NewListener,
                false => wanted.without(of_listener),
            };
            filters.push((program, flags));
        }
        Spawn {
            program: self.program.clone(),
            name: None,
            args: self.args.clone(),
            filters,
            no_new_privs: self.no_new_privs,
            forward_signals: self.forward_signals,
            die_with_parent: self.die_with_parent,
            body: None,
        }
    }
}

/// Runs a command to its end.
///
/// Descendants that outlive the command continue, untraced. Notified calls get no reply and fail with `ENOSYS`; see
/// [`supervise`].
///
/// # Errors
/// If the command was not executed: see [`RunError`].
pub fn run(command: &Command) -> Result<RunResult, RunError> {
    on_own_thread(|| run_here(command, None))
}

/// Runs a command to its end and replies to the calls that its last filter passes to user space.
///
/// The function is called on another thread, for one call at a time; the caller waits for it. It gets the listener
/// for [`Listener::is_waiting`] and [`Listener::add_fd`]. Once the command has ended, notified calls of surviving
/// descendants fail with `ENOSYS`.
///
/// # Errors
/// If the command was not executed: see [`RunError`].
///
/// # Panics
/// If the function panics.
pub fn supervise(
    command: &Command,
    mut answer: impl FnMut(&Listener, &Notification) -> Reply + Send,
) -> Result<RunResult, RunError> {
    on_own_thread(|| run_here(command, Some(&mut answer)))
}

/// Runs a function on a separate thread and waits for it.
fn on_own_thread<T: Send>(
    body: impl FnOnce() -> Result<T, RunError> + Send,
) -> Result<T, RunError> {
    thread::scope(|scope| {
        let spawned = thread::Builder::new()
            .name("tamis-run".to_owned())
            .spawn_scoped(scope, body)
            .map_err(start_error)?;
        spawned
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[expect(clippy::needless_pass_by_value, reason = "it is used with map_err")]
fn start_error(error: io::Error) -> RunError {
    RunError::Start(Errno(error.raw_os_error().unwrap_or(libc::EIO)))
}

fn run_here(command: &Command, answer: Option<&mut Answer<'_>>) -> Result<RunResult, RunError> {
    let stack = &command.filters;
    let spawn = command.spawn(answer.is_some());
    let held = spawn
        .start()
        .map_err(|error| RunError::from_spawn(error, stack))?;
    let Some(answer) = answer else {
        return run_to_end(command, held, stack).map(|(report, _)| report);
    };
    let pending = held.child().listener();
    let has_ended = AtomicBool::new(false);
    let (stop_reader, mut stop_writer) = io::pipe().map_err(start_error)?;
    thread::scope(|scope| {
        let answering = thread::Builder::new()
            .name("tamis-notify".to_owned())
            .spawn_scoped(scope, || {
                supervise::answer_until_end(&pending, &has_ended, &stop_reader, answer)
            })
            .map_err(start_error)?;
        let report = run_to_end(command, held, stack);
        has_ended.store(true, Ordering::Release);
        // A byte, because the pipe isn't closed while another thread is between fork and exec.
        let _ = stop_writer.write_all(&[1]);
        let answered = answering
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // The child closes a listener that hasn't been taken, so it is dropped after the last look for one.
        let (mut report, _child) = report?;
        match answered {
            Ok(false) => {}
            Ok(true) => report.notes.push(Note::TasksLeft),
            Err(error) => report.notes.push(Note::NotAnswered(error.errno)),
        }
        Ok(report)
    })
}

/// Releases a child and waits for its end; returns it with the report.
fn run_to_end(
    command: &Command,
    held: HeldChild,
    stack: &Stack,
) -> Result<(RunResult, Child), RunError> {
    let mut report = RunResult {
        ended: Ended::Exited(0),
        killed: Vec::new(),
        trapped: Vec::new(),
        notes: Vec::new(),
    };
    if command.forward_signals && !held.child().forwards_signals() {
        report.notes.push(Note::SignalsNotForwarded);
    }
    let is_traced = command.explain && start_tracing(&held, &mut report.notes);
    held.check_wait().map_err(RunError::NotWaitedFor)?;
    let mut child: Child = held.release();
    let ended = if is_traced {
        trace::until_end(&mut child, stack, &mut report)
    } else {
        child.wait()
    };
    report.ended = ended.map_err(RunError::NotWaitedFor)?;
    if let Some(error) = child.error() {
        return Err(RunError::from_spawn(error, stack));
    }
    if !child.has_filters() {
        report.notes.push(Note::NotExecuted);
    }
    Ok((report, child))
}

/// Attaches to the waiting child; without permission, it runs untraced.
fn start_tracing(held: &HeldChild, notes: &mut Vec<Note>) -> bool {
    match trace::attach(held) {
        Ok(_) => true,
        // It was already killed, and an ended process isn't traceable.
        Err(_) if Status::read(held.pid()).is_some_and(|status| status.is_dead()) => false,
        Err(error) => {
            notes.push(Note::NotTraced(error.errno));
            false
        }
    }
}

impl RunError {
    fn from_spawn(error: SpawnError, stack: &Stack) -> RunError {
        match error {
            SpawnError::ZeroByte => RunError::ZeroByte,
            SpawnError::Start { errno, .. } => RunError::Start(errno),
            SpawnError::Killed => RunError::Killed,
            SpawnError::Install { filter, error } => RunError::Install { filter, error },
            SpawnError::Exec(errno) => RunError::Exec {
                errno,
                denied_by: execve_denied_by(stack, errno),
            },
        }
    }
}

/// The filter that returns this error for `execve`. Its arguments are assumed to be zero: they are addresses, which
/// filters shouldn't test.
fn execve_denied_by(stack: &Stack, errno: Errno) -> Option<(usize, Action)> {
    let call = SeccompData {
        nr: libc::SYS_execve as u32,
        arch: tamis_abi::host::arch()?.audit(),
        ..SeccompData::default()
    };
    let (filter, action) = verdict(stack, &call)?;
    let answered = match action.kind {
        ActionKind::Errno => i32::from(action.data.min(errno::MAX)),
        // There is no tracer for this action and no listener.
        ActionKind::Trace | ActionKind::Notify => libc::ENOSYS,
        _ => return None,
    };
    (answered == errno.0).then_some((filter, action))
}

/// The verdict of the filters of a run, and the filter that decided; `None` if all allow the call.
fn verdict(stack: &Stack, call: &SeccompData) -> Option<(usize, Action)> {
    let run = stack.run(call);
    run.decided_by
        .map(|filter| (filter, Action::from_ret(run.ret)))
}
