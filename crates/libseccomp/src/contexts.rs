//! The table of handles.
//!
//! A handle is the address of a filter. Callers may pass null, a released handle or a handle of another library, so
//! every handle is looked up before the address is dereferenced; unknown handles are rejected. The table is a chain of
//! blocks that only grows, with one atomic word per handle: it takes no locks, and allocates nothing for up to
//! [`BLOCK`] filters.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::filter::Filter;

/// A handle, `scmp_filter_ctx`.
pub(crate) type Handle = *mut c_void;

/// Handles in a block.
const BLOCK: usize = 64;

struct Block {
    live: [AtomicPtr<Filter>; BLOCK],
    next: AtomicPtr<Block>,
}

static FIRST: Block = Block::new();

impl Block {
    const fn new() -> Block {
        Block {
            live: [const { AtomicPtr::new(ptr::null_mut()) }; BLOCK],
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The block after this one.
    fn next(&self) -> Option<&'static Block> {
        let next = self.next.load(Ordering::Acquire);
        // SAFETY: blocks in the chain come from `Box::leak` and are never freed.
        unsafe { next.as_ref() }
    }

    /// The block after this one, appended if there is none.
    fn next_or_new(&self) -> &'static Block {
        if let Some(next) = self.next() {
            return next;
        }
        let new: &'static mut Block = Box::leak(Box::new(Block::new()));
        let new = ptr::from_mut(new);
        let appended =
            self.next
                .compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        let next = match appended {
            Ok(_) => new,
            Err(others) => {
                // SAFETY: the block was made above and isn't in the chain.
                drop(unsafe { Box::from_raw(new) });
                others
            }
        };
        // SAFETY: it is in the chain.
        unsafe { &*next }
    }
}

/// The slots of all handles.
fn slots() -> impl Iterator<Item = &'static AtomicPtr<Filter>> {
    let blocks = std::iter::successors(Some(&FIRST), |block| block.next());
    blocks.flat_map(|block| &block.live)
}

/// Adds a filter and returns its handle.
pub(crate) fn add(filter: Filter) -> Handle {
    let filter = Box::into_raw(Box::new(filter));
    let mut block = &FIRST;
    loop {
        let is_taken = |place: &AtomicPtr<Filter>| {
            let free = ptr::null_mut();
            place.compare_exchange(free, filter, Ordering::AcqRel, Ordering::Relaxed)
        };
        if block.live.iter().any(|place| is_taken(place).is_ok()) {
            return filter.cast();
        }
        block = block.next_or_new();
    }
}

/// The filter of a handle; `None` if the handle is unknown.
///
/// # Safety
/// No other reference to this filter exists until the result is dropped: its caller uses the handle in one thread at a
/// time.
pub(crate) unsafe fn get<'a>(handle: Handle) -> Option<&'a mut Filter> {
    let filter: *mut Filter = handle.cast();
    let is_live = !filter.is_null() && slots().any(|place| place.load(Ordering::Acquire) == filter);
    // SAFETY: it came from `Box::into_raw` and wasn't taken; the caller has no other reference.
    is_live.then(|| unsafe { &mut *filter })
}

/// Removes a filter and invalidates its handle; `None` if the handle is unknown.
pub(crate) fn take(handle: Handle) -> Option<Filter> {
    let filter: *mut Filter = handle.cast();
    if filter.is_null() {
        return None;
    }
    let is_removed = |place: &AtomicPtr<Filter>| {
        let free = ptr::null_mut();
        place.compare_exchange(filter, free, Ordering::AcqRel, Ordering::Relaxed)
    };
    let found = slots().any(|place| is_removed(place).is_ok());
    // SAFETY: it came from `Box::into_raw`, and only the thread that removed it from its slot gets here.
    found.then(|| *unsafe { Box::from_raw(filter) })
}
