//! A count of the allocations of a function, as a measure of its work and memory that is the same on every machine.
//!
//! An executable counts if it makes [`Counting`] its allocator; in others all counts are zero:
//!
//! ```
//! use tamis_testkit::work::{self, Counting};
//! #[global_allocator]
//! static COUNTING: Counting = Counting;
//! let (_, work) = work::measured(|| vec![0_u8; 1000]);
//! assert_eq!((work.total_bytes, work.most_bytes), (1000, 1000));
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The allocations of a function in its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The sum of all that it allocated, in bytes.
    pub total_bytes: usize,
    /// The most that it had at a time, in bytes.
    pub most_bytes: usize,
}

thread_local! {
    static TOTAL: Cell<usize> = const { Cell::new(0) };
    /// The allocated bytes; negative if memory of another thread was freed.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// The result of a function with its allocations; those of a nested measurement are excluded.
pub fn measured<R>(function: impl FnOnce() -> R) -> (R, Work) {
    let start = LIVE.get();
    TOTAL.set(0);
    MOST.set(start);
    let result = function();
    let work = Work {
        total_bytes: TOTAL.get(),
        most_bytes: MOST.get().saturating_sub(start).unsigned_abs(),
    };
    (result, work)
}

/// The system's allocator, with a count for each thread.
#[derive(Debug)]
pub struct Counting;

// SAFETY: all is left to the system's allocator, and the counts neither unwind nor allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(0, layout.size());
        // SAFETY: the caller's promises are those that the system wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(layout.size(), 0);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(layout.size(), new_size);
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, new_size) }
    }
}

fn count(freed: usize, allocated: usize) {
    // A thread that ends has no counters any more.
    let _ = TOTAL.try_with(|total| total.set(total.get().wrapping_add(allocated)));
    let _ = LIVE.try_with(|live| {
        let bytes = live.get() + allocated.cast_signed() - freed.cast_signed();
        live.set(bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(bytes)));
    });
}
