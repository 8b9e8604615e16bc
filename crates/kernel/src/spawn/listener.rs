//! The listener of a child's filters.
//!
//! The listener is created in the child, when it installs its filter. The child can't send or announce it: each such
//! system call may itself wait for the supervisor. Instead, it shares the descriptor table with the parent until it
//! executes the command, so the listener appears there, and it stores the number in shared memory. This needs no rights
//! beyond those for installing the filter, while fetching the descriptor with `pidfd_getfd` would need those of a
//! tracer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::listener::{Listener, ListenerError};
use crate::sys::fd;
use crate::sys::page::SharedPage;

/// The longest pause between polls for a listener.
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// The future listener of a child's filters.
///
/// ```no_run
/// use tamis_kernel::{Flag, listener::Reply, spawn::Spawn};
/// # fn example(program: tamis_bpf::Program) -> Result<(), Box<dyn std::error::Error>> {
/// let mut spawn = Spawn::new("true");
/// spawn.filters = vec![(&program, Flag::NewListener.into())];
/// let child = spawn.start()?.release();
/// let pending = child.listener();
/// let listener = loop {
///     if let Some(listener) = pending.take()? {
///         break listener;
///     }
///     std::thread::yield_now();
/// };
/// while let Some(notification) = listener.receive(None)? {
///     listener.reply(notification.id, Reply::Continue)?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct PendingListener {
    page: Arc<SharedPage>,
}

impl PendingListener {
    pub(super) fn new(page: Arc<SharedPage>) -> PendingListener {
        PendingListener { page }
    }

    /// The listener, if the child has installed it and it has not been taken yet. Notified calls wait until then.
    ///
    /// # Errors
    /// As [`Listener::new`].
    pub fn take(&self) -> Result<Option<Listener>, ListenerError> {
        let fd = self.page.listener.swap(-1, Ordering::AcqRel);
        if fd < 0 {
            return Ok(None);
        }
        Listener::new(fd::adopt(fd)).map(Some)
    }

    /// Waits for the listener; `None` if it has not been installed when `has_ended` is set, after the child's end.
    ///
    /// # Errors
    /// As [`Listener::new`].
    pub fn wait(&self, has_ended: &AtomicBool) -> Result<Option<Listener>, ListenerError> {
        let mut pause = Duration::from_micros(50);
        loop {
            // In this order: an ended child may have left a listener, which must be closed.
            let is_last_look = has_ended.load(Ordering::Acquire);
            let listener = self.take()?;
            if listener.is_some() || is_last_look {
                return Ok(listener);
            }
            thread::sleep(pause);
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }
}
