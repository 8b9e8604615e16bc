//! The clock of a measurement: its rate and granularity.

use crate::sys::timing;

/// The least time over which the clock is calibrated: 0.01 % with readings 1 µs apart.
const MIN_CALIBRATION_NS: u64 = 10_000_000;
/// The count of readings for determining the granularity.
const READINGS: usize = 2000;

/// The clock of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// `TSC`, the processor's time stamp counter, or `CLOCK_MONOTONIC`.
    pub name: &'static str,
    /// The length of a tick, by `CLOCK_MONOTONIC_RAW` over the whole measurement.
    pub ns_per_tick: f64,
    /// The granularity of the clock. A batch has [`CALLS_PER_BATCH`](super::CALLS_PER_BATCH) calls, so the time of a
    /// call is finer by this factor.
    pub granularity_ns: f64,
    /// The time for reading it.
    pub reading_ns: f64,
    /// The relative variation of its rate between rounds: with thousandths it is a counter of cycles, not a clock.
    pub drift: f64,
}

impl Clock {
    /// The clock of this machine, with its rates over increasing times, the last over the whole measurement.
    pub(super) fn from_rates(rates: &[f64]) -> Clock {
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

/// The greatest common divisor of the distances of readings, at least 1, and their median.
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

/// Simultaneous readings of both clocks.
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

    /// The length of a tick since the start; waits until it is precise.
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
        let drift = |rates: &[f64]| Clock::from_rates(rates).drift;
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
