//! `ptrace(2)`, one function per request.

use std::ptr;

use crate::errno::Errno;
use crate::sys::check;

/// Whether `ptrace(2)` is there at all: a request about process 0, which never exists, must answer
/// `ESRCH`. An outer filter that forbids tracing answers something else.
pub(crate) fn available() -> Result<(), Errno> {
    // SAFETY: no process has the number 0, so that nothing happens.
    let returned = unsafe {
        libc::ptrace(
            libc::PTRACE_SEIZE,
            0,
            ptr::null_mut::<libc::c_void>(),
            ptr::null_mut::<libc::c_void>(),
        )
    };
    match check(returned) {
        Ok(_) | Err(Errno(libc::ESRCH)) => Ok(()),
        Err(errno) => Err(errno),
    }
}
