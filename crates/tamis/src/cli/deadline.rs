//! The end of a command's time, which can be brought forward.
//!
//! What a command was asked gets the whole time. What it tells besides gets a share of the time, once the answer is
//! known.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tamis_prover::Stop;

/// The share of the time that is spent, once a question is answered, on telling more about it: one part in this many.
const PARTS: u32 = 4;

/// A deadline; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    start: Instant,
    limit: Duration,
    /// In nanoseconds since the start.
    end: Arc<AtomicU64>,
}

impl Deadline {
    /// A deadline after some time from now.
    pub(crate) fn after(limit: Duration) -> Deadline {
        Deadline {
            start: Instant::now(),
            limit,
            end: Arc::new(AtomicU64::new(nanos(limit))),
        }
    }

    /// Cancellation at the deadline.
    pub(crate) fn stop(&self) -> Stop {
        let Deadline { start, end, .. } = self.clone();
        Stop::when(move || nanos(start.elapsed()) >= end.load(Ordering::Relaxed))
    }

    /// Leaves a share of the time, if there is more.
    pub(crate) fn leave_share(&self) {
        let end = self.start.elapsed() + self.limit / PARTS;
        self.end.fetch_min(nanos(end), Ordering::Relaxed);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
