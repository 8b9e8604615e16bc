//! Running a command under filters.
//!
//! The child installs the filters after the fork, right before `execvp`. From then on its system
//! calls may be denied, so it reports what went wrong through shared memory, and gives up even where
//! the filter denies `exit_group`. The command inherits everything else: standard streams,
//! environment, directory, signal mask.
//!
//! The caller's process may have other children and threads: everything happens on a thread of its
//! own, which waits for its own children only. While it waits, signals from other processes are
//! forwarded to the command if the caller wants that; those from the terminal reach it without help.
//! With [`Command::explain`], the thread also traces the command
//! and all its descendants to tell which call got one of them killed.
//!
//! What it doesn't do: no pipes, no time limit, no new session; a caller that wants to capture output
//! redirects its own standard streams or uses a shell.

mod forward;
mod report;
mod supervise;
mod task;
mod trace;

use std::ffi::{CString, OsString};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tamis_abi::{Action, ActionKind, SeccompData};
use tamis_bpf::stack::Stack;
use tamis_bpf::{Insn, Program};

use crate::errno::Errno;
use crate::flags::{Flag, Flags};
use crate::install::{self, InstallError};
use crate::notify::{Listener, Notification, Reply};
use crate::status::Status;
use crate::sys::child::{self, Argv, Plan, Stage};
use crate::sys::page::SharedPage;
use crate::sys::signal::ChildReports;
use crate::sys::wait::{self, Event};

use forward::Forwarding;
pub use report::{Ended, Killed, Note, Report, RunError, Scope, Trapped};
use supervise::Answer;

/// A command and the filters that it is to run under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program: a path if it contains a slash, else a name to be looked for in `PATH`.
    pub program: OsString,
    /// Its arguments, without the program's name.
    pub args: Vec<OsString>,
    /// The filters, the oldest first. Each must allow what installing the next needs: `seccomp`.
    /// The last must allow `execve`.
    pub filters: Vec<Program>,
    /// The flags of each installation. Those for a listener are up to [`run`] and [`supervise`]:
    /// [`Flag::NewListener`] is ignored, [`Flag::WaitKillableRecv`] used by the latter.
    pub flags: Flags,
    /// Flags of single installations in addition, in the order of [`filters`](Self::filters); none
    /// for those beyond its end.
    pub filter_flags: Vec<Flags>,
    /// Set `no_new_privs` first; needed without `CAP_SYS_ADMIN`.
    pub no_new_privs: bool,
    /// Trace the command to tell which call got it killed. Costs about a stop for each signal, new
    /// thread and new process, and keeps debuggers from attaching; system calls stay as fast.
    pub explain: bool,
    /// Forward signals while waiting. They are process-wide, so only one run at a time can.
    pub forward_signals: bool,
    /// Kill the command if the calling process dies first, even of `SIGKILL`; not its descendants,
    /// and the kernel forgets it when the command executes a program with privileges of its own.
    pub die_with_parent: bool,
}

impl Command {
    /// A command without arguments and filters, with `no_new_privs`, explained, without forwarding.
    pub fn new(program: impl Into<OsString>) -> Command {
        Command {
            program: program.into(),
            args: Vec::new(),
            filters: Vec::new(),
            flags: Flags::NONE,
            filter_flags: Vec::new(),
            no_new_privs: true,
            explain: true,
            forward_signals: false,
            die_with_parent: false,
        }
    }

    fn argv(&self) -> Result<Argv, RunError> {
        let terminated =
            |text: &OsString| CString::new(text.clone().into_vec()).map_err(|_| RunError::ZeroByte);
        let args = self.args.iter().map(terminated).collect::<Result<_, _>>()?;
        Ok(Argv::new(terminated(&self.program)?, args))
    }

