//! The allocator: the system's, with a count of allocated bytes and a limit.
//!
//! Every thread counts its allocations and adds them to the total in batches, so that counting costs a few
//! instructions. At the limit, and when the system is out of memory, the command [gives up](super::budget).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use tamis_prover::LimitReached;

use super::budget;

/// The bytes that a thread allocates or frees before it adds them to the total.
const BATCH_BYTES: isize = 1 << 16;

/// The total of all threads in bytes. It can be slightly negative.
static USED: AtomicIsize = AtomicIsize::new(0);
/// The limit of the total in bytes.
static LIMIT: AtomicIsize = AtomicIsize::new(isize::MAX);
/// Whether the limit was reached; allocations are then unlimited, for the report.
static IS_REACHED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The bytes of this thread that are not yet part of the total.
    static OWN: Cell<isize> = const { Cell::new(0) };
}

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

/// Limits the total of allocated bytes.
pub(super) fn limit(bytes: usize) {
    LIMIT.store(
        isize::try_from(bytes).unwrap_or(isize::MAX),
        Ordering::Relaxed,
    );
}

struct CountingAllocator;

// SAFETY: all calls are forwarded to the system's allocator; counting neither unwinds nor accesses the memory.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(size(layout.size()));
        // SAFETY: the contract is that of this function's caller.
        or_give_up(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(size(layout.size()));
        // SAFETY: as above.
        or_give_up(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-size(layout.size()));
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(size(new_size) - size(layout.size()));
        // SAFETY: as above.
        or_give_up(unsafe { System.realloc(place, layout, new_size) })
    }
}

/// A layout's size fits into an `isize`.
const fn size(bytes: usize) -> isize {
    bytes.cast_signed()
}

/// Counts bytes that will be allocated, or were freed.
fn count(bytes: isize) {
    // The counter of a terminating thread is gone; its last deallocations are few and not counted.
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
        limit_reached();
    }
}

/// The allocated memory; gives up if there is none.
fn or_give_up(place: *mut u8) -> *mut u8 {
    if place.is_null() {
        limit_reached();
    }
    place
}

/// Gives up, once.
#[cold]
fn limit_reached() {
    if !IS_REACHED.swap(true, Ordering::Relaxed) {
        budget::give_up(LimitReached::Memory);
    }
}
