//! Asking the running kernel about programs, to compare what it does with what tamis says.
//!
//! | question | how it is asked | what it can't tell |
//! |---|---|---|
//! | [`verdicts`]: is a list of instructions taken? | installed where only the last check fails | nothing |
//! | [`calls`](mod@calls): what does a stack answer to a call? | real calls, traced | `log` from `allow`; data that nobody sees |
//! | [`packets`](mod@packets): what does a program return for sixteen words? | as the filter of a socket | loads are the network's |
//!
//! For which calls no filter runs at all only shows in how long they take: see
//! [`bitmap`](crate::measure::bitmap). [`check`](check::check) asks all three about some programs and
//! calls at once.
//!
//! None of it needs more rights than installing a filter and tracing a child, and nothing outlives a
//! question. Other ways into the kernel don't fit: `bpf(2)` takes no classic programs, so that its
//! `BPF_PROG_TEST_RUN` would judge a translation instead of the program, and the kernel hands nobody a
//! descriptor of an installed filter.

pub mod calls;
pub mod check;
mod pace;
pub mod packets;

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

use self::pace::Pace;

/// Why the kernel could not be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskError {
    /// Calls are made on x86-64 only.
    NotHere,
    /// A process, a thread, shared memory or a socket could not be made.
    Start(Errno),
    /// The process that makes the calls may not be traced.
    NotTraced(Errno),
    /// A filter could not be installed.
    Refused {
        /// Which one, counted from the oldest.
        filter: usize,
        /// Why.
        error: InstallError,
    },
    /// The process that makes the calls was killed by something else than its filters.
    Died {
        /// The signal, if one did.
        signal: Option<i32>,
    },
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::NotHere => f.write_str("the kernel is asked about calls on x86-64 only"),
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

/// The kernel's word on installing a list of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It would be installed if there is room.
    Accepted,
    /// It is refused.
    Refused(Errno),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Accepted => f.write_str("accepted"),
            Verdict::Refused(errno) => write!(f, "refused: {errno}"),
        }
    }
}

/// The kernel's verdict on each list of instructions; lists of more than 65535 count as that long.
///
/// Nothing is installed but a filter that allows everything and has a listener, on a thread that ends
/// afterwards. A second listener is refused with `EBUSY`, and the kernel says so only after it has
/// checked and translated the program. Takes some ten microseconds a list. Kernel 5.0.
///
/// # Errors
/// [`AskError::Start`] without a thread, [`AskError::Refused`] if not even that filter can be installed.
pub fn verdicts(lists: &[Vec<Insn>]) -> Result<Vec<Verdict>, AskError> {
    thread::scope(|scope| {
        let asking = thread::Builder::new().spawn_scoped(scope, || verdicts_here(lists));
        asking?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Gives the calling thread a filter for good.
fn verdicts_here(lists: &[Vec<Insn>]) -> Result<Vec<Verdict>, AskError> {
    let allow = vec![Insn::from(Op::RetImm(Action::ALLOW.ret()))];
    let allow = Program::new(allow, crate::NATIVE_ENDIAN).expect("one return is a program");
    let with_listener = Flags::from(Flag::NewListener);
    let how = Install {
        flags: with_listener,
        no_new_privs: true,
    };
    let _installed =
        install(&allow, &how).map_err(|error| AskError::Refused { filter: 0, error })?;
    let pace = Pace::default();
    let verdict = |insns: &Vec<Insn>| {
        let insns = &insns[..insns.len().min(usize::from(u16::MAX))];
        let answer = seccomp::set_filter(insns, with_listener);
        pace.step();
        match answer {
            Ok(_) | Err(Errno(libc::EBUSY)) => Verdict::Accepted,
            Err(errno) => Verdict::Refused(errno),
        }
    };
    Ok(lists.iter().map(verdict).collect())
}
