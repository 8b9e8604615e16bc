//! The rate of the processor's time stamp counter, in which older experiments give their figures.

use std::time::{Duration, Instant};

/// Over how long the rate is taken.
const SPAN: Duration = Duration::from_millis(50);

/// Ticks per nanosecond; `None` where there is no such counter.
pub fn ticks_per_ns() -> Option<f64> {
    let (start, first) = (Instant::now(), ticks()?);
    while start.elapsed() < SPAN {}
    let (elapsed, last) = (start.elapsed(), ticks()?);
    Some(last.wrapping_sub(first) as f64 / elapsed.as_nanos() as f64)
}

#[cfg(target_arch = "x86_64")]
fn ticks() -> Option<u64> {
    // SAFETY: reads a counter that every processor of this architecture has.
    Some(unsafe { std::arch::x86_64::_rdtsc() })
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> Option<u64> {
    None
}
