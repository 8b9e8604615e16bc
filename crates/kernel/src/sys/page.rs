//! A page of memory that parent and child share, so that the child can report without system calls:
//! once it has its filters, any call it makes may be denied.

use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, AtomicU32};

use crate::errno::Errno;

/// What the child tells: how far it got, and what stopped it.
#[repr(C)]
pub(crate) struct Page {
    /// A [`Stage`](crate::sys::child::Stage) as a number.
    pub(crate) stage: AtomicU32,
    /// The filter that is being installed.
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
pub(crate) struct Shared<T>(NonNull<T>);

impl<T: Default + Sync> Shared<T> {
    pub(crate) fn new() -> Result<Shared<T>, Errno> {
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let value = NonNull::new(address.cast::<T>()).ok_or(Errno(libc::ENOMEM))?;
        // SAFETY: the mapping is writable, large enough, page-aligned and not shared with anybody yet.
        unsafe { value.write(T::default()) };
        Ok(Shared(value))
    }
}

impl<T: Sync> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping was initialised by `new`, lives as long as `self`, and all that is
        // changed through other references or by the child is atomic: `T` is `Sync`.
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
