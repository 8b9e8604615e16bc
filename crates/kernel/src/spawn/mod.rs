//! Starting a command under filters.
//!
//! [`Spawn::start`] forks a child that waits: it exists, can be traced, and does nothing until [`HeldChild::release`].
//! Then it installs its filters and executes the command. From the first filter on, its system calls may be denied, so
//! it reports errors through shared memory, and ends even if the filter denies `exit_group`. The command inherits
//! everything else: standard streams, environment, directory, signal mask.
//!
//! While a [`Child`] lives, signals from other processes to this one are forwarded to it on request; signals from
//! the terminal reach it anyway. A listener appears in this process without a call of the child:
//! [`PendingListener`].
//!
//! Not included are pipes, time limits and new sessions.

mod error;
mod forward;
mod listener;

use std::ffi::{CString, OsString};
use std::fmt;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tamis_bpf::{Insn, Program};

use crate::ended::Ended;
use crate::errno::Errno;
use crate::flags::{Flag, Flags};
use crate::install::{self, InstallError};
use crate::search;
use crate::sys::child::{self, Argv, Plan, Stage};
use crate::sys::page::SharedPage;
use crate::sys::signal::ChildReports;
use crate::sys::wait;
use crate::tracee::{Event, TraceError, Tracee};

pub use error::{SpawnError, Step};
use forward::Forwarding;
pub use forward::Signaller;
pub use listener::PendingListener;

/// A command, its filters, and the way it is tied to this process.
///
/// ```
/// use tamis_kernel::{Ended, spawn::Spawn};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let held = Spawn::new("true").start()?;
/// println!("process {} waits", held.pid());
/// let mut child = held.release();
/// assert_eq!(child.wait()?, Ended::Exited(0));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Spawn<'a> {
    /// The program: a path if it contains a slash, otherwise a name in `PATH`.
    pub program: OsString,
    /// `argv[0]`, if it differs from `program`.
    pub name: Option<OsString>,
    /// Its arguments, without the program's name.
    pub args: Vec<OsString>,
    /// The filters with their installation flags, the oldest first. Each must allow `seccomp`, to install the next.
    /// The last must allow `execve`, unless a [`body`](Self::body) takes its place.
    pub filters: Vec<(&'a Program, Flags)>,
    /// Set `no_new_privs` first; needed without `CAP_SYS_ADMIN`.
    pub no_new_privs: bool,
    /// Forward signals while the [`Child`] lives. Handlers are process-wide, so only one child at a time gets
    /// signals: see [`Child::forwards_signals`].
    pub forward_signals: bool,
    /// Kill the command if the calling *thread* ends first, even by `SIGKILL`. This doesn't apply to its
    /// descendants, and the kernel resets it if the command executes a program with privileges of its own.
    pub die_with_parent: bool,
    /// Code that the child runs before it executes the program, or instead.
    pub body: Option<&'a dyn Body>,
}

/// Code that a child runs before it executes a program, or instead.
///
/// Other threads of the parent may hold any lock at the moment of the fork: neither function may allocate, lock or
/// panic.
pub trait Body: fmt::Debug + Sync {
    /// Is called before the first filter, with all signals blocked and with the parent's table of descriptors.
    ///
    /// # Errors
    /// The child ends with this error as [`SpawnError::Exec`].
    fn prepare(&self) -> Result<(), Errno>;

    /// Is called under the filters. If it returns a reason why it couldn't begin, the child ends with that; if it returns
    /// nothing, the child executes the program.
    fn run(&self) -> Option<Errno>;
}

/// A child that waits to be [released](Self::release). Dropping it kills it.
#[derive(Debug)]
#[must_use = "dropping it kills the child"]
pub struct HeldChild {
    child: Child,
    gate: PipeWriter,
}

/// A child that installs its filters and executes its command, or has done so.
///
/// Dropping it before it has ended kills it. It belongs to the thread that started it.
#[derive(Debug)]
pub struct Child {
    pid: i32,
    ended: Option<Ended>,
    page: Arc<SharedPage>,
    /// The flags of each filter.
    flags: Vec<Flags>,
    /// The child may share the descriptor table, so the gate that it reads from must stay open here.
    _gate: PipeReader,
    forwarding: Forwarding,
    _reports: ChildReports,
}

