//! Reading and writing the memory of another process. Kernel 3.2.
//!
//! This requires the rights of a tracer, which a parent of the same user has, but doesn't stop the process: its other
//! threads may change the memory concurrently. Page protections are respected unless stated otherwise.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;

use crate::errno::Errno;
use crate::sys::memory;

/// Fills the buffer from an address of a process, given by any of its threads; returns how many bytes could be read.
///
/// ```
/// let word = 0x1234_5678_u32;
/// let mut bytes = [0; 4];
/// let address = &raw const word as u64;
/// assert_eq!(tamis_kernel::memory::read(std::process::id() as i32, address, &mut bytes), Ok(4));
/// assert_eq!(u32::from_ne_bytes(bytes), word);
/// ```
///
/// # Errors
/// `EFAULT` if not even the first byte could, `ESRCH` if there is no such process, `EPERM` without the rights.
pub fn read(pid: i32, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    memory::read(pid, address, buffer)
}

/// Writes bytes to an address of a process; returns how many could be written.
///
/// # Errors
/// As [`read`].
pub fn write(pid: i32, address: u64, bytes: &[u8]) -> Result<usize, Errno> {
    memory::write(pid, address, bytes)
}

/// Writes bytes to an address of a process even where it may not write itself, as debuggers do: a private mapping then
/// has its own copy of the page.
///
/// # Errors
/// The error of opening or writing `/proc/PID/mem`: `EIO` if nothing is mapped there, or the kernel forbids it.
pub fn overwrite(pid: i32, address: u64, bytes: &[u8]) -> Result<(), Errno> {
    let errno = |error: io::Error| Errno(error.raw_os_error().unwrap_or(libc::EIO));
    let memory = OpenOptions::new()
        .write(true)
        .open(format!("/proc/{pid}/mem"))
        .map_err(errno)?;
    memory.write_all_at(bytes, address).map_err(errno)
}

/// Whether two tasks have the same memory, as threads of a process do.
///
/// # Errors
/// `ESRCH` if one is gone, `EPERM` without the rights, `ENOSYS` if the kernel can't compare (`CONFIG_KCMP`).
pub fn is_shared(one: i32, other: i32) -> Result<bool, Errno> {
    memory::compare(one, other)
}
