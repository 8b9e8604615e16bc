//! Replying to calls with the action notify. Kernel 5.0.
//!
//! Installing with [`Flag::NewListener`](crate::Flag::NewListener) gives a descriptor, which [`Listener`] wraps: it
//! receives notified calls and sends replies. [`run::supervise`] runs a command under such a filter;
//! [`spawn`](crate::spawn) gives the listener of a child.
//!
//! Security: a supervisor that checks memory behind an argument and then replies with [`Continue`](Reply::Continue)
//! enforces nothing, because another thread can change that memory before the kernel reads it. Perform the call on
//! behalf of the caller and reply with its result, or decide by numbers alone. Thread numbers can be reused: after
//! reading from `/proc`, use [`Listener::is_waiting`] to check that the data belonged to the caller.
//!
//! [`run::supervise`]: crate::run::supervise

use std::error;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tamis_abi::SeccompData;

use crate::errno::Errno;
use crate::sys::listener::{self, Buffers, Timeout, WaitResult};

/// The descriptor of a filter with listener.
///
/// When the last copy is closed, notified calls fail with `ENOSYS`.
///
/// ```no_run
/// use tamis_kernel::listener::{Listener, Reply};
/// # fn example(descriptor: std::os::fd::OwnedFd) -> Result<(), tamis_kernel::listener::ListenerError> {
/// let listener = Listener::new(descriptor)?;
/// while let Some(notification) = listener.receive(None)? {
///     println!("thread {} calls {}", notification.thread, notification.call.nr);
///     listener.reply(notification.id, Reply::Errno(1))?;
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    buffers: Buffers,
    /// HeldChild while a pending call is received.
    receiving: Mutex<()>,
}

/// A call that waits for a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Identifies the call in replies. Never reused during the life of a listener.
    pub id: u64,
    /// The thread that made the call, as seen from the supervisor; 0 if it can't see it.
    pub thread: i32,
    /// The call.
    pub call: SeccompData,
}

/// The result of waiting for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A call.
    Call(Notification),
    /// No task with the filter is left, or the waiting was ended.
    Ended,
    /// The time is up.
    TimedOut,
}

/// A reply to a notified call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Skip the call; it returns this value.
    Return(i64),
    /// Skip the call; it fails with this error number.
    Errno(u16),
    /// Execute the call. Kernel 5.5. See the module's warning.
    Continue,
}

/// The result of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The caller has received it.
    Delivered,
    /// The caller was killed or interrupted by a signal meanwhile.
    Gone,
}

/// A request to the kernel for a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Request {
    /// Getting the sizes of its structures.
    Sizes,
    /// Waiting for a call.
    Wait,
    /// Receiving a call.
    Receive,
    /// Replying.
    Reply,
    /// Checking whether a call still waits.
    IsWaiting,
    /// Giving a descriptor to the caller.
    AddFd,
    /// Setting flags.
    SetFlags,
}

/// A failed request for a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerError {
    /// The request.
    pub request: Request,
    /// The kernel's error.
    pub errno: Errno,
}

impl Request {
    /// The request's name in `seccomp(2)` and `seccomp_unotify(2)`, or the call.
    pub const fn name(self) -> &'static str {
        match self {
            Request::Sizes => "SECCOMP_GET_NOTIF_SIZES",
            Request::Wait => "poll",
            Request::Receive => "SECCOMP_IOCTL_NOTIF_RECV",
            Request::Reply => "SECCOMP_IOCTL_NOTIF_SEND",
            Request::IsWaiting => "SECCOMP_IOCTL_NOTIF_ID_VALID",
            Request::AddFd => "SECCOMP_IOCTL_NOTIF_ADDFD",
            Request::SetFlags => "SECCOMP_IOCTL_NOTIF_SET_FLAGS",
        }
    }

    fn failed(self) -> impl Fn(Errno) -> ListenerError {
        move |errno| ListenerError {
            request: self,
            errno,
        }
    }
}

impl fmt::Display for ListenerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.request.name(), self.errno)
    }
}

impl error::Error for ListenerError {}

impl Listener {
    /// Wraps a listener descriptor.
    ///
    /// # Errors
    /// [`Request::Sizes`] if the kernel has no notifications.
    pub fn new(fd: OwnedFd) -> Result<Listener, ListenerError> {
        let buffers = Buffers::new().map_err(Request::Sizes.failed())?;
        Ok(Listener {
            fd,
            buffers,
            receiving: Mutex::new(()),
        })
    }

    /// Waits for a call; `None` if no task with the filter is left (5.8) or, with precedence, if `until` is
    /// readable. Several threads may share one listener, each with its own `until`.
    ///
    /// # Errors
    /// [`Request::Wait`] and [`Request::Receive`], for example if the descriptor isn't a listener.
    pub fn receive(
        &self,
        until: Option<BorrowedFd<'_>>,
    ) -> Result<Option<Notification>, ListenerError> {
        loop {
            if self.wait(until, Timeout::Never)? != WaitResult::Call {
                return Ok(None);
            }
            let receiving = self.receiving.lock();
            let _receiving = receiving.unwrap_or_else(PoisonError::into_inner);
            // Another thread may have received the call, and receiving would block regardless of `until`.
            if self.wait(until, Timeout::AtOnce)? == WaitResult::Call
                && let Some(notification) = self.take()?
            {
                return Ok(Some(notification));
            }
        }
    }

