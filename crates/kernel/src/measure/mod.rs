//! Timing system calls under filters.
//!
//! Filters can't be removed, so each figure comes from a separate child: it stays on one CPU, installs a stack of
//! filters, times many short batches of calls and reports through shared memory. Subjects take turns, A B C A B C,
//! so that a machine that slows down doesn't favour the first. Noise can only make a batch slower, so the fastest
//! pass of all rounds counts for each batch, and rounds are repeated until these minima settle. The filters should
//! be [harmless](mod@tamis_bpf::harmless): a call that kills the child is an error.
//!
//! Not included are a judgement of the figures and baselines; an empty stack can be one.
//!
//! | module | contents |
//! |---|---|
//! | [`calls`] | the calls that can be made thousands of times, and their arguments |
//! | [`bitmap`] | whether the kernel skips the filters for a call, by timing |
//! | [`memory`] | the visible memory of filters in the kernel |

pub mod bitmap;
pub mod calls;
mod child;
mod clock;
mod error;
mod figures;
pub mod memory;

use std::collections::HashMap;
use std::slice;
use std::time::{Duration, Instant};

use tamis_abi::SeccompData;
use tamis_bpf::Program;

use crate::sys::raw_call::RawCall;
use crate::sys::timing::{self, Series};
use child::Child;
use clock::Calibration;
use figures::Figures;

pub use calls::Call;
pub use clock::Clock;
pub use error::MeasureError;

/// The most sequences of one workload.
pub const MAX_CALLS: usize = 1024;
/// The most calls of one sequence.
pub const MAX_SEQUENCE: usize = 1 << 16;
/// The count of calls that are timed together: enough to make reading the clock negligible, and few enough that
/// most batches fall between two interrupts.
pub const CALLS_PER_BATCH: usize = 128;

/// The division of calls into batches, and the passes of one child over each.
#[derive(Clone, Copy)]
struct Passes {
    /// The calls of a batch.
    batch: usize,
    /// The passes over a short sequence, which is one batch.
    short: usize,
    /// The passes over each batch of a long sequence.
    long: usize,
}

/// For figures.
const MANY: Passes = Passes {
    batch: CALLS_PER_BATCH,
    short: 101,
    long: 25,
};
/// For differences of hundreds of nanoseconds: batches so short that most are not interrupted even on a loaded CPU.
const FEW: Passes = Passes {
    batch: 16,
    short: 30,
    long: 5,
};

/// The calls that are timed under each stack: sequences of calls.
///
/// Sequences of up to [`CALLS_PER_BATCH`] calls are repeated; of longer ones, each piece of this length is timed
/// separately. An empty one takes no time.
#[derive(Clone, Debug, Default)]
pub struct TimedCalls {
    /// The different calls.
    calls: Vec<SeccompData>,
    places: HashMap<SeccompData, u32>,
    /// For each sequence the indices of its calls.
    sequences: Vec<Vec<u32>>,
}

impl TimedCalls {
    /// Each of these calls as a sequence, repeated.
    pub fn of_calls(calls: &[SeccompData]) -> TimedCalls {
        let mut workload = TimedCalls::default();
        for call in calls {
            workload.add(slice::from_ref(call));
        }
        workload
    }

    /// Adds a sequence. Its calls are made unchanged: each must be from [`Call`].
    pub fn add(&mut self, sequence: &[SeccompData]) {
        let TimedCalls { calls, places, .. } = self;
        let place = |call: &SeccompData| {
            *places.entry(*call).or_insert_with(|| {
                calls.push(*call);
                calls.len() as u32 - 1
            })
        };
        let sequence = sequence.iter().map(place).collect();
        self.sequences.push(sequence);
    }
}

/// The count of rounds. In each, every stack is installed and measured again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// At least these, and at least one.
    pub min: u32,
    /// At most these, even if the minima are still decreasing.
    pub max: u32,
    /// No further round begins after this time, once the minimum number is done.
    pub time: Duration,
}

impl Rounds {
    /// Exactly this many rounds.
    pub const fn exactly(rounds: u32) -> Rounds {
        Rounds {
            min: rounds,
            max: rounds,
            time: Duration::MAX,
        }
    }
}

impl Default for Rounds {
    /// 6 to 60 rounds, within half a minute.
    fn default() -> Rounds {
        Rounds {
            min: 6,
            max: 60,
            time: Duration::from_secs(30),
        }
    }
}

/// The progress of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The current round, from 1.
    pub round: u32,
    /// The next stack, from 0; equal to `subjects` at the end of a round.
    pub subject: usize,
    /// The count of stacks.
    pub subjects: usize,
}

