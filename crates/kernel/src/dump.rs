//! Reading the filters of a running task: `PTRACE_SECCOMP_GET_FILTER`, kernel 4.4.
//!
//! The task is traced briefly: attached with `PTRACE_SEIZE`, stopped with `PTRACE_INTERRUPT`, read, and detached,
//! with its pending signal if there was one. This runs on a separate thread, so that the kernel releases the task
//! in any case.
//!
//! The kernel keeps the classic instructions if it was built with `CONFIG_CHECKPOINT_RESTORE`, and returns them to
//! tracers that have `CAP_SYS_ADMIN` and no filter themselves.

use std::error;
use std::fmt;
use std::io;
use std::thread;
use std::time::Duration;

use tamis_bpf::InvalidProgram;
use tamis_bpf::{Insn, Program};

use crate::errno::Errno;
use crate::status::Status;
use crate::sys::seccomp;
use crate::tracee::{Event, Stopped, TraceOptions, Tracee};

/// The most polls for the stop of a task. A task in uninterruptible sleep, such as a process whose `vfork` child
/// hasn't started a program yet, doesn't stop. Polls are counted instead of time, which depends on the load of the
/// machine.
const MAX_LOOKS: usize = 2000;
/// The pause between two polls.
const PAUSE: Duration = Duration::from_millis(1);
/// The bit of `CAP_SYS_ADMIN`.
const CAP_SYS_ADMIN: u32 = 21;

/// The reason why the filters of a task can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DumpError {
    /// There is no such task, or it has just ended.
    NoTask,
    /// It has ended, but its parent hasn't reaped it yet.
    Ended,
    /// It is in strict mode, which has no filter: only `read`, `write`, `_exit` and `sigreturn`.
    Strict,
    /// The caller lacks `CAP_SYS_ADMIN` in the first user namespace.
    NotPrivileged,
    /// The caller has a filter itself, which the kernel rejects.
    OwnFilter,
    /// Another process traces it.
    Traced {
        /// The tracing process.
        tracer: u32,
    },
    /// Tracing it is not permitted: a security module, another user's task, a kernel thread.
    NotTraceable(Errno),
    /// It can't be stopped: it is in uninterruptible sleep.
    DoesNotStop,
    /// The kernel doesn't keep the instructions: it lacks `CONFIG_CHECKPOINT_RESTORE`, or is older
    /// than 4.4.
    NotKept,
    /// The kernel has no classic instructions for this filter.
    NotClassic {
        /// The index of the filter; the oldest is 0.
        index: usize,
    },
    /// The kernel returned instructions that are not a valid program.
    Invalid {
        /// The index of the filter; the oldest is 0.
        index: usize,
        /// The error.
        error: InvalidProgram,
    },
    /// The kernel failed with another error.
    Refused(Errno),
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DumpError::NoTask => f.write_str("there is no such process"),
            DumpError::Ended => f.write_str("it has ended"),
            DumpError::Strict => f.write_str("it is in strict mode, which is no filter"),
            DumpError::NotPrivileged => f.write_str("reading filters needs CAP_SYS_ADMIN"),
            DumpError::OwnFilter => f.write_str(
                "the kernel shows filters only to processes without any, and this one has one",
            ),
            DumpError::Traced { tracer } => write!(f, "process {tracer} traces it"),
            DumpError::NotTraceable(errno) => write!(f, "tracing it is not permitted: {errno}"),
            DumpError::DoesNotStop => {
                write!(f, "it had not stopped at any of {MAX_LOOKS} looks")
            }
            DumpError::NotKept => f.write_str(
                "the kernel does not keep the instructions of filters: it lacks \
                 CONFIG_CHECKPOINT_RESTORE",
            ),
            DumpError::NotClassic { index } => {
                write!(f, "filter {index} has no classic instructions")
            }
            DumpError::Invalid { index, error } => {
                write!(f, "filter {index} is no valid program: {error}")
            }
            DumpError::Refused(errno) => write!(f, "the kernel refused: {errno}"),
        }
    }
}

impl error::Error for DumpError {}