    /// The filters as the child takes them; the last one has the flags that go with a listener.
    fn installations(&self, with_listener: bool) -> Result<Vec<(&[Insn], Flags)>, RunError> {
        let of_listener = Flag::NewListener | Flag::WaitKillableRecv;
        let last = self.filters.len().wrapping_sub(1);
        let mut installations = Vec::new();
        for (filter, program) in self.filters.iter().enumerate() {
            let own = self.filter_flags.get(filter).copied().unwrap_or_default();
            let wanted = self.flags | own;
            let flags = match with_listener && filter == last {
                true => wanted | Flag::NewListener,
                false => wanted.without(of_listener),
            };
            install::check(program, flags).map_err(|error| RunError::Install { filter, error })?;
            installations.push((program.insns(), flags));
        }
        Ok(installations)
    }
}

/// Runs a command to its end.
///
/// Descendants that outlive the command go on, untraced. Nobody answers notified calls: they fail
/// with `ENOSYS`; see [`supervise`].
///
/// # Errors
/// If the command was not executed: see [`RunError`].
pub fn run(command: &Command) -> Result<Report, RunError> {
    on_own_thread(|| run_here(command, None))
}

/// Runs a command to its end and answers the calls that its last filter hands to user space.
///
/// The function is called on another thread, for one call at a time; while it runs, the caller
/// waits. It gets the listener for [`Listener::is_waiting`] and [`Listener::add_fd`]. Once the command has ended, notified calls of surviving descendants fail with `ENOSYS`.
///
/// # Errors
/// If the command was not executed: see [`RunError`].
///
/// # Panics
/// If the function does.
pub fn supervise(
    command: &Command,
    mut answer: impl FnMut(&Listener, &Notification) -> Reply + Send,
) -> Result<Report, RunError> {
    on_own_thread(|| run_here(command, Some(&mut answer)))
}

/// Runs a function on a thread of its own and waits for it.
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

fn run_here(command: &Command, answer: Option<&mut Answer<'_>>) -> Result<Report, RunError> {
    let page = SharedPage::new().map_err(RunError::Start)?;
    let Some(answer) = answer else {
        return run_with(command, &page, false);
    };
    let has_ended = AtomicBool::new(false);
    let (stop_reader, mut stop_writer) = io::pipe().map_err(start_error)?;
    thread::scope(|scope| {
        let answering = thread::Builder::new()
            .name("tamis-notify".to_owned())
            .spawn_scoped(scope, || {
                supervise::answer_until_end(&page, &has_ended, &stop_reader, answer)
            })
            .map_err(start_error)?;
        let report = run_with(command, &page, true);
        has_ended.store(true, Ordering::Release);
        // A byte, because the end of the pipe is held back by whoever is between fork and exec.
        let _ = stop_writer.write_all(&[1]);
        let answered = answering
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let mut report = report?;
        if let Err(errno) = answered {
            report.notes.push(Note::NotAnswered(errno));
        }
        Ok(report)
    })
}

fn run_with(command: &Command, page: &SharedPage, with_listener: bool) -> Result<Report, RunError> {
    let argv = command.argv()?;
    let filters = command.installations(with_listener)?;
    let (gate_reader, mut gate_writer) = io::pipe().map_err(start_error)?;
    let stack = Stack::new(command.filters.clone());
    let mut report = Report {
        ended: Ended::Exited(0),
        killed: Vec::new(),
        trapped: Vec::new(),
        notes: Vec::new(),
    };
    let child_reports = ChildReports::keep();
    thread::scope(|scope| {
        let forwarding = Forwarding::start(scope, command.forward_signals, &mut report.notes)?;
        let plan = Plan {
            argv: &argv,
            filters: &filters,
            no_new_privs: command.no_new_privs,
            reset_signals: &forwarding.reset_in_child(),
            ignores_children: child_reports.is_ignored,
            gate: gate_reader.as_fd(),
            die_with_parent: command.die_with_parent,
            share_files: with_listener,
            page,
        };
        let pid = forwarding.spawn(|| child::spawn(&plan).map_err(RunError::Start))?;
        let is_traced = command.explain && start_tracing(pid, &mut report.notes);
        // If this fails, the child is gone, and waiting for it tells how.
        let _ = gate_writer.write_all(&[1]);
        let ended = if is_traced {
            trace::until_end(pid, &stack, &forwarding, &mut report)
        } else {
            until_end(pid, &forwarding)
        };
        report.ended = ended.map_err(|errno| {
            forwarding.give_up(pid);
            RunError::NotWaitedFor(errno)
        })?;
        failure_of_child(page, report.ended, &filters, &stack).map_or(Ok(()), Err)?;
        if Stage::of(page) != Stage::Exec {
            report.notes.push(Note::NotExecuted);
        }
        Ok(())
    })?;
    Ok(report)
}

