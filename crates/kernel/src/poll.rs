//! Waiting until one of several descriptors is readable.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::errno::Errno;
use crate::sys::wait;

/// Blocks until one of the descriptors is readable, closed at its other end, or invalid; returns the index of the
/// first such.
///
/// # Errors
/// The error of `poll`: `EINVAL` if there are more than this process may have.
pub fn readable(fds: &[BorrowedFd<'_>]) -> Result<usize, Errno> {
    let fds: Vec<i32> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    wait::poll(&fds)
}
