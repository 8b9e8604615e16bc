//! Guests that are ordinary processes, stopped by the kernel: user notification and three ways of tracing.
//!
//! | module | function |
//! |---|---|
//! | `filters` | the filters that the guest gets in the kernel |
//! | `tracer` | the loop that follows all tasks of the guest, and starts and ends it |
//! | `stopping` | stops tasks without their notice, and their first stops |
//! | `vfork` | tasks that wait for a child of `vfork` |
//! | `call` | decides a call at a stop |
//! | `notify` | replies to notifications |
//! | `ignored` | ignored signals, which end calls of traced tasks |
//! | `interrupted` | signals that end the wait for a supervisor |
//!
//! The memory of a guest is changed by `patched`, which stops tasks by the trait that the tracer implements.
//!
//! Whatever the mechanism, one thread traces all tasks of the guest. Their starts and ends are reported to it, and when
//! it ends the kernel kills all of them. With user notification a task never stops at its calls for that.

mod call;
mod filters;
mod interrupted;
mod notify;
mod stopping;
mod tracer;
mod vfork;

use std::thread;

use tamis_kernel::Ended;

use crate::caps::{Caps, Family, Isolation};
use crate::error::{PlatformError, Unavailable};
use crate::platform::{Guest, Options, Platform};
use crate::probe;
use crate::supervisor::Supervisor;

pub(crate) use filters::keeps_received_calls;
pub(crate) use tracer::{Residence, Start};

/// User notification.
pub(crate) static NOTIFY: Attached = Attached(Mechanism::Notify);
/// Tracing of the calls that a filter selects.
pub(crate) static TRACE: Attached = Attached(Mechanism::Trace);
/// Tracing of all calls, at their entry and exit.
pub(crate) static SYSCALL: Attached = Attached(Mechanism::Syscall);
/// Tracing of all calls, at their entry, which doesn't execute them.
pub(crate) static EMULATE: Attached = Attached(Mechanism::Emulate);

/// Tracing of the calls that a filter selects, and of others patched call sites.
pub(crate) static PATCHED: Attached = Attached(Mechanism::Patch);

/// Tracing of the calls that a filter selects, which leaves all decisions to the guest.
pub(crate) static WATCH: Attached = Attached(Mechanism::Watch);

/// A platform of this family.
pub(crate) struct Attached(Mechanism);

/// The mechanism that stops a task at its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mechanism {
    Notify,
    Trace,
    Syscall,
    Emulate,
    Patch,
    Watch,
}

impl Mechanism {
    /// Whether this architecture's registers are known to it: patches are code of x86-64.
    const fn is_for_machine(self) -> bool {
        match self {
            Mechanism::Notify => true,
            Mechanism::Trace | Mechanism::Syscall | Mechanism::Emulate | Mechanism::Watch => {
                cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
            }
            Mechanism::Patch => cfg!(target_arch = "x86_64"),
        }
    }
}

impl Platform for Attached {
    fn name(&self) -> &'static str {
        match self.0 {
            Mechanism::Notify => "notify",
            Mechanism::Trace => "ptrace-seccomp",
            Mechanism::Syscall => "ptrace-syscall",
            Mechanism::Emulate => "ptrace-emulate",
            Mechanism::Patch => "patched",
            Mechanism::Watch => "ptrace-watch",
        }
    }

    fn caps(&self) -> Caps {
        let is_traced = self.0 != Mechanism::Notify;
        let is_patched = self.0 == Mechanism::Patch;
        Caps {
            family: match is_patched {
                true => Family::Managed,
                false => Family::Attached,
            },
            isolation: Isolation::Process,
            sees_results: is_traced,
            sees_tasks: true,
            has_registers: is_traced && !is_patched && cfg!(target_arch = "x86_64"),
            replaces_calls: is_traced,
            installs_descriptors: !is_traced,
            has_threads: true,
            has_forks: true,
            has_exec: true,
            runs_dynamic: true,
            takes_filters: true,
            catches_i386: cfg!(target_arch = "x86_64"),
            patches_sites: is_patched,
            has_own_exe: true,
            is_signal_safe: false,
            is_unprivileged: true,
            min_kernel: match self.0 {
                // ADDFD with its reply.
                Mechanism::Notify => (5, 14),
                // The FS base for user space.
                Mechanism::Patch => (5, 9),
                // PTRACE_GET_SYSCALL_INFO.
                _ => (5, 3),
            },
        }
    }

    fn probe(&self) -> Result<(), Unavailable> {
        if !self.0.is_for_machine() {
            return Err(Unavailable {
                reason: "it has no version for this architecture".to_owned(),
                remedy: None,
            });
        }
        probe::probe(self)
    }

    fn run(
        &self,
        guest: &Guest<'_>,
        supervisor: &dyn Supervisor,
        options: &Options<'_>,
    ) -> Result<Ended, PlatformError> {
        guest.check(&self.caps())?;
        self.run_from(&Start::default(), guest, supervisor, options)
    }
}

impl Attached {
    /// Runs a guest that is started in this way.
    pub(crate) fn run_from(
        &self,
        start: &Start<'_>,
        guest: &Guest<'_>,
        supervisor: &dyn Supervisor,
        options: &Options<'_>,
    ) -> Result<Ended, PlatformError> {
        // Tracing and the guest's death belong to a thread.
        thread::scope(|scope| {
            let name = format!("tamis-{}", self.name());
            let body = || tracer::run(self.0, guest, start, supervisor, options);
            let thread = thread::Builder::new().name(name).spawn_scoped(scope, body);
            let thread =
                thread.map_err(|error| PlatformError::of_io("starting a thread", &error))?;
            let ended = thread.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}
