//! Stopping tasks of a guest while its memory is changed: the part of a tracer that patching needs.

use tamis_kernel::Errno;
use tamis_kernel::tracee::{Stopped, TraceError};

/// The tracer of a guest.
pub(crate) trait TaskStopper {
    /// The next stop of a task; reports of others are deferred.
    ///
    /// # Errors
    /// `ESRCH` if it has ended.
    fn next_stop(&mut self, tid: i32) -> Result<Stopped, TraceError>;

    /// Stops all other tasks that share the memory of this stopped task; they go on when their reports are handled.
    /// `None` if one can't be stopped at once, is creating another, or belongs to another process: as after `vfork`,
    /// one of both may wait for the other and not stop before.
    ///
    /// # Errors
    /// As [`Tracee::interrupt`](tamis_kernel::tracee::Tracee::interrupt), but for tasks that have ended.
    fn stop_others(&mut self, tid: i32) -> Result<Option<Vec<Stopped>>, TraceError>;

    /// Stops all other tasks that share the memory of this stopped task, including those of other processes; they go on
    /// when their reports are handled. A task that waits for its child of `vfork` isn't stopped: it doesn't run while
    /// the child is stopped.
    ///
    /// # Errors
    /// As [`Tracee::interrupt`](tamis_kernel::tracee::Tracee::interrupt), but for tasks that have ended.
    fn stop_sharing(&mut self, tid: i32) -> Result<SharingTasks, TraceError>;

    /// Stops these tasks in the same way, except those that have ended and those that may wait for a child of `vfork`.
    ///
    /// # Errors
    /// As [`Tracee::interrupt`](tamis_kernel::tracee::Tracee::interrupt).
    fn stop_these(&mut self, tids: &[i32]) -> Result<Vec<Stopped>, TraceError>;

    /// Resumes a task that was stopped with others.
    ///
    /// # Errors
    /// As [`Stopped::resume`].
    fn run_on(&mut self, stopped: &Stopped) -> Result<(), TraceError>;
}

/// Tasks that share memory with another.
pub(crate) struct SharingTasks {
    pub(crate) stopped: Vec<Stopped>,
    /// Whether these are all tasks that can run, and none of them is creating another, so that its report comes first.
    pub(crate) are_all: bool,
}

/// A result about a task; the default if the task has been killed meanwhile. The task whose stop is being handled may
/// be another one, which goes on.
pub(crate) fn unless_ended<T: Default>(of_task: Result<T, TraceError>) -> Result<T, TraceError> {
    match of_task {
        Err(error) if error.errno == Errno(libc::ESRCH) => Ok(T::default()),
        of_task => of_task,
    }
}
