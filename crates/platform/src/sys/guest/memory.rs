//! The guest's memory, as the handler in the guest's process reads and writes it.

use std::ptr;
use std::sync::atomic::Ordering;

use tamis_kernel::Errno;

use super::{PID, make};
use crate::sys::separate;

/// Reads memory of the guest, which may be unmapped.
pub(crate) fn read(address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    if separate::is_separate() {
        separate::populate(address, buffer.len(), false)?;
        // SAFETY: the guest may read it, unless another thread of it unmaps it meanwhile: then the guest crashes.
        unsafe { ptr::copy_nonoverlapping(pointer(address), buffer.as_mut_ptr(), buffer.len()) };
        return Ok(buffer.len());
    }
    let own = [buffer.as_mut_ptr() as u64, buffer.len() as u64];
    copy(
        libc::SYS_process_vm_readv,
        own,
        [address, buffer.len() as u64],
    )
}

/// Writes memory of the guest, which may be unmapped.
pub(crate) fn write(address: u64, bytes: &[u8]) -> Result<usize, Errno> {
    if separate::is_separate() {
        separate::populate(address, bytes.len(), true)?;
        // SAFETY: the guest may write it, which is all it is used for; as above.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), pointer(address), bytes.len()) };
        return Ok(bytes.len());
    }
    let own = [bytes.as_ptr() as u64, bytes.len() as u64];
    copy(
        libc::SYS_process_vm_writev,
        own,
        [address, bytes.len() as u64],
    )
}

const fn pointer(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address as usize)
}

fn copy(nr: i64, own: [u64; 2], guest: [u64; 2]) -> Result<usize, Errno> {
    let pid = PID.load(Ordering::Relaxed) as u64;
    let (own, guest) = (own.as_ptr() as u64, guest.as_ptr() as u64);
    match make(nr as u32, [pid, own, 1, guest, 1, 0]) {
        copied @ 0.. => Ok(copied as usize),
        errno => Err(Errno(-errno as i32)),
    }
}
