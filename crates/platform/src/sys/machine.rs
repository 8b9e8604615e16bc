//! Features of the machine, and signals for single threads.

use std::ffi::CStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::{FromRawFd, OwnedFd};

use tamis_kernel::{Errno, Status};

/// Whether programs may read the FS base by an instruction. Kernel 5.9, on processors since 2012.
pub(crate) fn has_fs_base() -> bool {
    /// `HWCAP2_FSGSBASE` of `asm/hwcap2.h`.
    const FSGSBASE: u64 = 1 << 1;
    // SAFETY: reads a number from the auxiliary vector.
    let features = unsafe { libc::getauxval(libc::AT_HWCAP2) };
    cfg!(target_arch = "x86_64") && features & FSGSBASE != 0
}

/// The number of filters of a child of this thread that gets `more` filters. `None` if the kernel doesn't report it.
pub(crate) fn filters_with(more: u32) -> Option<u32> {
    let own = Status::of_this_thread()?.filters()?;
    Some(own + more)
}

/// Whether a task has other filters than these, as far as the kernel reports it.
pub(crate) fn has_other_filters(tid: i32, ours: Option<u32>) -> bool {
    ours.is_some_and(|ours| Status::read(tid).and_then(|task| task.filters()) != Some(ours))
}

/// A descriptor that is readable once this child has ended. Kernel 5.3.
pub(crate) fn end_of(pid: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    match fd {
        // SAFETY: the kernel has just made it.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) }),
        _ => Err(Errno::last()),
    }
}

/// An executable file in memory with these bytes. Kernels since 6.3 may require the flag for that.
pub(crate) fn memory_file(name: &CStr, bytes: &[u8]) -> Result<OwnedFd, Errno> {
    /// `MFD_EXEC`, which some C libraries lack.
    const EXECUTABLE: libc::c_uint = 0x10;
    let make = |flags| {
        // SAFETY: the name ends with a zero byte.
        match unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | flags) } {
            // SAFETY: the kernel has just made it.
            fd @ 0.. => Ok(unsafe { File::from_raw_fd(fd) }),
            _ => Err(Errno::last()),
        }
    };
    let file = match make(EXECUTABLE) {
        Err(Errno(libc::EINVAL)) => make(0),
        file => file,
    };
    let mut file = file?;
    let written = file.write_all(bytes);
    written.map_err(|error| Errno(error.raw_os_error().unwrap_or(libc::EIO)))?;
    Ok(file.into())
}

/// Sends a thread a signal.
pub(crate) fn signal_thread(tid: i32, signal: i32) -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    match unsafe { libc::syscall(libc::SYS_tkill, tid, signal) } {
        0 => Ok(()),
        _ => Err(Errno::last()),
    }
}