/// The filters of a task, the oldest first. Empty if it has none, which needs no permissions.
///
/// The number of a process selects its first thread; other threads may have more filters. The task is stopped for
/// some microseconds per filter.
///
/// # Errors
/// See [`DumpError`].
pub fn dump(pid: i32) -> Result<Vec<Program>, DumpError> {
    let status = Status::read(pid).ok_or(DumpError::NoTask)?;
    if status.is_dead() {
        return Err(DumpError::Ended);
    }
    match status.number("Seccomp") {
        Some(0) => return Ok(Vec::new()),
        Some(1) => return Err(DumpError::Strict),
        // Without the field, the kernel's own checks decide.
        _ => {}
    }
    if let Some(tracer @ 1..) = status.number("TracerPid") {
        return Err(DumpError::Traced { tracer });
    }
    if seccomp::mode().is_ok_and(|mode| mode != 0) {
        return Err(DumpError::OwnFilter);
    }
    let own = Status::of_this_thread();
    if own.and_then(|own| own.bit("CapEff", CAP_SYS_ADMIN)) == Some(false) {
        return Err(DumpError::NotPrivileged);
    }
    thread::scope(|scope| {
        let tracer = thread::Builder::new();
        let tracer = tracer.spawn_scoped(scope, || briefly_stopped(pid));
        let refused = |error: io::Error| Errno(error.raw_os_error().unwrap_or(libc::EAGAIN));
        let tracer = tracer.map_err(|error| DumpError::Refused(refused(error)))?;
        tracer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The same, on this thread.
fn briefly_stopped(pid: i32) -> Result<Vec<Program>, DumpError> {
    let stopped = stop(pid)?;
    let filters = filters(&stopped);
    let signal = stopped.signal();
    // It fails only if the task is gone.
    let _ = stopped.detach(signal);
    filters
}

/// Attaches to a task and stops it. If it doesn't stop, it is released when this thread ends.
fn stop(pid: i32) -> Result<Stopped, DumpError> {
    let tracee = Tracee::seize(pid, TraceOptions::NONE).map_err(|error| match error.errno {
        Errno(libc::ESRCH) => DumpError::NoTask,
        // An ended task isn't traceable either.
        _ if Status::read(pid).is_none_or(|status| status.is_dead()) => DumpError::Ended,
        errno => DumpError::NotTraceable(errno),
    })?;
    tracee.interrupt().map_err(|_| DumpError::NoTask)?;
    for _ in 0..MAX_LOOKS {
        match tracee.poll_stop() {
            Ok(Some(Event::Stopped(stopped))) => return Ok(stopped),
            // Only the parent may reap the task.
            Ok(Some(Event::Ended(_))) | Err(_) => return Err(DumpError::NoTask),
            Ok(None) => thread::sleep(PAUSE),
        }
    }
    Err(DumpError::DoesNotStop)
}

/// The filters of a task that this thread traces and that has stopped, the oldest first.
///
/// # Errors
/// See [`DumpError`].
pub fn filters(stopped: &Stopped) -> Result<Vec<Program>, DumpError> {
    let status = Status::read(stopped.tracee().tid()).ok_or(DumpError::NoTask)?;
    // The kernel has an error for it that also means others.
    if status.number("Seccomp") == Some(0) {
        return Ok(Vec::new());
    }
    let mut filters = Vec::new();
    loop {
        let index = filters.len();
        let insns: Vec<Insn> = match stopped.filter(index) {
            Ok(insns) => insns,
            Err(error) if error.errno == Errno::ENOENT => return Ok(filters),
            Err(error) => return Err(explain(error.errno, index)),
        };
        let program = Program::new(insns, crate::NATIVE_ENDIAN);
        filters.push(program.map_err(|error| DumpError::Invalid { index, error })?);
    }
}

/// The reason why the kernel doesn't return a filter.
fn explain(errno: Errno, index: usize) -> DumpError {
    match errno.0 {
        libc::EACCES => DumpError::NotPrivileged,
        libc::ESRCH => DumpError::NoTask,
        libc::EMEDIUMTYPE => DumpError::NotClassic { index },
        libc::EINVAL | libc::EIO => DumpError::NotKept,
        _ => DumpError::Refused(errno),
    }
}
