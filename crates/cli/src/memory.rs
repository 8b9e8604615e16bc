//! The allocator of the command: the system's, with a count of what is allocated and a limit.
//!
//! Every thread counts for itself and adds to the common count now and then, so that the count costs a few
//! instructions. At the limit, and if the system has no memory, the command [gives up](super::budget).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use tamis_prover::LimitReached;

use super::budget;

/// How many bytes a thread allocates or gives back before it adds them to the common count.
const BATCH_BYTES: isize = 1 << 16;

/// What all threads together have allocated, in bytes. It can be a little negative.
static USED: AtomicIsize = AtomicIsize::new(0);
/// What they may allocate, in bytes.
static LIMIT: AtomicIsize = AtomicIsize::new(isize::MAX);
/// Whether the limit was reached: what is allocated from then on serves to say so.
static IS_REACHED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// What this thread has allocated and not yet added.
    static OWN: Cell<isize> = const { Cell::new(0) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Limits what is allocated, in bytes.
pub(super) fn limit(bytes: usize) {
    LIMIT.store(
        isize::try_from(bytes).unwrap_or(isize::MAX),
        Ordering::Relaxed,
    );
}

struct Counting;

// SAFETY: all is left to the system's allocator. What is done besides neither unwinds nor touches the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(size(layout.size()));
        // SAFETY: the caller's promises are those that the system wants.
        given(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(size(layout.size()));
        // SAFETY: as above.
        given(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-size(layout.size()));
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(size(new_size) - size(layout.size()));
        // SAFETY: as above.
        given(unsafe { System.realloc(place, layout, new_size) })
    }
}

/// No layout has more bytes than an `isize` holds.
const fn size(bytes: usize) -> isize {
    bytes.cast_signed()
}

/// Counts bytes that are about to be allocated, or were given back.
fn count(bytes: isize) {
    // A thread that ends has no counter of its own any more; what it gives back then is little.
    let own = OWN.try_with(|own| {
        let sum = own.get() + bytes;
        let is_batch = sum.abs() >= BATCH_BYTES;
        own.set(if is_batch { 0 } else { sum });
        if is_batch { sum } else { 0 }
    });
    let Ok(batch) = own else { return };
    if batch == 0 {
        return;
    }
    let used = USED
        .fetch_add(batch, Ordering::Relaxed)
        .saturating_add(batch);
    if batch > 0 && used > LIMIT.load(Ordering::Relaxed) {
        reached();
    }
}

/// What the system gave, unless that is nothing.
fn given(place: *mut u8) -> *mut u8 {
    if place.is_null() {
        reached();
    }
    place
}

/// Gives up, once.
#[cold]
fn reached() {
    if !IS_REACHED.swap(true, Ordering::Relaxed) {
        budget::give_up(LimitReached::Memory);
    }
}
