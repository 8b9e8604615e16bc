//! Answering the calls that a filter hands to user space with the action notify. Kernel 5.0.
//!
//! Installing with [`Flag::NewListener`](crate::Flag::NewListener) gives a descriptor, which
//! [`Listener`] wraps: it receives notified calls and answers them. [`run::supervise`] runs a command
//! under such a filter.
//!
//! What an answer is worth: a supervisor that looks at memory behind an argument and then lets the
//! call [`Continue`](Reply::Continue) decides nothing, because another thread can change that memory
//! before the kernel reads it. Perform the call on behalf of the caller and answer with its result,
//! or decide by numbers alone. Thread numbers can be reused: after reading from `/proc`, ask
//! [`Listener::is_waiting`] whether what was read belonged to the caller.
//!
//! [`run::supervise`]: crate::run::supervise

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tamis_abi::SeccompData;

use crate::errno::Errno;
use crate::sys::notify::{self, Buffers};

/// The descriptor of a filter with listener.
///
/// When the last copy is closed, notified calls fail with `ENOSYS`.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    buffers: Buffers,
}

/// A call that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Names the call in answers. Never reused during the life of a listener.
    pub id: u64,
    /// The thread that made the call, as seen from the supervisor; 0 if it can't see it.
    pub thread: i32,
    /// The call.
    pub call: SeccompData,
}

/// An answer to a notified call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Skip the call; it returns this value.
    Return(i64),
    /// Skip the call; it fails with this error number.
    Errno(u16),
    /// Execute the call. Kernel 5.5. See the module's warning.
    Continue,
}

/// What came of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The caller has it.
    Delivered,
    /// The caller was killed or interrupted by a signal meanwhile.
    Gone,
}

impl Listener {
    /// Wraps a listener descriptor.
    ///
    /// # Errors
    /// If the kernel knows no notifications.
    pub fn new(fd: OwnedFd) -> Result<Listener, Errno> {
        let buffers = Buffers::new()?;
        Ok(Listener { fd, buffers })
    }

    /// Waits for a call; `None` when no task with the filter is left (5.8) or, first, when there is
    /// something to read from `until`.
    ///
    /// # Errors
    /// What the kernel answers, if this isn't a listener for one.
    pub fn receive(&self, until: Option<BorrowedFd<'_>>) -> Result<Option<Notification>, Errno> {
        loop {
            if !notify::wait(self.fd.as_fd(), until)? {
                return Ok(None);
            }
            match notify::receive(self.fd.as_fd(), &self.buffers) {
                Ok(notification) => return Ok(Some(notification)),
                // The caller was killed between the two, or this thread got a signal.
                Err(Errno(libc::ENOENT | libc::EINTR)) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Answers a call.
    ///
    /// # Errors
    /// What the kernel answers, such as `EINPROGRESS` for a call that has its answer already.
    pub fn reply(&self, id: u64, reply: Reply) -> Result<Delivery, Errno> {
        match notify::send(self.fd.as_fd(), &self.buffers, id, reply) {
            Ok(()) => Ok(Delivery::Delivered),
            Err(Errno(libc::ENOENT)) => Ok(Delivery::Gone),
            Err(errno) => Err(errno),
        }
    }

    /// Whether a call still waits for its answer, so that its thread number is still its own.
    ///
    /// # Errors
    /// What the kernel answers, if this isn't a listener for one.
    pub fn is_waiting(&self, id: u64) -> Result<bool, Errno> {
        match notify::is_valid(self.fd.as_fd(), id) {
            Ok(()) => Ok(true),
            Err(Errno(libc::ENOENT)) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Gives the caller a copy of a descriptor, closed on `execve`; its number there. The call still
    /// waits for its answer. Kernel 5.9.
    ///
    /// # Errors
    /// What the kernel answers: `ENOENT` if the caller is gone, `EMFILE` if it has too many.
    pub fn add_fd(&self, id: u64, fd: BorrowedFd<'_>) -> Result<i32, Errno> {
        notify::add_fd(self.fd.as_fd(), id, fd)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