/// The time of one call under one stack, including the call itself; for a sequence, the mean of its calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// The fastest pass of all rounds. For a long sequence, each piece's median pass in its fastest round: a single
    /// pass may be fast by lucky branch predictions.
    pub min_ns: f64,
    /// The median pass of the median round.
    pub median_ns: f64,
}

/// The figures of one stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The time for installing all its filters in the fastest round.
    pub install_ns: f64,
    /// The same in the median round.
    pub install_median_ns: f64,
    /// The times of the workload's sequences, in order.
    pub calls: Vec<Timing>,
}

/// The figures of all stacks.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The figures of each stack, in order.
    pub subjects: Vec<Measured>,
    /// The count of rounds.
    pub rounds: u32,
    /// Whether the minima had settled at the end.
    pub is_settled: bool,
    /// The CPU that all children stayed on.
    pub cpu: usize,
    /// The clock.
    pub clock: Clock,
}

/// Times calls under each of some stacks of filters, in `rounds` rounds, at least one.
///
/// A round makes about 13000 calls of each kind per stack. Calls must be from [`Call`]: they are made unchanged.
/// Blocks until all is done.
///
/// # Errors
/// See [`MeasureError`].
pub fn measure(
    stacks: &[Vec<Program>],
    calls: &[SeccompData],
    rounds: u32,
) -> Result<Vec<Measured>, MeasureError> {
    let workload = TimedCalls::of_calls(calls);
    let measurement = measure_workload(stacks, &workload, Rounds::exactly(rounds), &mut |_| {})?;
    Ok(measurement.subjects)
}

/// Times a workload under each of some stacks of filters and reports the progress before each step.
///
/// A round makes about 13000 calls of each short sequence per stack, of longer ones 25 times all their calls.
/// Blocks until all is done.
///
/// # Errors
/// See [`MeasureError`].
pub fn measure_workload(
    stacks: &[Vec<Program>],
    workload: &TimedCalls,
    rounds: Rounds,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<Measurement, MeasureError> {
    measure_passes(stacks, workload, rounds, MANY, on_progress)
}

fn measure_passes(
    stacks: &[Vec<Program>],
    workload: &TimedCalls,
    rounds: Rounds,
    passes: Passes,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<Measurement, MeasureError> {
    let series = series(workload, passes)?;
    let calls: Vec<RawCall> = workload.calls.iter().map(RawCall::from_data).collect();
    let cpu = timing::last_cpu().map_err(MeasureError::Start)?;
    let child = Child {
        calls: &calls,
        series: &series,
        cpu,
    };
    let start = Instant::now();
    let calibration = Calibration::start();
    let mut figures = Figures::new(stacks.len(), &series);
    let subjects = stacks.len();
    let mut rates = Vec::new();
    let mut is_settled = false;
    while figures.rounds() < rounds.min.max(1)
        || figures.rounds() < rounds.max && start.elapsed() < rounds.time && !is_settled
    {
        let round = figures.rounds() + 1;
        for (subject, stack) in stacks.iter().enumerate() {
            on_progress(Progress {
                round,
                subject,
                subjects,
            });
            figures.add(subject, child.measure(subject, stack)?);
        }
        on_progress(Progress {
            round,
            subject: subjects,
            subjects,
        });
        figures.end_round();
        let rate = calibration.ns_per_tick();
        is_settled = figures.are_settled(rate);
        rates.push(rate);
    }
    let clock = Clock::from_rates(&rates);
    Ok(Measurement {
        subjects: figures.summary(clock.ns_per_tick),
        rounds: figures.rounds(),
        is_settled,
        cpu,
        clock,
    })
}

/// The workload in the pieces that a child times.
fn series(workload: &TimedCalls, passes: Passes) -> Result<Vec<Series>, MeasureError> {
    let is_short = |sequence: &Vec<u32>| sequence.len() <= MAX_SEQUENCE;
    if workload.sequences.len() > MAX_CALLS || !workload.sequences.iter().all(is_short) {
        return Err(MeasureError::TooManyCalls);
    }
    let series = |sequence: &Vec<u32>| {
        if sequence.len() > passes.batch {
            let pieces = sequence.chunks(passes.batch);
            return Series {
                batches: pieces.map(<[u32]>::to_vec).collect(),
                passes: passes.long,
            };
        }
        let times = passes.batch.div_ceil(sequence.len().max(1));
        Series {
            batches: vec![sequence.repeat(times)],
            passes: passes.short,
        }
    };
    Ok(workload.sequences.iter().map(series).collect())
}