    /// The same for a single thread, and until a time, to the millisecond.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn receive_before(
        &mut self,
        until: Option<BorrowedFd<'_>>,
        time: Option<Instant>,
    ) -> Result<Received, ListenerError> {
        loop {
            match self.wait(until, time.map_or(Timeout::Never, Timeout::At))? {
                WaitResult::Call => {}
                WaitResult::Ended => return Ok(Received::Ended),
                WaitResult::TimedOut => return Ok(Received::TimedOut),
            }
            // It doesn't block: what poll has seen is counted, even if its caller has been killed.
            if let Some(notification) = self.take()? {
                return Ok(Received::Call(notification));
            }
        }
    }

    /// Whether a task with the filter is left; always true before 5.8, where it is unknown.
    ///
    /// # Errors
    /// [`Request::Wait`], if the descriptor isn't a listener.
    pub fn has_tasks(&self) -> Result<bool, ListenerError> {
        Ok(self.wait(None, Timeout::AtOnce)? != WaitResult::Ended)
    }

    fn wait(
        &self,
        until: Option<BorrowedFd<'_>>,
        timeout: Timeout,
    ) -> Result<WaitResult, ListenerError> {
        listener::wait(self.fd.as_fd(), until, timeout).map_err(Request::Wait.failed())
    }

    /// The call that waits; `None` if its caller has been killed meanwhile, or this thread got a signal.
    fn take(&self) -> Result<Option<Notification>, ListenerError> {
        match listener::receive(self.fd.as_fd(), &self.buffers) {
            Ok(notification) => Ok(Some(notification)),
            Err(Errno(libc::ENOENT | libc::EINTR)) => Ok(None),
            Err(errno) => Err(Request::Receive.failed()(errno)),
        }
    }

    /// Replies to a call.
    ///
    /// # Errors
    /// [`Request::Reply`] with `EINPROGRESS` for a call that already has a reply.
    pub fn reply(&self, id: u64, reply: Reply) -> Result<Delivery, ListenerError> {
        match listener::send(self.fd.as_fd(), &self.buffers, id, reply) {
            Ok(()) => Ok(Delivery::Delivered),
            Err(Errno(libc::ENOENT)) => Ok(Delivery::Gone),
            Err(errno) => Err(Request::Reply.failed()(errno)),
        }
    }

    /// Replies to a call with a copy of a descriptor, closed on `execve`: the call returns its number in the
    /// caller, which this returns too. `None` if the caller is gone. Kernel 5.14.
    ///
    /// # Errors
    /// [`Request::AddFd`] with `EMFILE` if the caller has too many, `EINVAL` on older kernels; the call then still
    /// waits.
    pub fn reply_fd(&self, id: u64, fd: BorrowedFd<'_>) -> Result<Option<i32>, ListenerError> {
        match listener::add_fd(self.fd.as_fd(), id, fd, listener::AddFd::AndReply) {
            Ok(number) => Ok(Some(number)),
            Err(Errno(libc::ENOENT)) => Ok(None),
            Err(errno) => Err(Request::AddFd.failed()(errno)),
        }
    }

    /// Whether a call still waits for its reply, so that its thread number is still valid.
    ///
    /// # Errors
    /// [`Request::IsWaiting`], for example if the descriptor isn't a listener.
    pub fn is_waiting(&self, id: u64) -> Result<bool, ListenerError> {
        match listener::is_valid(self.fd.as_fd(), id) {
            Ok(()) => Ok(true),
            Err(Errno(libc::ENOENT)) => Ok(false),
            Err(errno) => Err(Request::IsWaiting.failed()(errno)),
        }
    }

    /// Gives the caller a copy of a descriptor, closed on `execve`; returns its number there. The call still waits
    /// for its reply. Kernel 5.9.
    ///
    /// # Errors
    /// [`Request::AddFd`] with `ENOENT` if the caller is gone, `EMFILE` if it has too many.
    pub fn add_fd(&self, id: u64, fd: BorrowedFd<'_>) -> Result<i32, ListenerError> {
        listener::add_fd(self.fd.as_fd(), id, fd, listener::AddFd::Only)
            .map_err(Request::AddFd.failed())
    }

    /// Sets whether caller and supervisor alternate on one CPU: each wakes the other on its own CPU, which is
    /// faster if the supervisor replies immediately. Kernel 6.6.
    ///
    /// # Errors
    /// [`Request::SetFlags`] with `EINVAL` on older kernels.
    pub fn set_sync_wake_up(&self, on: bool) -> Result<(), ListenerError> {
        listener::set_sync_wake_up(self.fd.as_fd(), on).map_err(Request::SetFlags.failed())
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
