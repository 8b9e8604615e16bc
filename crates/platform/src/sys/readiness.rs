//! Whether a descriptor of another process is ready.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use tamis_kernel::{Errno, Status};

use super::machine;

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// To read from it, or to accept a connection.
    In,
    /// To write to it.
    Out,
}

/// Whether a transfer on this descriptor of a task would begin at once. Files on disks are always ready. Kernel 5.6.
///
/// # Errors
/// The process can't be traced, or it has no such descriptor.
pub(crate) fn is_ready(tid: i32, fd: i32, transfer: Transfer) -> Result<bool, Errno> {
    let process = Status::read(tid)
        .and_then(|task| i32::try_from(task.number("Tgid")?).ok())
        .ok_or(Errno(libc::ESRCH))?;
    let process = machine::end_of(process)?;
    // SAFETY: takes numbers only.
    let copy = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) };
    let copy = match copy {
        // SAFETY: the kernel has just made it.
        0.. => unsafe { OwnedFd::from_raw_fd(copy as i32) },
        _ => return Err(Errno::last()),
    };
    let mut entry = libc::pollfd {
        fd: copy.as_raw_fd(),
        events: match transfer {
            Transfer::In => libc::POLLIN,
            Transfer::Out => libc::POLLOUT,
        },
        revents: 0,
    };
    // SAFETY: one entry, which the kernel reads and writes.
    match unsafe { libc::poll(&raw mut entry, 1, 0) } {
        // Errors and hang-ups count: such a transfer returns at once.
        0.. => Ok(entry.revents != 0),
        _ => Err(Errno::last()),
    }
}
