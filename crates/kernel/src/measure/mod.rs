//! Timing system calls under filters.
//!
//! Filters can't be taken off, so each figure comes from a child of its own: it stays on one CPU,
//! installs a stack of filters, times many short batches of each call and reports through shared
//! memory. Subjects take turns, A B C A B C, so that a machine that gets slower doesn't favour the
//! first. The filters should be [harmless](mod@tamis_bpf::harmless): a call that kills the child is an error.
//!
//! What it doesn't do: no judgement of the figures, no baselines of its own; an empty stack is one.

pub mod calls;

use std::error;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tamis_abi::SeccompData;
use tamis_bpf::{Insn, Program};

use crate::errno::Errno;
use crate::flags::Flags;
use crate::install::{self, InstallError};
use crate::sys::page::Shared;
use crate::sys::timing::{self, Board, Plan, RawCall, stage};
use crate::sys::wait::{self, Event};

pub use calls::Call;

/// The most calls of one measurement.
pub const MAX_CALLS: usize = timing::MAX_CALLS;
/// The clock that calls are timed with; nanoseconds are calibrated against `CLOCK_MONOTONIC_RAW`.
pub const CLOCK: &str = timing::CLOCK;

/// How long one child may take; it needs some ten milliseconds for four calls.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// How often the parent looks whether the child has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// The least time over which the clock is calibrated: 0.01 % with readings 1 µs apart.
const MIN_CALIBRATION_NS: u64 = 10_000_000;

/// How long one call took under one stack, the call itself included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// The fastest batch of all rounds.
    pub min_ns: f64,
    /// The median round's median batch.
    pub median_ns: f64,
}

/// What was measured of one stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// How long installing all its filters took in the fastest round.
    pub install_ns: f64,
    /// Per call, in the order of the calls.
    pub calls: Vec<Timing>,
}

/// Why nothing was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MeasureError {
    /// More than [`MAX_CALLS`] calls.
    TooManyCalls,
    /// Something before the filters failed: shared memory, the fork, choosing a CPU.
    Start(Errno),
    /// A filter was not installed.
    Install {
        /// The stack.
        subject: usize,
        /// The filter, counted from the oldest.
        filter: usize,
        /// Why.
        error: InstallError,
    },
    /// The child ended before it had timed all calls: the filter killed it, or somebody else.
    Died {
        /// The stack.
        subject: usize,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// The child took more than twenty seconds.
    TimedOut {
        /// The stack.
        subject: usize,
    },
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeasureError::TooManyCalls => {
                write!(f, "at most {MAX_CALLS} calls can be timed together")
            }
            MeasureError::Start(errno) => {
                write!(f, "the measuring process could not be started: {errno}")
            }
            MeasureError::Install { error, .. } => error.fmt(f),
            MeasureError::Died {
                signal: Some(signal),
                ..
            } => write!(f, "the measuring process was killed by signal {signal}"),
            MeasureError::Died { signal: None, .. } => {
                f.write_str("the measuring process ended before it was done")
            }
            MeasureError::TimedOut { .. } => write!(
                f,
                "the measuring process took more than {} seconds",
                TIME_LIMIT.as_secs()
            ),
        }
    }
}

impl error::Error for MeasureError {}

/// Times native calls under each of some stacks of filters, in `rounds` rounds, at least one.
///
/// A round takes about 13000 calls of each kind per stack. Calls must be such as [`Call::find`] gives:
/// they are made as they are. Blocks until all is done.
///
/// # Errors
/// See [`MeasureError`].
pub fn measure(
    stacks: &[Vec<Program>],
    calls: &[SeccompData],
    rounds: u32,
) -> Result<Vec<Measured>, MeasureError> {
    if calls.len() > MAX_CALLS {
        return Err(MeasureError::TooManyCalls);
    }
    let raw = |call: &SeccompData| (libc::c_long::from(call.nr as i32), call.args);
    let calls: Vec<RawCall> = calls.iter().map(raw).collect();
    let cpu = timing::last_cpu().map_err(MeasureError::Start)?;
    let calibration = Calibration::start();
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); stacks.len()];
    for _ in 0..rounds.max(1) {
        for (subject, stack) in stacks.iter().enumerate() {
            samples[subject].push(sample(subject, stack, &calls, cpu)?);
        }
    }
    let ns_per_tick = calibration.ns_per_tick();
    let measured = |rounds: &Vec<Sample>| summary(rounds, calls.len(), ns_per_tick);
    Ok(samples.iter().map(measured).collect())
}

