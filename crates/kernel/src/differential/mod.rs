//! Tests of programs in the running kernel, for comparison with tamis.
//!
//! | test | method | limits |
//! |---|---|---|
//! | [`checker_answers`]: is a list of instructions accepted? | installation in which only the last check fails | none |
//! | [`calls`](mod@calls): outcome of a stack for a call | real calls, traced | `log` looks like `allow`; invisible data |
//! | [`packets`](mod@packets): return value of a program for sixteen words | socket filter | loads have network byte order |
//!
//! The calls for which no filter runs are observable only by timing: see [`bitmap`](crate::measure::bitmap).
//! [`check`](check::check) runs all three tests for programs and calls.
//!
//! None of this needs more rights than installing a filter and tracing a child, and nothing persists after a test.
//! Other interfaces are unsuitable: `bpf(2)` accepts no classic programs, so its `BPF_PROG_TEST_RUN` would test a
//! translation instead of the program, and the kernel doesn't give descriptors of installed filters.

pub mod calls;
pub mod check;
pub mod packets;
mod releases;

use std::error;
use std::fmt;
use std::io;
use std::thread;

use tamis_abi::Action;
use tamis_bpf::{Insn, Op, Program};

use crate::errno::Errno;
use crate::flags::{Flag, Flags};
use crate::install::{Install, InstallError, install};
use crate::sys::seccomp;
use crate::tracee::TraceError;

use self::releases::ReleaseCounter;

/// The reason why a test in the kernel failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskError {
    /// Calls are supported on x86-64 and AArch64 only.
    NotHere,
    /// A process, a thread, shared memory or a socket could not be created.
    Start(Errno),
    /// The process that makes the calls may not be traced.
    NotTraced(Errno),
    /// A filter could not be installed.
    Refused {
        /// The index of the filter, counted from the oldest.
        filter: usize,
        /// The reason.
        error: InstallError,
    },
    /// The process that makes the calls was not killed by its filters, but otherwise.
    Died {
        /// The signal, if any.
        signal: Option<i32>,
    },
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::NotHere => {
                f.write_str("the kernel is asked about calls on x86-64 and AArch64 only")
            }
            AskError::Start(errno) => write!(f, "the kernel could not be asked: {errno}"),
            AskError::NotTraced(errno) => {
                write!(
                    f,
                    "the process that makes the calls may not be traced: {errno}"
                )
            }
            AskError::Refused { filter, error } => {
                write!(f, "filter {filter} could not be installed: {error}")
            }
            AskError::Died { signal: None } => {
                f.write_str("the process that makes the calls ended before it was done")
            }
            AskError::Died {
                signal: Some(signal),
            } => write!(
                f,
                "the process that makes the calls was killed by signal {signal}"
            ),
        }
    }
}

impl error::Error for AskError {}

impl From<io::Error> for AskError {
    fn from(error: io::Error) -> AskError {
        AskError::Start(Errno(error.raw_os_error().unwrap_or(libc::EIO)))
    }
}

impl From<TraceError> for AskError {
    fn from(error: TraceError) -> AskError {
        AskError::Start(error.errno)
    }
}

/// The answer of the kernel's checker to a list of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckerAnswer {
    /// It would be installed, if there is room.
    Accepted,
    /// It is rejected.
    Refused(Errno),
}

impl fmt::Display for CheckerAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckerAnswer::Accepted => f.write_str("accepted"),
            CheckerAnswer::Refused(errno) => write!(f, "refused: {errno}"),
        }
    }
}

/// The answer of the kernel's checker to each list of instructions; lists of more than 65535 are treated as having
/// 65535.
///
/// Only a filter that allows everything and has a listener is installed, on a thread that ends afterwards. The
/// kernel rejects a second listener with `EBUSY`, but only after it has checked and converted the program. Takes
/// some ten microseconds per list. Kernel 5.0.
///
/// # Errors
/// [`AskError::Start`] without a thread, [`AskError::Refused`] if not even that filter can be installed.
pub fn checker_answers(lists: &[Vec<Insn>]) -> Result<Vec<CheckerAnswer>, AskError> {
    thread::scope(|scope| {
        let asking = thread::Builder::new().spawn_scoped(scope, || checker_answers_here(lists));
        asking?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Permanently installs a filter on the calling thread.
fn checker_answers_here(lists: &[Vec<Insn>]) -> Result<Vec<CheckerAnswer>, AskError> {
    let allow = vec![Insn::from(Op::RetImm(Action::ALLOW.ret()))];
    let allow = Program::new(allow, crate::NATIVE_ENDIAN).expect("one return is a program");
    let with_listener = Flags::from(Flag::NewListener);
    let how = Install {
        flags: with_listener,
        no_new_privs: true,
    };
    let _installed =
        install(&allow, &how).map_err(|error| AskError::Refused { filter: 0, error })?;
    let releases = ReleaseCounter::default();
    let answer = |insns: &Vec<Insn>| {
        let insns = &insns[..insns.len().min(usize::from(u16::MAX))];
        let installed = seccomp::set_filter(insns, with_listener);
        releases.step();
        match installed {
            Ok(_) | Err(Errno(libc::EBUSY)) => CheckerAnswer::Accepted,
            Err(errno) => CheckerAnswer::Refused(errno),
        }
    };
    Ok(lists.iter().map(answer).collect())
}
