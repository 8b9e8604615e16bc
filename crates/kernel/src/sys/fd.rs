//! File descriptors that the kernel returns as plain numbers.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::errno::Errno;
use crate::sys::check;

/// Takes ownership of a descriptor that a system call has just returned.
pub(crate) fn adopt(fd: RawFd) -> OwnedFd {
    // SAFETY: the callers pass a descriptor that the kernel has just returned to them, so it has no other owner; it
    // is not negative, since a negative result is an error.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Makes calls on a descriptor, and on its copies, fail with `EAGAIN` instead of blocking.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    let fd = fd.as_raw_fd();
    // SAFETY: takes no pointers.
    let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    // SAFETY: as above.
    check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(|_| ())
}
