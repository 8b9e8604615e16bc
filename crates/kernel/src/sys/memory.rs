//! The memory of another process: `process_vm_readv(2)`, `process_vm_writev(2)`.

use crate::errno::Errno;
use crate::sys::check;

/// Fills the buffer from an address of a process; returns the count of bytes.
pub(crate) fn read(pid: libc::pid_t, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    let local = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let remote = remote(address, buffer.len());
    // SAFETY: the kernel writes at most the bytes of the buffer, and checks the other address.
    let returned =
        unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    check(returned).map(|len_bytes| len_bytes as usize)
}

/// Writes bytes to an address of a process; returns the count of bytes.
pub(crate) fn write(pid: libc::pid_t, address: u64, bytes: &[u8]) -> Result<usize, Errno> {
    let local = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let remote = remote(address, bytes.len());
    // SAFETY: the kernel only reads the bytes, and checks the other address.
    let returned =
        unsafe { libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) };
    check(returned).map(|len_bytes| len_bytes as usize)
}

/// Memory of another process.
fn remote(address: u64, len_bytes: usize) -> libc::iovec {
    libc::iovec {
        iov_base: std::ptr::without_provenance_mut(address as usize),
        iov_len: len_bytes,
    }
}

/// Whether two tasks have the same memory.
pub(crate) fn compare(one: libc::pid_t, other: libc::pid_t) -> Result<bool, Errno> {
    /// `KCMP_VM` of `linux/kcmp.h`.
    const VM: libc::c_int = 1;
    // SAFETY: takes numbers only.
    let returned = unsafe { libc::syscall(libc::SYS_kcmp, one, other, VM, 0, 0) };
    check(returned).map(|order| order == 0)
}
