//! Beginning to trace a process, and whether that is possible at all.

use std::ptr;

use crate::errno::Errno;
use crate::sys::check;

/// Whether `ptrace(2)` is available: a request for process 0, which never exists, must fail with `ESRCH`. An outer
/// filter that denies tracing causes another error.
pub(crate) fn available() -> Result<(), Errno> {
    match seize(0, 0) {
        Ok(()) | Err(Errno(libc::ESRCH)) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Starts tracing a process without stopping it.
pub(crate) fn seize(pid: libc::pid_t, options: i32) -> Result<(), Errno> {
    let data = ptr::without_provenance_mut::<libc::c_void>(options as usize);
    // SAFETY: the options are passed as a number.
    let returned = unsafe {
        libc::ptrace(
            libc::PTRACE_SEIZE,
            pid,
            ptr::null_mut::<libc::c_void>(),
            data,
        )
    };
    check(returned).map(|_| ())
}
