//! The clock of a measurement: its rate, and what it can tell apart.

use crate::sys::timing;

/// The least time over which the clock is calibrated: 0.01 % with readings 1 µs apart.
const MIN_CALIBRATION_NS: u64 = 10_000_000;
/// How many readings tell what a clock can tell apart.
const READINGS: usize = 2000;

/// The clock that calls were timed with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// `TSC`, the processor's time stamp counter, or `CLOCK_MONOTONIC`.
    pub name: &'static str,
    /// How long a tick was, by `CLOCK_MONOTONIC_RAW` over the whole measurement.
    pub ns_per_tick: f64,
    /// The steps in which it advances. A batch is [`CALLS_PER_BATCH`](super::CALLS_PER_BATCH) calls, so
    /// that a call is known that many times finer.
    pub granularity_ns: f64,
    /// How long reading it takes.
    pub reading_ns: f64,
    /// By how much its rate differed between rounds, as a part of the rate: thousandths say that it is no
    /// clock but a counter of cycles.
    pub drift: f64,
}

impl Clock {
    /// The clock of this machine, with the rates that it had over longer and longer times, the last over
    /// all.
    pub(super) fn of(rates: &[f64]) -> Clock {
        let ns_per_tick = rates.last().copied().unwrap_or(1.0);
        let least = rates.iter().copied().fold(ns_per_tick, f64::min);
        let most = rates.iter().copied().fold(ns_per_tick, f64::max);
        let mut readings = [0; READINGS];
        for reading in &mut readings {
            *reading = timing::ticks();
        }
        let (granularity, reading) = steps(&readings);
        Clock {
            name: timing::CLOCK,
            ns_per_tick,
            granularity_ns: granularity as f64 * ns_per_tick,
            reading_ns: reading as f64 * ns_per_tick,
            drift: (most - least) / ns_per_tick,
        }
    }
}

/// The largest step that all readings are multiples of, at least 1, and the median distance of two.
fn steps(readings: &[u64]) -> (u64, u64) {
    let distances = readings
        .windows(2)
        .map(|pair| pair[1].wrapping_sub(pair[0]));
    let mut distances: Vec<u64> = distances.collect();
    distances.sort_unstable();
    let step = distances.iter().copied().fold(0, greatest_divisor);
    let median = distances.get(distances.len() / 2).copied().unwrap_or(0);
    (step.max(1), median)
}

fn greatest_divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => greatest_divisor(b, a % b),
    }
}

/// Both clocks at one moment.
pub(super) struct Calibration {
    ticks: u64,
    ns: u64,
}

impl Calibration {
    pub(super) fn start() -> Calibration {
        Calibration {
            ticks: timing::ticks(),
            ns: timing::raw_ns(),
        }
    }

    /// How long a tick has been since the start; waits until that is known well.
    pub(super) fn ns_per_tick(&self) -> f64 {
        loop {
            let now = Calibration::start();
            let ns = now.ns.wrapping_sub(self.ns);
            if ns >= MIN_CALIBRATION_NS {
                return ns as f64 / now.ticks.wrapping_sub(self.ticks) as f64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_changes_is_told() {
        let drift = |rates: &[f64]| Clock::of(rates).drift;
        assert_eq!(drift(&[]), 0.0);
        assert_eq!(drift(&[0.5, 0.5]), 0.0);
        assert!((drift(&[0.25, 0.75, 0.5]) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_clock_that_advances_in_steps_is_found_out() {
        assert_eq!(steps(&[100, 136, 172, 280, 316]), (36, 36));
        assert_eq!(steps(&[100, 100, 102, 105]), (1, 2));
        assert_eq!(steps(&[7, 7, 7]), (1, 0));
    }
}
