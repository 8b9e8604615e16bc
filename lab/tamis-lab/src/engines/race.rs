//! Interleaved timing of evaluators, in rounds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tamis_kernel::measure::Rounds;
use tamis_report::engines::{EnginesCaseEntry, Row};

/// No further round begins after this time.
const MAX_TIME: Duration = Duration::from_secs(5);

/// The minima are stable if none of these last rounds lowered one by more than [`MIN_FALL`] of it.
const STABLE_ROUNDS: u32 = 4;
const MIN_FALL: f64 = 0.005;

/// Smaller differences of two minima are below the resolution.
const MIN_DIFFERENCE_NS: f64 = 0.1;

/// Work that is timed.
pub(super) struct Contestant<'a> {
    row: Row,
    run: Box<dyn FnMut() -> u32 + 'a>,
    min: Duration,
}

/// The result of a race.
pub(super) struct Outcome {
    rounds: u32,
    is_settled: bool,
    /// The time of an evaluation in the fastest round, in nanoseconds.
    pub(super) times: Vec<(Row, f64)>,
}

impl<'a> Contestant<'a> {
    /// Work that belongs to a row. Its result only prevents the compiler from removing the work.
    pub(super) fn new(row: Row, run: impl FnMut() -> u32 + 'a) -> Contestant<'a> {
        Contestant {
            row,
            run: Box::new(run),
            min: Duration::MAX,
        }
    }
}

impl Outcome {
    /// Subtracts the time of another row from that of a row, and drops the other row.
    pub(super) fn subtract(&mut self, row: Row, other: Row) {
        let found = self.times.iter().position(|(one, _)| *one == other);
        let Some((_, other_ns)) = found.map(|at| self.times.remove(at)) else {
            return;
        };
        for (_, ns) in self.times.iter_mut().filter(|(one, _)| *one == row) {
            *ns = (*ns - other_ns).max(MIN_DIFFERENCE_NS);
        }
    }

    /// The outcome as a case with this number of evaluations.
    pub(super) fn entry(&self, name: String, evaluations: usize) -> EnginesCaseEntry {
        let (rounds, is_settled) = (self.rounds, self.is_settled);
        EnginesCaseEntry::new(name, evaluations, rounds, is_settled, &self.times)
    }
}

/// Runs the contestants in turns until the minima are stable, with this number of evaluations per turn.
pub(super) fn race(
    contestants: &mut [Contestant<'_>],
    rounds: Rounds,
    evaluations: usize,
) -> Outcome {
    let start = Instant::now();
    let max_time = rounds.time.min(MAX_TIME);
    let (mut round, mut last_fall) = (0, 0);
    let is_settled = loop {
        round += 1;
        for contestant in &mut *contestants {
            let start = Instant::now();
            black_box((contestant.run)());
            let time = start.elapsed();
            if time.as_secs_f64() < contestant.min.as_secs_f64() * (1.0 - MIN_FALL) {
                last_fall = round;
            }
            contestant.min = contestant.min.min(time);
        }
        let is_stable = round - last_fall >= STABLE_ROUNDS;
        let is_enough = round >= rounds.min.max(1);
        if round >= rounds.max || is_enough && (is_stable || start.elapsed() > max_time) {
            break is_stable;
        }
    };
    let time = |contestant: &Contestant<'_>| {
        let ns = contestant.min.as_secs_f64() * 1e9;
        (contestant.row, ns / evaluations as f64)
    };
    Outcome {
        rounds: round,
        is_settled,
        times: contestants.iter().map(time).collect(),
    }
}
