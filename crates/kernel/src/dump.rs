//! Reading the filters of a running task: `PTRACE_SECCOMP_GET_FILTER`, kernel 4.4.
//!
//! The task is traced for a moment: attached with `PTRACE_SEIZE`, stopped with `PTRACE_INTERRUPT`, read,
//! and let go, with the signal that it was about to get if there was one. All this happens on a thread
//! of its own, so that however it ends, the kernel lets the task go.
//!
//! The kernel keeps the classic instructions as they were installed if it was built with
//! `CONFIG_CHECKPOINT_RESTORE`, and hands them to tracers that have `CAP_SYS_ADMIN` and no filter
//! themselves.

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
use crate::tracee::{Event, Options, Stopped, Tracee};

/// How often it is looked whether a task has stopped. One that sleeps where nothing can wake it, such
/// as a process whose `vfork` child hasn't started a program yet, doesn't. Looks are counted instead of
/// time, since on a machine under load everything takes longer but this.
const MAX_LOOKS: usize = 2000;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(1);
/// The bit of `CAP_SYS_ADMIN`.
const CAP_SYS_ADMIN: u32 = 21;

/// Why the filters of a task can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DumpError {
    /// There is no such task, or it has just ended.
    NoTask,
    /// It has ended, and its parent hasn't taken notice yet.
    Ended,
    /// It is in strict mode, which is no filter: only `read`, `write`, `_exit` and `sigreturn`.
    Strict,
    /// The caller lacks `CAP_SYS_ADMIN` in the first user namespace.
    NotPrivileged,
    /// The caller has a filter itself; the kernel refuses then.
    OwnFilter,
    /// Somebody else traces it.
    Traced {
        /// That process.
        tracer: u32,
    },
    /// Tracing it is not permitted: a security module, another user's task, a kernel thread.
    NotTraceable(Errno),
    /// It can't be stopped: it sleeps where nothing can wake it.
    DoesNotStop,
    /// The kernel doesn't keep the instructions: it lacks `CONFIG_CHECKPOINT_RESTORE`, or is older
    /// than 4.4.
    NotKept,
    /// The kernel has no classic instructions for this filter.
    NotClassic {
        /// Which one; the oldest is 0.
        index: usize,
    },
    /// The kernel hands out instructions that are no valid program.
    Invalid {
        /// Which filter; the oldest is 0.
        index: usize,
        /// What is wrong with it.
        error: InvalidProgram,
    },
    /// The kernel refused for a reason of its own.
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

/// The filters of a task, the oldest first; none if it has none, for which nothing needs to be
/// permitted.
///
/// A process is meant by the number of its first thread; others may have more filters. The task is
/// stopped for some microseconds a filter.
///
/// # Errors
/// See [`DumpError`].
pub fn dump(pid: i32) -> Result<Vec<Program>, DumpError> {
    let status = Status::of(pid).ok_or(DumpError::NoTask)?;
    if status.is_dead() {
        return Err(DumpError::Ended);
    }
    match status.number("Seccomp") {
        Some(0) => return Ok(Vec::new()),
        Some(1) => return Err(DumpError::Strict),
        // Without the field the kernel has the last word.
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
        let tracer = tracer.spawn_scoped(scope, || filters(pid));
        let refused = |error: io::Error| Errno(error.raw_os_error().unwrap_or(libc::EAGAIN));
        let tracer = tracer.map_err(|error| DumpError::Refused(refused(error)))?;
        tracer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The same, by this thread.
fn filters(pid: i32) -> Result<Vec<Program>, DumpError> {
    let stopped = stop(pid)?;
    let filters = filters_of(&stopped);
    let signal = stopped.signal();
    // It fails only if the task is gone.
    let _ = stopped.detach(signal);
    filters
}

/// Attaches to a task and stops it. If it doesn't stop, it is let go when this thread ends.
fn stop(pid: i32) -> Result<Stopped, DumpError> {
    let tracee = Tracee::seize(pid, Options::NONE).map_err(|error| match error.errno {
        Errno(libc::ESRCH) => DumpError::NoTask,
        // What has ended meanwhile isn't traceable either.
        _ if Status::of(pid).is_none_or(|status| status.is_dead()) => DumpError::Ended,
        errno => DumpError::NotTraceable(errno),
    })?;
    tracee.interrupt().map_err(|_| DumpError::NoTask)?;
    for _ in 0..MAX_LOOKS {
        match tracee.poll_stop() {
            Ok(Some(Event::Stopped(stopped))) => return Ok(stopped),
            // The end of a task is its parent's to take.
            Ok(Some(Event::Ended(_))) | Err(_) => return Err(DumpError::NoTask),
            Ok(None) => thread::sleep(PAUSE),
        }
    }
    Err(DumpError::DoesNotStop)
}

fn filters_of(stopped: &Stopped) -> Result<Vec<Program>, DumpError> {
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

/// Why a filter of a task that has some isn't handed out.
fn explain(errno: Errno, index: usize) -> DumpError {
    match errno.0 {
        libc::EACCES => DumpError::NotPrivileged,
        libc::ESRCH => DumpError::NoTask,
        libc::EMEDIUMTYPE => DumpError::NotClassic { index },
        libc::EINVAL | libc::EIO => DumpError::NotKept,
        _ => DumpError::Refused(errno),
    }
}
