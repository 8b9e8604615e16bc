//! Ignored signals, which end calls of traced tasks.
//!
//! The kernel drops a signal that a task ignores, but not for a traced task, whose tracer may want to see it. The
//! signal is still not handled, so the kernel restarts most calls that it has ended. Some calls end with `EINTR` by any
//! signal: a parent in `epoll_wait` gets it when a child ends. The tracer makes the kernel restart these.
//!
//! A restarted call waits for its full time limit again. A limit in a register is replaced by the rest, for a tracer
//! that puts the register back at the call's exit. Other limits stay: such a call is restarted for the first of its
//! signals, and for those that come at nearly the same time. A later signal ends it. The begin of a call is unknown: its
//! time counts from its first signal, so that the wait takes up to twice the limit, and this short time.
//!
//! On AArch64 the kernel has forgotten the call by then, and its first argument is lost: there the call ends.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tamis_abi::{SeccompData, restart};

use super::{Stopped, TraceError};
use crate::status::Status;
use limit::{Limit, Place};

mod limit;

/// The most restarts in a row of a call that may have a time limit of an unknown kind.
const MAX_REPEATS: u32 = 16;

/// The part of a time limit within which signals come at the same time.
const SAME_TIME: u32 = 8;

/// The result of a call that a signal has ended for good.
pub const INTERRUPTED: i64 = -(libc::EINTR as i64);

/// The calls that were last restarted, by task.
#[derive(Debug, Default)]
pub struct Restarts(BTreeMap<i32, Restarted>);

/// A call that is restarted until it ends otherwise.
#[derive(Debug)]
struct Restarted {
    /// As the task has made it.
    call: SeccompData,
    first: Instant,
    last: Instant,
    /// The restarts in a row.
    count: u32,
    /// Whether its time limit was replaced.
    is_shortened: bool,
}

/// A restart of a call.
enum Repetition {
    Unchanged,
    /// With these arguments.
    Shortened([u64; 6]),
}

impl Restarts {
    /// Restarts the call of a task that has stopped for this signal, if the task ignores the signal. Returns the
    /// restarted call.
    ///
    /// # Errors
    /// As [`Stopped::registers`] and [`Stopped::set_result`].
    pub fn restart(
        &mut self,
        stopped: &Stopped,
        signal: i32,
    ) -> Result<Option<SeccompData>, TraceError> {
        self.restart_shortened(stopped, signal, |_, _| false)
    }

    /// The same, for a tracer that [restores](Self::restore) the call's arguments at its exit. A time limit in a
    /// register is replaced by the rest, if `may_replace` allows it for the task's call and the changed one.
    ///
    /// # Errors
    /// As [`Stopped::registers`] and [`Stopped::set_result`].
    pub fn restart_shortened(
        &mut self,
        stopped: &Stopped,
        signal: i32,
        may_replace: impl FnOnce(&SeccompData, &SeccompData) -> bool,
    ) -> Result<Option<SeccompData>, TraceError> {
        let tid = stopped.tracee().tid();
        if stopped.result()? != Some(INTERRUPTED) {
            return Ok(None);
        }
        let Some(call) = stopped.last_call() else {
            return Ok(None);
        };
        let Some(place) = Place::from_call(&call) else {
            return Ok(None);
        };
        // Another pending signal may be handled, and end the call for good.
        let Some(task) = Status::read(tid) else {
            return Ok(None);
        };
        if !is_ignored(&task, signal) || task.has_pending_signal() {
            return Ok(None);
        }
        let process = task.number("Tgid").map_or(tid, |number| number as i32);
        let fresh = || Restarted::new(call, Instant::now());
        let restarted = self.0.entry(tid).or_insert_with(fresh);
        if restarted.call != call {
            *restarted = fresh();
        }
        match restarted.again(&place, process, Instant::now(), may_replace) {
            None => {
                self.0.remove(&tid);
                return Ok(None);
            }
            Some(Repetition::Unchanged) => {}
            Some(Repetition::Shortened(args)) => {
                stopped.replace_call(call.nr, &args)?;
                restarted.is_shortened = true;
            }
        }
        stopped.set_result(restart::NO_INTR)?;
        Ok(Some(call))
    }