impl<'a> Spawn<'a> {
    /// A command without arguments and filters, with `no_new_privs`, not tied to this process.
    pub fn new(program: impl Into<OsString>) -> Spawn<'a> {
        Spawn {
            program: program.into(),
            name: None,
            args: Vec::new(),
            filters: Vec::new(),
            no_new_privs: true,
            forward_signals: false,
            die_with_parent: false,
            body: None,
        }
    }

    /// Forks the child, which waits until it is released.
    ///
    /// # Errors
    /// See [`SpawnError`]; [`Child::error`] reports errors in the child.
    pub fn start(&self) -> Result<HeldChild, SpawnError> {
        let argv = self.argv()?;
        let filters = self.installations()?;
        let flags: Vec<Flags> = filters.iter().map(|(_, flags)| *flags).collect();
        let page = SharedPage::new().map_err(|errno| Step::Memory.failed(errno))?;
        let (gate_reader, gate) = io::pipe().map_err(|error| Step::Pipe.failed_io(&error))?;
        let reports = ChildReports::keep();
        let forwarding = Forwarding::start(self.forward_signals)?;
        let plan = Plan {
            argv: &argv,
            filters: &filters,
            no_new_privs: self.no_new_privs,
            reset_signals: &forwarding.reset_in_child(),
            ignores_children: reports.is_ignored,
            gate: gate_reader.as_fd(),
            die_with_parent: self.die_with_parent,
            share_files: flags.iter().any(|flags| flags.contains(Flag::NewListener)),
            page: &page,
            body: self.body,
        };
        let spawn = || child::spawn(&plan).map_err(|errno| Step::Fork.failed(errno));
        let pid = forwarding.spawn(spawn)?;
        let child = Child {
            pid,
            ended: None,
            page: Arc::new(page),
            flags,
            _gate: gate_reader,
            forwarding,
            _reports: reports,
        };
        Ok(HeldChild { child, gate })
    }

    fn argv(&self) -> Result<Argv, SpawnError> {
        let terminated = |text: &OsString| {
            CString::new(text.clone().into_vec()).map_err(|_| SpawnError::ZeroByte)
        };
        let args = self.args.iter().map(terminated).collect::<Result<_, _>>()?;
        let program = terminated(&self.program)?;
        let files = search::candidates(&self.program);
        let files = files.into_iter().map(|file| terminated(&file.into()));
        let files = files.collect::<Result<_, _>>()?;
        let name = self.name.as_ref().map_or(Ok(program), terminated)?;
        Ok(Argv::new(files, name, args))
    }

    /// The filters in the form for the child.
    fn installations(&self) -> Result<Vec<(&[Insn], Flags)>, SpawnError> {
        let checked = |(filter, (program, flags)): (usize, &(&'a Program, Flags))| {
            install::check(program, *flags)
                .map_err(|error| SpawnError::Install { filter, error })?;
            Ok((program.insns(), *flags))
        };
        self.filters.iter().enumerate().map(checked).collect()
    }
}

impl HeldChild {
    /// The child's process number.
    pub const fn pid(&self) -> i32 {
        self.child.pid
    }

    /// The child, which still waits.
    pub const fn child(&self) -> &Child {
        &self.child
    }

    /// Checks whether this process can wait for the child; otherwise the command should not start.
    ///
    /// # Errors
    /// The error of `waitid`: a filter that this process has inherited may deny it.
    pub fn check_wait(&self) -> Result<(), Errno> {
        wait::check_allowed(self.child.pid)
    }

    /// Lets the child install its filters and execute its command.
    pub fn release(self) -> Child {
        let HeldChild { child, mut gate } = self;
        // If this fails, the child is gone, and waiting for it gives the reason.
        let _ = gate.write_all(&[1]);
        child
    }
}

