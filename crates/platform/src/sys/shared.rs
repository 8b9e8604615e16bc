//! An array in memory that is shared with guests, which may change any byte of it at any time: its elements are atomic
//! numbers only.

use std::fs::File;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

use tamis_kernel::Errno;

/// A type of atomic numbers, for which every bit pattern is valid and which may change at any time.
///
/// # Safety
/// As above. Zeros are the initial value.
pub(crate) unsafe trait Atomic: Sync {}

/// An array in a file, which is mapped as long as this lives.
#[derive(Debug)]
pub(crate) struct Shared<T> {
    first: NonNull<T>,
    count: usize,
}

// SAFETY: the memory isn't bound to a thread, and its elements may be used from all.
unsafe impl<T: Atomic> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Atomic> Sync for Shared<T> {}

impl<T: Atomic> Shared<T> {
    /// An array of zeros in a file that another process has created with `memfd_create`, empty, and with seals allowed.
    /// Other files are refused with `EINVAL`.
    pub(crate) fn new(file: &File, count: usize) -> Result<Shared<T>, Errno> {
        let fd = file.as_raw_fd();
        // SAFETY: takes no pointers.
        if unsafe { libc::fcntl(fd, libc::F_GET_SEALS) } != 0 {
            return Err(Errno(libc::EINVAL));
        }
        let bytes = count * size_of::<T>();
        let resized = file.set_len(bytes as u64);
        resized.map_err(|error| errno(&error))?;
        // A process that shortened the file could crash this process.
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: the kernel takes the seals as a number.
        if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) } < 0 {
            return Err(Errno::last());
        }
        let metadata = file.metadata();
        if metadata.map_err(|error| errno(&error))?.len() != bytes as u64 {
            return Err(Errno(libc::EINVAL));
        }
        Self::map(count, libc::MAP_SHARED, fd)
    }

    /// An array of zeros that this process shares with those that it forks.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn with_children(count: usize) -> Result<Shared<T>, Errno> {
        Self::map(count, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1)
    }

    /// Excludes the array from processes that the calling one forks from now on.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn keep_from_children(&self) -> Result<(), Errno> {
        let first = self.first.as_ptr().cast();
        // SAFETY: the mapping is this array's, and stays in this process.
        match unsafe { libc::madvise(first, self.len_bytes(), libc::MADV_DONTFORK) } {
            0 => Ok(()),
            _ => Err(Errno::last()),
        }
    }

    fn map(count: usize, flags: i32, fd: i32) -> Result<Shared<T>, Errno> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let bytes = count * size_of::<T>();
        // SAFETY: a new mapping affects no other; a file has so many bytes and keeps them.
        let mapped = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, fd, 0) };
        match NonNull::new(mapped.cast::<T>()) {
            Some(first) if mapped != libc::MAP_FAILED => Ok(Shared { first, count }),
            _ => Err(Errno::last()),
        }
    }
}

impl<T> Shared<T> {
    /// The bytes of the array.
    const fn len_bytes(&self) -> usize {
        self.count * size_of::<T>()
    }
}

impl<T: Atomic> Deref for Shared<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: so many elements are mapped as long as `self` lives, a mapping is aligned to pages, zeros are a value
        // of the type, and it has only atomic numbers, so others may change them meanwhile.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to `self`, and what borrows from it borrows `self`.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.len_bytes()) };
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(libc::EIO))
}
