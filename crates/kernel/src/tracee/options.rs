//! The events at which a tracee stops.

use std::ops::BitOr;

/// A set of events at which a tracee stops, `PTRACE_O_*`. New traced tasks inherit it.
///
/// ```
/// use tamis_kernel::tracee::Options;
/// let follow = Options::FORK | Options::VFORK | Options::CLONE;
/// assert_ne!(follow, Options::NONE);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options(i32);

impl Options {
    /// No events: signals and calls only.
    pub const NONE: Options = Options(0);
    /// Kill the tracee when its tracer ends.
    pub const EXIT_KILL: Options = Options(libc::PTRACE_O_EXITKILL);
    /// Stop when a filter returns `trace`.
    pub const SECCOMP: Options = Options(libc::PTRACE_O_TRACESECCOMP);
    /// Stop at `fork`, and trace the child.
    pub const FORK: Options = Options(libc::PTRACE_O_TRACEFORK);
    /// Stop at `vfork`, and trace the child.
    pub const VFORK: Options = Options(libc::PTRACE_O_TRACEVFORK);
    /// Stop when a `vfork` child has released its parent.
    pub const VFORK_DONE: Options = Options(libc::PTRACE_O_TRACEVFORKDONE);
    /// Stop at `clone`, and trace the new task.
    pub const CLONE: Options = Options(libc::PTRACE_O_TRACECLONE);
    /// Stop when a program has been executed.
    pub const EXEC: Options = Options(libc::PTRACE_O_TRACEEXEC);
    /// Stop when a task is about to exit.
    pub const EXIT: Options = Options(libc::PTRACE_O_TRACEEXIT);

    pub(super) const fn bits(self) -> i32 {
        self.0
    }
}

impl BitOr for Options {
    type Output = Options;

    fn bitor(self, other: Options) -> Options {
        Options(self.0 | other.0)
    }
}
