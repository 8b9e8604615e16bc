//! Limits the rate at which programs are freed.
//!
//! The kernel frees programs asynchronously, one after the other, on a work queue of the CPU that released them.
//! Linux 6.18 hangs permanently if more than about a thousand are queued there while others are converted. So tests
//! of tens of thousands of programs pause briefly after each batch, which drains the queue.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The most programs released without a pause.
const BATCH: usize = 200;
/// The length of a pause. Freeing a program takes about a microsecond.
const PAUSE: Duration = Duration::from_millis(1);

/// Counts released programs.
#[derive(Debug, Default)]
pub(super) struct ReleaseCounter(AtomicUsize);

impl ReleaseCounter {
    /// Called after each release.
    pub(super) fn step(&self) {
        if self.0.fetch_add(1, Ordering::Relaxed) % BATCH == BATCH - 1 {
            thread::sleep(PAUSE);
        }
    }
}