/// Attaches to the child, which waits at the gate; without the right to, it runs untraced.
fn start_tracing(pid: libc::pid_t, notes: &mut Vec<Note>) -> bool {
    match trace::attach(pid) {
        Ok(()) => true,
        // Somebody has killed it already, and what has ended isn't traceable.
        Err(_) if Status::of(pid).is_some_and(|status| status.is_dead()) => false,
        Err(errno) => {
            notes.push(Note::NotTraced(errno));
            false
        }
    }
}

/// Waits for an untraced child.
fn until_end(pid: libc::pid_t, forwarding: &Forwarding) -> Result<Ended, Errno> {
    loop {
        wait::peek_end(pid)?;
        if let Some(ended) = forwarding.reap(pid)?.and_then(ended) {
            return Ok(ended);
        }
    }
}

/// The end of a process, if the event is one.
fn ended(event: Event) -> Option<Ended> {
    match event {
        Event::Exited(code) => Some(Ended::Exited(code as u8)),
        Event::Signalled {
            signal,
            core_dumped,
        } => Some(Ended::Signalled {
            signal,
            core_dumped,
        }),
        Event::Stopped { .. } => None,
    }
}

/// What kept a child that has ended from executing the command, if anything did.
fn failure_of_child(
    page: &SharedPage,
    ended: Ended,
    filters: &[(&[Insn], Flags)],
    stack: &Stack,
) -> Option<RunError> {
    let errno = Errno(page.errno.load(Ordering::Acquire));
    let filter = page.filter.load(Ordering::Acquire) as usize;
    let stage = Stage::of(page);
    if errno.0 == 0 {
        let signal = libc::SIGSYS;
        let is_sigsys = matches!(ended, Ended::Signalled { signal: found, .. } if found == signal);
        return (is_sigsys && stage != Stage::Exec).then_some(RunError::Install {
            filter,
            error: InstallError::Killed,
        });
    }
    Some(match stage {
        Stage::Start => RunError::Start(errno),
        Stage::NoNewPrivs => RunError::Install {
            filter: 0,
            error: InstallError::NoNewPrivs(errno),
        },
        Stage::Install => RunError::Install {
            filter,
            error: install::explain(
                errno,
                filters.get(filter).map_or(Flags::NONE, |(_, flags)| *flags),
            ),
        },
        Stage::Exec => RunError::Exec {
            errno,
            denied_by: execve_denied_by(stack, errno),
        },
    })
}

/// The filter that answers `execve` with this error. Its arguments are taken to be zero: they are
/// addresses, which no sensible filter looks at.
fn execve_denied_by(stack: &Stack, errno: Errno) -> Option<(usize, Action)> {
    let call = SeccompData {
        nr: libc::SYS_execve as u32,
        arch: crate::native_arch()?.audit(),
        ..SeccompData::default()
    };
    let (filter, action) = verdict(stack, &call)?;
    let answered = match action.kind {
        ActionKind::Errno => i32::from(action.data.min(MAX_ERRNO)),
        // Nobody traces for the sake of this action, and nobody listens.
        ActionKind::Trace | ActionKind::Notify => libc::ENOSYS,
        _ => return None,
    };
    (answered == errno.0).then_some((filter, action))
}

/// The largest error number that the kernel lets a filter answer with.
const MAX_ERRNO: u16 = 4095;

/// What the filters of a run answer, and which of them; `None` if all allow the call.
fn verdict(stack: &Stack, call: &SeccompData) -> Option<(usize, Action)> {
    let run = stack.run(&call.image(crate::NATIVE_ENDIAN));
    run.decided_by
        .map(|filter| (filter, Action::from_ret(run.ret)))
}
