//! Not more than the kernel can tidy up.
//!
//! The kernel frees a program later, one after the other, on a queue that belongs to the CPU which let go of it.
//! Linux 6.18 hangs for good if more than about a thousand wait there while others are translated. Who asks about
//! tens of thousands of programs therefore stands aside for a moment after every few, which lets the queue run dry.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// How many programs may be let go of at a stretch.
const BATCH: usize = 200;
/// How long the kernel then has this CPU for itself. Freeing a program takes about a microsecond.
const PAUSE: Duration = Duration::from_millis(1);

/// Counts programs that were let go of.
#[derive(Debug, Default)]
pub(super) struct Pace(AtomicUsize);

impl Pace {
    /// To be called after each.
    pub(super) fn step(&self) {
        if self.0.fetch_add(1, Ordering::Relaxed) % BATCH == BATCH - 1 {
            thread::sleep(PAUSE);
        }
    }
}
