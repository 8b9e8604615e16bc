//! A mechanism that catches system calls, and the guest that it runs.

use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicBool;

use tamis_bpf::Program;
use tamis_kernel::Ended;

use crate::caps::Caps;
use crate::error::{PlatformError, Unavailable, Unsupported};
use crate::patched::Tally;
use crate::spin::Spin;
use crate::supervisor::Supervisor;

/// A program to run, and its filter.
#[derive(Clone, Debug)]
pub struct Guest<'a> {
    /// The program: a path if it contains a slash, else a name to be looked for in `PATH`.
    pub program: OsString,
    /// Its arguments, without the program's name.
    pub args: Vec<OsString>,
    /// The filter for its calls, and those of its descendants: as for seccomp, except that `notify` passes a call to
    /// the supervisor.
    pub filter: &'a Program,
    /// Whether the supervisor gets the [results](Supervisor::result) of the calls that it forwards. A platform that
    /// doesn't [see](Caps::sees_results) them rejects such a guest.
    pub has_results: bool,
}

impl Guest<'_> {
    /// Whether a platform with these capabilities runs it.
    ///
    /// # Errors
    /// The missing capability.
    pub(crate) fn check(&self, caps: &Caps) -> Result<(), PlatformError> {
        match self.has_results && !caps.sees_results {
            true => {
                let what = Unsupported::new("telling the results of forwarded calls");
                Err(PlatformError::Unsupported(what))
            }
            false => Ok(()),
        }
    }
}

/// The options for running a guest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// The program's `argv[0]`, if not its path.
    pub name: Option<&'a OsStr>,
    /// The spinning time of a side that waits for the other. Only for platforms whose sides share memory.
    pub spin: Spin,
    /// The CPUs of the two sides.
    pub placement: Placement,
    /// Forward signals that other processes send to this one to the guest, for those that can. Handlers are
    /// process-wide, so only one guest at a time gets signals.
    pub forwards_signals: bool,
    /// Once true, patched call sites are restored in each process of the guest, at its next call that the supervisor
    /// answers, and no more are patched: for debuggers, and for programs that inspect their own code.
    pub unpatch: Option<&'a AtomicBool>,
    /// Calls that the supervisor would forward and only count: for a filter that returns `notify` for every call and a
    /// guest without [results](Guest::has_results), `patched` makes the guest count and make them itself once their
    /// sites are patched. Earlier calls go to the supervisor, as on other platforms. The guest can falsify the counts
    /// and make calls that aren't counted: it isn't confined.
    pub tally: Option<&'a Tally>,
    /// The guest is killed once this is readable.
    pub until: Option<BorrowedFd<'a>>,
}

/// The CPUs of guest and supervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Wherever the kernel puts them.
    #[default]
    Free,
    /// Both on this one.
    Same(usize),
    /// Each on its own.
    Apart {
        /// The guest's CPU.
        guest: usize,
        /// The supervisor's CPU.
        supervisor: usize,
    },
}

/// A mechanism that catches system calls.
pub trait Platform: Sync {
    /// Its name on the command line, in kebab case.
    fn name(&self) -> &'static str;

    /// Its capabilities.
    fn caps(&self) -> Caps;

    /// Runs a small guest to find out whether it works here.
    ///
    /// # Errors
    /// The reason why it doesn't.
    fn probe(&self) -> Result<(), Unavailable>;

    /// Runs a guest until its first process has ended, and then kills its remaining processes. If the calling process
    /// ends first, by whatever signal, the kernel kills the guest.
    ///
    /// # Errors
    /// See [`PlatformError`]. The guest is gone then, too.
    fn run(
        &self,
        guest: &Guest<'_>,
        supervisor: &dyn Supervisor,
        options: &Options<'_>,
    ) -> Result<Ended, PlatformError>;
}
