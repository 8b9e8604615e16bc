//! One child of a measurement, as the parent sees it: starting it, waiting for it, reading what it
//! tells.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tamis_bpf::{Insn, Program};

use crate::ended::Ended;
use crate::errno::Errno;
use crate::flags::Flags;
use crate::install;
use crate::sys::page::{Shared, SharedTicks};
use crate::sys::raw_call::RawCall;
use crate::sys::timing::{self, Board, Plan, Series, stage};
use crate::sys::wait::{self, Event};

use super::MeasureError;

/// How long one child may take; it needs some ten milliseconds for four calls.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(60);
/// How often the parent looks whether the child has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// What all children of a measurement do.
pub(super) struct Child<'a> {
    pub(super) calls: &'a [RawCall],
    pub(super) series: &'a [Series],
    pub(super) cpu: usize,
}

/// What one child told.
pub(super) struct Sample {
    /// How long installing took.
    pub(super) install_ticks: u64,
    /// How long each pass of each batch took, one series after the other.
    pub(super) ticks: Vec<u64>,
}

impl Child<'_> {
    /// Measures once under a stack.
    pub(super) fn measure(
        &self,
        subject: usize,
        stack: &[Program],
    ) -> Result<Sample, MeasureError> {
        self.live(subject, stack, None)
    }

    /// The same, and calls `then` while the child has its filters and waits. If it never gets there,
    /// `then` isn't called.
    pub(super) fn measure_and_look(
        &self,
        subject: usize,
        stack: &[Program],
        then: &mut dyn FnMut(),
    ) -> Result<Sample, MeasureError> {
        self.live(subject, stack, Some(then))
    }

    fn live(
        &self,
        subject: usize,
        stack: &[Program],
        then: Option<&mut dyn FnMut()>,
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
        let len = self.series.iter().map(Series::len).sum();
        let ticks = SharedTicks::new(len).map_err(MeasureError::Start)?;
        let plan = Plan {
            filters: &filters,
            calls: self.calls,
            series: self.series,
            cpu: self.cpu,
            holds: then.is_some(),
            board: &board,
            ticks: &ticks,
        };
        let pid = timing::spawn(&plan).map_err(MeasureError::Start)?;
        let end = wait_for(pid, &board, then).map_err(MeasureError::Start)?;
        if board.stage.load(Ordering::Acquire) != stage::DONE {
            return Err(failure(subject, &board, end));
        }
        let load = |figure: &AtomicU64| figure.load(Ordering::Acquire);
        Ok(Sample {
            install_ticks: load(&board.install_ticks),
            ticks: ticks[..len].iter().map(load).collect(),
        })
    }
}

/// Why a child did not get to its end.
fn failure(subject: usize, board: &Board, end: Option<Event>) -> MeasureError {
    let errno = Errno(board.errno.load(Ordering::Acquire));
    match board.stage.load(Ordering::Acquire) {
        stage::START if errno.0 != 0 => MeasureError::Start(errno),
        stage::PIN if errno.0 != 0 => MeasureError::Pin(errno),
        stage::NO_NEW_PRIVS if errno.0 != 0 => MeasureError::NoNewPrivs(errno),
        stage::INSTALL if errno.0 != 0 => MeasureError::Install {
            subject,
            filter: board.filter.load(Ordering::Acquire) as usize,
            error: install::explain(errno, Flags::NONE),
        },
        _ => match end {
            None => MeasureError::TimedOut { subject },
            Some(Event::Ended(Ended::Signalled { signal, .. })) => MeasureError::Died {
                subject,
                signal: Some(signal),
            },
            Some(_) => MeasureError::Died {
                subject,
                signal: None,
            },
        },
    }
}

/// Waits for a child's end; `None` if it had to be killed for taking too long. A child that waits is
/// looked at once and let go.
fn wait_for(
    pid: libc::pid_t,
    board: &Board,
    mut then: Option<&mut dyn FnMut()>,
) -> Result<Option<Event>, Errno> {
    let start = Instant::now();
    while start.elapsed() < TIME_LIMIT {
        if let Some(event) = wait::take(pid)? {
            return Ok(Some(event));
        }
        if board.stage.load(Ordering::Acquire) == stage::HOLD {
            if let Some(then) = then.take() {
                then();
            }
            board.go.store(1, Ordering::Release);
        }
        thread::sleep(POLL_INTERVAL);
    }
    wait::kill(pid, libc::SIGKILL)?;
    wait::peek_end(pid)?;
    wait::take(pid).map(|_| None)
}
