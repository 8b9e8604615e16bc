//! Files of the kernel that never change, mapped.

use std::fs::File;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

use crate::errno::Errno;

/// The bytes of a file of the kernel's own that lives as long as the kernel.
#[derive(Debug)]
pub(crate) struct MappedFile {
    first: NonNull<u8>,
    len_bytes: usize,
}

impl MappedFile {
    /// Maps a file of `/sys` that the kernel keeps as it is.
    pub(crate) fn new(file: &File) -> Result<MappedFile, Errno> {
        let len_bytes = file.metadata().map_or(0, |data| data.len()) as usize;
        // SAFETY: a new read-only mapping at an address of the kernel's choice.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len_bytes,
                libc::PROT_READ,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let first = NonNull::new(address.cast()).ok_or(Errno(libc::ENOMEM))?;
        Ok(MappedFile { first, len_bytes })
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping has so many bytes, lives as long as `self`, and the kernel never changes them.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len_bytes) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.len_bytes) };
    }
}
