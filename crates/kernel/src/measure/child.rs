//! One child of a measurement, on the parent's side: starting it, waiting for it, reading its report.

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
use crate::sys::timing::{self, Plan, Series, TimingReport, stage};
use crate::sys::wait::{self, Event};

use super::MeasureError;

/// The time limit of a child; it needs some ten milliseconds for four calls.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(60);
/// The interval at which the parent polls for the child's end.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The common inputs of the children of a measurement.
pub(super) struct Child<'a> {
    pub(super) calls: &'a [RawCall],
    pub(super) series: &'a [Series],
    pub(super) cpu: usize,
}

/// The report of one child.
pub(super) struct ChildTimes {
    /// The ticks of the installation.
    pub(super) install_ticks: u64,
    /// The ticks of each pass of each batch, one series after the other.
    pub(super) ticks: Vec<u64>,
}

impl Child<'_> {
    /// Measures once under a stack.
    pub(super) fn measure(
        &self,
        subject: usize,
        stack: &[Program],
    ) -> Result<ChildTimes, MeasureError> {
        self.live(subject, stack, None)
    }

    /// The same, and calls `then` while the child has its filters and waits. `then` isn't called if the child fails
    /// before.
    pub(super) fn measure_and_look(
        &self,
        subject: usize,
        stack: &[Program],
        then: &mut dyn FnMut(),
    ) -> Result<ChildTimes, MeasureError> {
        self.live(subject, stack, Some(then))
    }

    fn live(
        &self,
        subject: usize,
        stack: &[Program],
        then: Option<&mut dyn FnMut()>,
    ) -> Result<ChildTimes, MeasureError> {
        let mut filters: Vec<&[Insn]> = Vec::new();
        for (filter, program) in stack.iter().enumerate() {
            install::check(program, Flags::NONE).map_err(|error| MeasureError::Install {
                subject,
                filter,
                error,
            })?;
            filters.push(program.insns());
        }
        let board = Shared::<TimingReport>::new().map_err(MeasureError::Start)?;
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
        Ok(ChildTimes {
            install_ticks: load(&board.install_ticks),
            ticks: ticks[..len].iter().map(load).collect(),
        })
    }
}

/// The reason why a child did not finish.
fn failure(subject: usize, board: &TimingReport, end: Option<Event>) -> MeasureError {
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

/// Waits for a child's end; `None` if it was killed at the time limit. `then` is called once when the child holds;
/// then the child is released.
fn wait_for(
    pid: libc::pid_t,
    board: &TimingReport,
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
