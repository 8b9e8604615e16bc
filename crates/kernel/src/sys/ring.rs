//! The memory of a ring buffer of `bpf(2)`: a page with the reader's position, a page with the writers', and the bytes,
//! mapped twice in a row so that no record has a break.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::errno::Errno;

/// The record is being written.
const BUSY: u32 = 1 << 31;
/// The writer has given it up.
const DISCARDED: u32 = 1 << 30;
const HEADER_BYTES: u64 = 8;

/// A mapped ring with this process as its only reader.
pub(crate) struct MappedRing {
    reader: NonNull<u8>,
    writers: NonNull<u8>,
    page_bytes: usize,
    /// A power of two, in pages.
    len_bytes: usize,
}

impl MappedRing {
    /// Maps a ring that was created with this size.
    pub(crate) fn new(map: BorrowedFd<'_>, len_bytes: usize) -> Result<MappedRing, Errno> {
        // SAFETY: takes a number.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let reader = mapped(map, page_bytes, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        let len = page_bytes + 2 * len_bytes;
        let writers = mapped(map, len, libc::PROT_READ, page_bytes).inspect_err(|_| {
            // SAFETY: the mapping belongs to this value, and no reference to it is left.
            unsafe { libc::munmap(reader.as_ptr().cast(), page_bytes) };
        })?;
        Ok(MappedRing {
            reader,
            writers,
            page_bytes,
            len_bytes,
        })
    }

    /// Hands each record that is complete to a function, in order, and frees its place.
    pub(crate) fn drain(&mut self, mut read: impl FnMut(&[u8])) {
        // SAFETY: both pages begin with a position, are aligned, and live as long as `self`; the kernel accesses the
        // positions atomically.
        let (reader, writers) = unsafe {
            (
                &*self.reader.as_ptr().cast::<AtomicU64>(),
                &*self.writers.as_ptr().cast::<AtomicU64>(),
            )
        };
        let mut at = reader.load(Ordering::Relaxed);
        while at < writers.load(Ordering::Acquire) {
            let place = self.page_bytes + (at as usize & (self.len_bytes - 1));
            // SAFETY: a record begins with an aligned word for its length, within the mapping, which is as long as the
            // ring twice.
            let header = unsafe { &*self.writers.as_ptr().add(place).cast::<AtomicU32>() };
            let header = header.load(Ordering::Acquire);
            if header & BUSY != 0 {
                break;
            }
            let len = u64::from(header & !DISCARDED);
            if header & DISCARDED == 0 {
                // SAFETY: a complete record lies within the mapping, and the kernel doesn't write it before the reader's
                // position is behind it.
                let record = unsafe {
                    std::slice::from_raw_parts(
                        self.writers.as_ptr().add(place + HEADER_BYTES as usize),
                        len as usize,
                    )
                };
                read(record);
            }
            at += (len + HEADER_BYTES).next_multiple_of(8);
            reader.store(at, Ordering::Release);
        }
    }
}

fn mapped(
    map: BorrowedFd<'_>,
    len: usize,
    access: i32,
    offset: usize,
) -> Result<NonNull<u8>, Errno> {
    // SAFETY: a new mapping at an address of the kernel's choice, of a file that can't shrink.
    let address = unsafe {
        libc::mmap(
            ptr::null_mut(),
            len,
            access,
            libc::MAP_SHARED,
            map.as_raw_fd(),
            offset as libc::off_t,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    NonNull::new(address.cast()).ok_or(Errno(libc::ENOMEM))
}

impl Drop for MappedRing {
    fn drop(&mut self) {
        // SAFETY: the mappings are ours, and no reference into them outlives `self`.
        unsafe {
            libc::munmap(self.reader.as_ptr().cast(), self.page_bytes);
            libc::munmap(
                self.writers.as_ptr().cast(),
                self.page_bytes + 2 * self.len_bytes,
            );
        }
    }
}

// SAFETY: whoever has the value is the only reader, and any thread may unmap it.
unsafe impl Send for MappedRing {}

impl std::fmt::Debug for MappedRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MappedRing")
            .field("len_bytes", &self.len_bytes)
            .finish_non_exhaustive()
    }
}
