//! The supervisor, which answers the calls of a guest.

use std::os::fd::OwnedFd;
use std::time::Duration;

use tamis_abi::SeccompData;
use tamis_kernel::Ended;
use tamis_kernel::tracee::SignalInfo;

use crate::task::{Task, TaskId};

/// A handler of the calls that a guest's filter returns `notify` for.
///
/// Platforms with a thread for each task of the guest call it from several threads at once. In-process platforms call
/// it from a signal handler of the guest's own process: see [`Caps::is_signal_safe`](crate::Caps).
pub trait Supervisor: Sync {
    /// Decides a call.
    fn call(&self, task: &mut dyn Task, call: &SeccompData) -> Answer;

    /// Gets the result of a call that was [forwarded](Answer::Forward); the return value replaces it. Only called if
    /// the guest [has results](crate::Guest::has_results) and the platform [sees them](crate::Caps::sees_results). A
    /// call that a signal interrupts, and that the kernel then restarts or fails, has no result.
    fn result(&self, _task: &mut dyn Task, _call: &SeccompData, result: i64) -> i64 {
        result
    }

    /// The platform itself has loaded the guest's program, which hasn't started yet. Without this the guest begins with
    /// a call that executes the program, which the filter decides like any other.
    fn loaded(&self) {}

    /// A task has been created, and hasn't started yet. Only for platforms that [see tasks](crate::Caps::sees_tasks),
    /// which may report it on another thread than calls.
    fn started(&self, _task: TaskId, _parent: Option<TaskId>) {}

    /// A task has ended. Only for platforms that [see tasks](crate::Caps::sees_tasks).
    fn ended(&self, _task: TaskId, _how: Ended) {}

    /// A thread that wasn't the first of its process has executed a program: it has the process's number now, and its
    /// former number is free. Only for platforms that [see tasks](crate::Caps::sees_tasks).
    fn renumbered(&self, _task: TaskId, former: TaskId) {
        self.ended(former, Ended::Exited(0));
    }

    /// A signal has ended the wait of a call that was [forwarded](Answer::Forward) and would have had a
    /// [`result`](Self::result): the kernel restarts it, or makes it fail with `EINTR`. `code` is the kernel's own
    /// error, -516 to -512. Only for the [watching](crate::watching) platform.
    fn interrupted(&self, _task: TaskId, _call: &SeccompData, _code: i64) {}

    /// A task is about to get a signal. Only for the [watching](crate::watching) platform.
    fn signalled(&self, _task: TaskId, _signal: &SignalInfo) {}
}

/// The decision about a call.
#[derive(Debug)]
pub enum Answer {
    /// The call isn't made and returns this value.
    Return(i64),
    /// The call isn't made and fails with this error number, 1 to 4095.
    Errno(u16),
    /// The kernel makes the call. Memory behind its arguments may change after a check: decide by numbers alone.
    Forward,
    /// The kernel makes this call instead, which the filter must allow.
    ForwardWith(SeccompData),
    /// The call isn't made and returns the number of a copy of this descriptor, closed on `execve`.
    Descriptor(OwnedFd),
    /// The guest is killed.
    Kill,
    /// The inner answer, after a delay. A platform with one thread for all tasks may delay other tasks as well.
    Later(Duration, Box<Answer>),
}

impl Answer {
    /// Whether the kernel makes a call.
    pub(crate) fn makes_calls(&self) -> bool {
        match self {
            Answer::Forward | Answer::ForwardWith(_) => true,
            Answer::Later(_, answer) => answer.makes_calls(),
            Answer::Return(_) | Answer::Errno(_) | Answer::Descriptor(_) | Answer::Kill => false,
        }
    }
}
