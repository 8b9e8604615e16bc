//! Reading and writing the memory of another process. Kernel 3.2.
//!
//! This needs the rights of a tracer, which a parent of the same user has, but doesn't stop the process: other threads
//! of it may change what is read at any time. Protections are respected.

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
