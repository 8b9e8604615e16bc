//! Error numbers of the kernel.

use std::error;
use std::fmt;
use std::io;

/// An error number, `E…` of `errno.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

impl Errno {
    /// No such file or directory.
    pub const ENOENT: Errno = Errno(libc::ENOENT);

    /// Permission denied.
    pub const EACCES: Errno = Errno(libc::EACCES);

    /// The error number of this thread's last failed call; async-signal-safe.
    pub fn last() -> Errno {
        Errno(io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }

    /// The symbolic name of the numbers used in this crate.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            libc::EPERM => "EPERM",
            libc::ENOENT => "ENOENT",
            libc::ESRCH => "ESRCH",
            libc::EINTR => "EINTR",
            libc::E2BIG => "E2BIG",
            libc::ENOEXEC => "ENOEXEC",
            libc::EBADF => "EBADF",
            libc::ECHILD => "ECHILD",
            libc::EAGAIN => "EAGAIN",
            libc::ENOMEM => "ENOMEM",
            libc::EACCES => "EACCES",
            libc::EFAULT => "EFAULT",
            libc::EBUSY => "EBUSY",
            libc::ENOTDIR => "ENOTDIR",
            libc::EINVAL => "EINVAL",
            libc::EMFILE => "EMFILE",
            libc::ENOSYS => "ENOSYS",
            _ => return None,
        })
    }
}

impl fmt::Display for Errno {
    /// The name, if known, and the system's text: `EACCES (Permission denied)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = io::Error::from_raw_os_error(self.0).to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        match self.name() {
            Some(name) => write!(f, "{name} ({text})"),
            None => write!(f, "error {} ({text})", self.0),
        }
    }
}

impl error::Error for Errno {}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> io::Error {
        io::Error::from_raw_os_error(errno.0)
    }
}
