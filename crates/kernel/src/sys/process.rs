//! Signals to a child that can't reach another process.
//!
//! A process number can be reused once its owner has been reaped. A process descriptor, from Linux 5.3 on, always
//! refers to its owner; on older kernels, and under filters that deny it, the number is used.

use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use crate::errno::Errno;
use crate::sys::{check, fd};

/// A child of this process.
#[derive(Debug)]
pub(crate) struct Process {
    pid: libc::pid_t,
    fd: Option<OwnedFd>,
}

impl Process {
    /// The child with this number, which has not been reaped.
    pub(crate) fn new(pid: libc::pid_t) -> Process {
        // SAFETY: takes no pointers.
        let returned = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let fd = check(returned).ok().map(|raw| fd::adopt(raw as i32));
        Process { pid, fd }
    }

    /// Its number.
    pub(crate) const fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// Whether signals can't reach another process even after it has been reaped.
    pub(crate) const fn is_exact(&self) -> bool {
        self.fd.is_some()
    }

    /// Sends it a signal: `ESRCH` if it has been reaped.
    pub(crate) fn kill(&self, signal: i32) -> Result<(), Errno> {
        let Some(fd) = &self.fd else {
            // SAFETY: takes no pointers.
            return check(unsafe { libc::kill(self.pid, signal) }).map(|_| ());
        };
        let (fd, info) = (fd.as_raw_fd(), ptr::null::<libc::siginfo_t>());
        // SAFETY: with a null `info` the kernel reads nothing.
        let returned = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, info, 0) };
        check(returned).map(|_| ())
    }
}