impl Child {
    /// Its process number.
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether signals are forwarded to it: false if not requested, or if another child gets them.
    pub const fn forwards_signals(&self) -> bool {
        self.forwarding.is_active()
    }

    /// The listener of its filters, which can be taken from any thread once the child has installed it.
    pub fn listener(&self) -> PendingListener {
        PendingListener::new(Arc::clone(&self.page))
    }

    /// Blocks until it has ended. For a child that is traced, use
    /// [`tracee::next`](crate::tracee::next) and [`poll`](Self::poll).
    ///
    /// # Errors
    /// The error of `waitid` or `wait4`: a filter that this process has inherited may deny them.
    pub fn wait(&mut self) -> Result<Ended, Errno> {
        loop {
            if let Some(ended) = self.ended {
                return Ok(ended);
            }
            wait::peek_end(self.pid)?;
            self.take(self.pid)?;
        }
    }

    /// The report of the child or of another tracee of this thread, if there is one. Use this for reports of a
    /// traced child: if [`Tracee::wait`] or [`Tracee::poll`] takes its end, [`wait`](Self::wait) can't return it.
    ///
    /// # Errors
    /// As [`Tracee::poll`].
    pub fn poll(&mut self, tracee: Tracee) -> Result<Option<Event>, TraceError> {
        let event = self.take(tracee.tid());
        tracee.event(event)
    }

    /// Blocks until the child or any other tracee of this thread has a report, and takes it.
    ///
    /// # Errors
    /// [`Request::Wait`](crate::tracee::Request::Wait) with `ECHILD` if neither is left.
    pub fn next_event(&mut self) -> Result<(Tracee, Event), TraceError> {
        let reaped = self.forwarding.reap_next();
        if let Ok((tid, wait::Event::Ended(ended))) = reaped
            && tid == self.pid
        {
            self.ended = Some(ended);
        }
        Tracee::reported(reaped)
    }

    /// Whether [`next_event`](Self::next_event) wouldn't block.
    pub fn has_event(&self) -> bool {
        wait::is_any_reported()
    }

    /// The means to send it signals.
    pub fn signaller(&self) -> Signaller {
        self.forwarding.signaller()
    }

    fn take(&mut self, tid: i32) -> Result<Option<wait::Event>, Errno> {
        let event = self.forwarding.reap(tid)?;
        if let (true, Some(wait::Event::Ended(ended))) = (tid == self.pid, event) {
            self.ended = Some(ended);
        }
        Ok(event)
    }

    /// Whether it has all its filters: later events concern the command or its execution.
    pub fn has_filters(&self) -> bool {
        matches!(Stage::load(&self.page), Stage::Exec | Stage::Returned)
    }

    /// The error that kept the child from executing its command; `None` if it hasn't failed.
    pub fn error(&self) -> Option<SpawnError> {
        let errno = Errno(self.page.errno.load(Ordering::Acquire));
        let filter = self.page.filter.load(Ordering::Acquire) as usize;
        let stage = Stage::load(&self.page);
        if errno.0 == 0 && stage != Stage::Returned {
            let is_killed = self.ended.is_some_and(|ended| ended.is_by(libc::SIGSYS));
            let error = match stage {
                Stage::Exec | Stage::Returned => return None,
                Stage::Start => SpawnError::Killed,
                Stage::NoNewPrivs | Stage::Install => SpawnError::Install {
                    filter,
                    error: InstallError::Killed,
                },
            };
            return is_killed.then_some(error);
        }
        Some(match stage {
            Stage::Start => Step::Child.failed(errno),
            Stage::NoNewPrivs => SpawnError::Install {
                filter: 0,
                error: InstallError::NoNewPrivs(errno),
            },
            Stage::Install => {
                let flags = self.flags.get(filter).copied().unwrap_or_default();
                SpawnError::Install {
                    filter,
                    error: install::explain(errno, flags),
                }
            }
            Stage::Exec | Stage::Returned => SpawnError::Exec(errno),
        })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.forwarding.give_up();
        }
        // A listener that was not taken.
        drop(self.listener().take());
    }
}