/// What one child told, in ticks.
#[derive(Clone, Default)]
struct Sample {
    install: u64,
    /// Fastest and median batch of each call.
    batches: Vec<(u64, u64)>,
}

fn summary(rounds: &[Sample], calls: usize, ns_per_tick: f64) -> Measured {
    let ns_per_batch_tick = ns_per_tick / f64::from(timing::CALLS_PER_BATCH);
    let timing = |call: usize| {
        let min = rounds.iter().map(|round| round.batches[call].0).min();
        let mut medians: Vec<u64> = rounds.iter().map(|round| round.batches[call].1).collect();
        medians.sort_unstable();
        Timing {
            min_ns: min.unwrap_or(0) as f64 * ns_per_batch_tick,
            median_ns: medians[medians.len() / 2] as f64 * ns_per_batch_tick,
        }
    };
    let install = rounds.iter().map(|round| round.install).min();
    Measured {
        install_ns: install.unwrap_or(0) as f64 * ns_per_tick,
        calls: (0..calls).map(timing).collect(),
    }
}

/// One child's life.
fn sample(
    subject: usize,
    stack: &[Program],
    calls: &[RawCall],
    cpu: usize,
) -> Result<Sample, MeasureError> {
    let mut filters: Vec<&[Insn]> = Vec::new();
    for (filter, program) in stack.iter().enumerate() {
        install::check(program, Flags::NONE).map_err(|error| MeasureError::Install {
            subject,
            filter,
            error,
        })?;
        filters.push(program.insns());
    }
    let board = Shared::<Board>::new().map_err(MeasureError::Start)?;
    let plan = Plan {
        filters: &filters,
        calls,
        cpu,
        board: &board,
    };
    let pid = timing::spawn(&plan).map_err(MeasureError::Start)?;
    let end = wait_for(pid).map_err(MeasureError::Start)?;
    let load = |figure: &AtomicU64| figure.load(Ordering::Acquire);
    let errno = Errno(board.errno.load(Ordering::Acquire));
    match board.stage.load(Ordering::Acquire) {
        stage::DONE => {
            let figures = board.min_ticks.iter().zip(&board.median_ticks);
            let batches = figures.map(|(min, median)| (load(min), load(median)));
            Ok(Sample {
                install: load(&board.install_ticks),
                batches: batches.take(calls.len()).collect(),
            })
        }
        stage::START if errno.0 != 0 => Err(MeasureError::Start(errno)),
        stage::INSTALL if errno.0 != 0 => Err(MeasureError::Install {
            subject,
            filter: board.filter.load(Ordering::Acquire) as usize,
            error: install::explain(errno, Flags::NONE),
        }),
        _ => Err(match end {
            None => MeasureError::TimedOut { subject },
            Some(Event::Signalled { signal, .. }) => MeasureError::Died {
                subject,
                signal: Some(signal),
            },
            Some(_) => MeasureError::Died {
                subject,
                signal: None,
            },
        }),
    }
}

/// Waits for a child's end; `None` if it had to be killed for taking too long.
fn wait_for(pid: libc::pid_t) -> Result<Option<Event>, Errno> {
    let start = Instant::now();
    while start.elapsed() < TIME_LIMIT {
        if let Some(event) = wait::take(pid)? {
            return Ok(Some(event));
        }
        thread::sleep(POLL_INTERVAL);
    }
    wait::kill(pid, libc::SIGKILL)?;
    wait::peek_end(pid)?;
    wait::take(pid).map(|_| None)
}

/// Both clocks at one moment.
struct Calibration {
    ticks: u64,
    ns: u64,
}

impl Calibration {
    fn start() -> Calibration {
        Calibration {
            ticks: timing::ticks(),
            ns: timing::raw_ns(),
        }
    }

    /// How long a tick has been since the start.
    fn ns_per_tick(&self) -> f64 {
        loop {
            let now = Calibration::start();
            let ns = now.ns.wrapping_sub(self.ns);
            if ns >= MIN_CALIBRATION_NS {
                return ns as f64 / now.ticks.wrapping_sub(self.ticks) as f64;
            }
        }
    }
}
