//! The errors of platforms.

use std::error;
use std::fmt;
use std::io;

use tamis_kernel::Errno;
use tamis_kernel::listener::ListenerError;
use tamis_kernel::spawn::SpawnError;
use tamis_kernel::tracee::TraceError;

/// The reason why a platform doesn't work on this machine, or not for this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// The missing feature, as a sentence without its full stop.
    pub reason: String,
    /// The correction, if there is one.
    pub remedy: Option<&'static str>,
}

/// A feature that a platform lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    what: &'static str,
}

/// The reason why a guest could not be run.
#[derive(Debug)]
#[non_exhaustive]
pub enum PlatformError {
    /// The platform doesn't work here.
    Unavailable(Unavailable),
    /// The guest needs a feature that the platform lacks.
    Unsupported(Unsupported),
    /// The command could not be started.
    Spawn(SpawnError),
    /// The guest's filter can't be evaluated: the reason as a sentence without its full stop.
    Filter(String),
    /// A request to the kernel failed.
    Request {
        /// The request: the name of a system call or of one of its operations.
        request: &'static str,
        /// The kernel's error.
        errno: Errno,
    },
}

impl Unsupported {
    /// A feature that a platform lacks, as a noun phrase.
    pub const fn new(what: &'static str) -> Unsupported {
        Unsupported { what }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        match self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this platform can't do this: {}", self.what)
    }
}

impl fmt::Display for PlatformError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlatformError::Unavailable(unavailable) => unavailable.fmt(f),
            PlatformError::Unsupported(unsupported) => unsupported.fmt(f),
            PlatformError::Spawn(error) => error.fmt(f),
            PlatformError::Filter(reason) => f.write_str(reason),
            PlatformError::Request { request, errno } => write!(f, "{request} failed: {errno}"),
        }
    }
}

impl error::Error for Unavailable {}
impl error::Error for Unsupported {}
impl error::Error for PlatformError {}

impl PlatformError {
    /// A failed request of the standard library.
    pub(crate) fn of_io(request: &'static str, error: &io::Error) -> PlatformError {
        PlatformError::Request {
            request,
            errno: Errno(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }
}

impl From<TraceError> for PlatformError {
    fn from(error: TraceError) -> PlatformError {
        PlatformError::Request {
            request: error.request.name(),
            errno: error.errno,
        }
    }
}

impl From<ListenerError> for PlatformError {
    fn from(error: ListenerError) -> PlatformError {
        PlatformError::Request {
            request: error.request.name(),
            errno: error.errno,
        }
    }
}
