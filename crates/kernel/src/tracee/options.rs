//! The events that stop a tracee.

use std::ops::BitOr;

/// A set of events that stop a tracee, `PTRACE_O_*`. New traced tasks inherit it.
///
/// ```
/// use tamis_kernel::tracee::TraceOptions;
/// let follow = TraceOptions::FORK | TraceOptions::VFORK | TraceOptions::CLONE;
/// assert_ne!(follow, TraceOptions::NONE);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceOptions(i32);

impl TraceOptions {
    /// No events: signals and calls only.
    pub const NONE: TraceOptions = TraceOptions(0);
    /// Kill the tracee when its tracer ends.
    pub const EXIT_KILL: TraceOptions = TraceOptions(libc::PTRACE_O_EXITKILL);
    /// Stop when a filter returns `trace`.
    pub const SECCOMP: TraceOptions = TraceOptions(libc::PTRACE_O_TRACESECCOMP);
    /// Stop at `fork`, and trace the child.
    pub const FORK: TraceOptions = TraceOptions(libc::PTRACE_O_TRACEFORK);
    /// Stop at `vfork`, and trace the child.
    pub const VFORK: TraceOptions = TraceOptions(libc::PTRACE_O_TRACEVFORK);
    /// Stop when a `vfork` child has released its parent.
    pub const VFORK_DONE: TraceOptions = TraceOptions(libc::PTRACE_O_TRACEVFORKDONE);
    /// Stop at `clone`, and trace the new task.
    pub const CLONE: TraceOptions = TraceOptions(libc::PTRACE_O_TRACECLONE);
    /// Stop when a program has been executed.
    pub const EXEC: TraceOptions = TraceOptions(libc::PTRACE_O_TRACEEXEC);
    /// Stop when a task is about to exit.
    pub const EXIT: TraceOptions = TraceOptions(libc::PTRACE_O_TRACEEXIT);

    pub(super) const fn bits(self) -> i32 {
        self.0
    }
}

impl BitOr for TraceOptions {
    type Output = TraceOptions;

    fn bitor(self, other: TraceOptions) -> TraceOptions {
        TraceOptions(self.0 | other.0)
    }
}
