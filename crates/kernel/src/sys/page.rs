//! A page of memory shared by parent and child, so that the child can report without system calls: once it has its
//! filters, any call may be denied.

use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use crate::errno::Errno;

/// The child's report: its progress, and its error.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Page {
    /// A [`Stage`](crate::sys::child::Stage) as a number.
    pub(crate) stage: AtomicU32,
    /// The filter being installed.
    pub(crate) filter: AtomicU32,
    /// The error that ended the stage; 0 while there is none.
    pub(crate) errno: AtomicI32,
    /// The listener of the last filter; -1 while there is none.
    pub(crate) listener: AtomicI32,
}

impl Default for Page {
    fn default() -> Page {
        Page {
            stage: AtomicU32::new(0),
            filter: AtomicU32::new(0),
            errno: AtomicI32::new(0),
            listener: AtomicI32::new(-1),
        }
    }
}

/// A mapping of one [`Page`].
pub(crate) type SharedPage = Shared<Page>;

/// A mapping of one value, shared with children forked later. The value is not dropped.
#[derive(Debug)]
pub(crate) struct Shared<T>(NonNull<T>);

impl<T: Default + Sync> Shared<T> {
    pub(crate) fn new() -> Result<Shared<T>, Errno> {
        let value = map(size_of::<T>())?.cast::<T>();
        // SAFETY: the mapping is writable, large enough, page-aligned and not shared yet.
        unsafe { value.write(T::default()) };
        Ok(Shared(value))
    }
}

/// A mapping of numbers that are 0 at first, shared with children forked later.
pub(crate) struct SharedTicks {
    first: NonNull<AtomicU64>,
    len: usize,
}

impl SharedTicks {
    /// A mapping of `len` numbers, at least one.
    pub(crate) fn new(len: usize) -> Result<SharedTicks, Errno> {
        let len = len.max(1);
        let first = map(len * size_of::<AtomicU64>())?.cast();
        Ok(SharedTicks { first, len })
    }
}

impl Deref for SharedTicks {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has room for so many, is page-aligned, begins as zeros, which are valid,
        // and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl Drop for SharedTicks {
    fn drop(&mut self) {
        // SAFETY: as for `Shared`.
        unsafe { libc::munmap(self.first.as_ptr().cast(), size_of_val::<[AtomicU64]>(self)) };
    }
}

/// A new mapping of this many bytes, all 0, shared with children.
fn map(len_bytes: usize) -> Result<NonNull<libc::c_void>, Errno> {
    // SAFETY: a new anonymous mapping at an address of the kernel's choice.
    let address = unsafe {
        libc::mmap(
            ptr::null_mut(),
            len_bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    NonNull::new(address).ok_or(Errno(libc::ENOMEM))
}

impl<T: Sync> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping was initialised by `new`, lives as long as `self`, and is changed through other
        // references or by the child only atomically: `T` is `Sync`.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and no reference into it outlives `self`. A failure could only
        // leave it mapped.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<T>()) };
    }
}

// SAFETY: the value is only ever read through shared references, and any thread may unmap it.
unsafe impl<T: Sync> Send for Shared<T> {}
// SAFETY: as above: all access goes through `&T`.
unsafe impl<T: Sync> Sync for Shared<T> {}

/// The size of a page of memory.
pub(crate) fn size_bytes() -> u64 {
    // SAFETY: has no effects, and every system supports it.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}
