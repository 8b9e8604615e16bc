//! Error codes.

use std::ffi::c_int;

use tamis_kernel as kernel;
use tamis_scmp::Errno;

/// The reason for a failure. libseccomp returns no other codes, except the kernel's own on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The library doesn't permit it.
    Access,
    /// The kernel rejected the operation.
    Canceled,
    /// Architectures or calls don't match.
    Domain,
    /// The object exists, or contradicts an existing one.
    Exists,
    /// An internal error.
    Fault,
    /// The argument is invalid.
    Invalid,
    /// The object doesn't exist.
    NoEntry,
    /// There is not enough memory, or the program exceeds the kernel's limit.
    NoMemory,
    /// The kernel or the library lacks the feature.
    NotSupported,
    /// The buffer is too small.
    Range,
    /// Threads could not be synchronised.
    NoThread,
    /// The kernel's own error number.
    Raw(c_int),
}

impl Status {
    /// The return value.
    pub(crate) const fn code(self) -> c_int {
        -match self {
            Status::Access => libc::EACCES,
            Status::Canceled => libc::ECANCELED,
            Status::Domain => libc::EDOM,
            Status::Exists => libc::EEXIST,
            Status::Fault => libc::EFAULT,
            Status::Invalid => libc::EINVAL,
            Status::NoEntry => libc::ENOENT,
            Status::NoMemory => libc::ENOMEM,
            Status::NotSupported => libc::EOPNOTSUPP,
            Status::Range => libc::ERANGE,
            Status::NoThread => libc::ESRCH,
            Status::Raw(errno) => errno,
        }
    }

    /// The status of the last failed system call of this thread.
    pub(crate) fn last() -> Status {
        kernel::Errno::last().into()
    }

    /// The status for callers: errors of the kernel are replaced by one code unless the caller requested raw ones.
    pub(crate) const fn shown(self, raw_errors: bool) -> Status {
        match self {
            Status::Raw(_) if !raw_errors => Status::Canceled,
            status => status,
        }
    }
}

impl From<kernel::Errno> for Status {
    fn from(errno: kernel::Errno) -> Status {
        Status::Raw(errno.0)
    }
}

impl From<Errno> for Status {
    fn from(errno: Errno) -> Status {
        match errno {
            Errno::Access => Status::Access,
            Errno::Domain => Status::Domain,
            Errno::Exists => Status::Exists,
            Errno::Fault => Status::Fault,
            Errno::Invalid => Status::Invalid,
            Errno::NoMemory => Status::NoMemory,
            Errno::NotSupported => Status::NotSupported,
        }
    }
}

/// Whether libseccomp returns this error number from functions that install filters; all others, including the
/// kernel's, are internal errors there.
pub(crate) const fn is_returned(errno: c_int) -> bool {
    matches!(
        errno,
        libc::EACCES
            | libc::ECANCELED
            | libc::EDOM
            | libc::EEXIST
            | libc::EINVAL
            | libc::ENOENT
            | libc::ENOMEM
            | libc::EOPNOTSUPP
            | libc::ERANGE
            | libc::ESRCH
    )
}
