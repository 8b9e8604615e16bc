//! File descriptors that the kernel hands out as plain numbers.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Takes ownership of a descriptor that a system call has just returned.
pub(crate) fn adopt(fd: RawFd) -> OwnedFd {
    // SAFETY: the callers pass what the kernel has just returned to them, so that nobody else owns
    // it; it is not negative, since a negative answer is an error.
    unsafe { OwnedFd::from_raw_fd(fd) }
}