    /// At a stop of a task after the entry of its restarted call: gives it the arguments that it had.
    ///
    /// # Errors
    /// As [`Stopped::replace_call`].
    pub fn restore(&mut self, stopped: &Stopped) -> Result<(), TraceError> {
        if let Some(restarted) = self.0.get_mut(&stopped.tracee().tid())
            && restarted.is_shortened
        {
            stopped.replace_call(restarted.call.nr, &restarted.call.args)?;
            restarted.is_shortened = false;
        }
        Ok(())
    }

    /// Removes a task that has ended, or whose call has.
    pub fn forget(&mut self, tid: i32) {
        self.0.remove(&tid);
    }
}

impl Restarted {
    const fn new(call: SeccompData, first: Instant) -> Restarted {
        Restarted {
            call,
            first,
            last: first,
            count: 0,
            is_shortened: false,
        }
    }

    /// Its restart after another signal; `None` if it ends.
    fn again(
        &mut self,
        place: &Place,
        process: i32,
        now: Instant,
        may_replace: impl FnOnce(&SeccompData, &SeccompData) -> bool,
    ) -> Option<Repetition> {
        let limit = place.limit(process);
        if let Limit::After(limit) = limit
            && now.duration_since(self.last) > limit
        {
            // The restarted call has ended, and the same was made again.
            *self = Restarted::new(self.call, now);
        }
        self.last = now;
        self.count += 1;
        let passed = now.duration_since(self.first);
        match limit {
            Limit::Never => Some(Repetition::Unchanged),
            Limit::Maybe => (self.count <= MAX_REPEATS).then_some(Repetition::Unchanged),
            Limit::Unknown => None,
            Limit::After(limit) => {
                if let Place::Milliseconds { index, .. } = *place {
                    let mut args = self.call.args;
                    args[index] = rest_ms(limit, passed);
                    let shortened = SeccompData { args, ..self.call };
                    if may_replace(&self.call, &shortened) {
                        return Some(Repetition::Shortened(args));
                    }
                }
                (passed <= limit / SAME_TIME).then_some(Repetition::Unchanged)
            }
        }
    }
}

/// The rest of a time limit, in whole milliseconds.
fn rest_ms(limit: Duration, passed: Duration) -> u64 {
    let rest = limit.saturating_sub(passed);
    rest.as_nanos().div_ceil(1_000_000) as u64
}

/// Whether a task ignores a signal, by its own choice or by default.
fn is_ignored(task: &Status, signal: i32) -> bool {
    const BY_DEFAULT: [i32; 4] = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];
    let has = |set| task.has_signal(set, signal).unwrap_or(false);
    has("SigIgn") || BY_DEFAULT.contains(&signal) && !has("SigCgt")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last argument of `epoll_wait` for the signals after these milliseconds, as long as it is restarted.
    fn rests(text: &str, may_replace: bool, signals_ms: &[u64]) -> Vec<u64> {
        let call = tamis_abi::call::parse(text, tamis_abi::Arch::X86_64).unwrap();
        let first = Instant::now();
        let mut restarted = Restarted::new(call, first);
        let rest = |at_ms: &u64| {
            let place = Place::from_call(&call)?;
            let now = first + Duration::from_millis(*at_ms);
            match restarted.again(&place, 0, now, |_, _| may_replace)? {
                Repetition::Unchanged => Some(call.args[3]),
                Repetition::Shortened(args) => Some(args[3]),
            }
        };
        signals_ms.iter().map_while(rest).collect()
    }

    #[test]
    fn a_limit_in_a_register_decreases() {
        let call = "epoll_wait(3, 0x1000, 1, 500)";
        assert_eq!(rests(call, true, &[0, 400, 800]), [500, 100, 0]);
        let many: Vec<u64> = (0..100).collect();
        assert_eq!(rests(call, true, &many).len(), 100);
    }

    #[test]
    fn a_limit_that_stays_is_restarted_at_one_time() {
        let call = "epoll_wait(3, 0x1000, 1, 500)";
        assert_eq!(rests(call, false, &[0, 1, 50, 400]), [500; 3]);
        // The third is another call.
        assert_eq!(rests(call, false, &[0, 1, 600, 601]), [500; 4]);
    }

    #[test]
    fn calls_without_limit_are_always_restarted() {
        let many: Vec<u64> = (0..100).map(|index| index * 1000).collect();
        let call = "epoll_wait(3, 0x1000, 1, 0xffffffff)";
        assert_eq!(rests(call, true, &many).len(), 100);
    }
}
