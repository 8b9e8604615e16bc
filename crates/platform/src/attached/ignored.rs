//! Ignored signals, which end calls of traced tasks.
//!
//! The kernel drops a signal that a task ignores, but not for a traced one, whose tracer may want to see it. It is still not handled, so
//! the kernel makes most calls that it has ended again; some end with `EINTR` whatever the signal: a parent in `epoll_wait` gets
//! that when a child ends. The tracer has the kernel make these again. One with a limit of time then waits that long anew, so that
//! happens a limited number of times in a row.

use std::collections::BTreeMap;

use tamis_abi::{Arch, Nr, SeccompData, restart, syscall};
use tamis_kernel::Status;
use tamis_kernel::tracee::{Stopped, TraceError};

use super::interrupted::result;
use crate::sys::machine;

/// How often a call with a limit of time is made again in a row.
const MAX_REPEATS: u32 = 16;

/// The calls that were made again last, by task, and how often in a row.
#[derive(Default)]
pub(super) struct Repeats(BTreeMap<i32, (SeccompData, u32)>);

impl Repeats {
    /// Has a task that has stopped for this signal make its call again if it ignores the signal; the call, if it does.
    ///
    /// # Errors
    /// As [`Stopped::registers`] and [`Stopped::set_result`].
    pub(super) fn restart(
        &mut self,
        stopped: &Stopped,
        signal: i32,
    ) -> Result<Option<SeccompData>, TraceError> {
        const INTERRUPTED: i64 = -(libc::EINTR as i64);
        let tid = stopped.tracee().tid();
        if result(stopped)? != Some(INTERRUPTED) {
            return Ok(None);
        }
        let Some(call) = stopped.last_call() else {
            return Ok(None);
        };
        let Some(has_limit) = has_limit(&call) else {
            return Ok(None);
        };
        // Another may be handled, and end the call for good.
        if !is_ignored(tid, signal) || machine::has_signal(tid) {
            return Ok(None);
        }
        let (last, count) = self.0.entry(tid).or_insert((call, 0));
        if *last != call {
            (*last, *count) = (call, 0);
        }
        *count += 1;
        if has_limit && *count > MAX_REPEATS {
            self.0.remove(&tid);
            return Ok(None);
        }
        stopped.set_result(restart::NO_INTR)?;
        Ok(Some(call))
    }

    /// A task has ended.
    pub(super) fn forget(&mut self, tid: i32) {
        self.0.remove(&tid);
    }
}

/// Whether a task ignores a signal, by its own choice or by default.
fn is_ignored(tid: i32, signal: i32) -> bool {
    const BY_DEFAULT: [i32; 4] = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];
    let task = Status::read(tid);
    let has = |set| {
        let mask = task.as_ref().and_then(|task| task.mask(set));
        mask.is_some_and(|mask| mask & 1 << (signal - 1) != 0)
    };
    has("SigIgn") || BY_DEFAULT.contains(&signal) && task.is_some() && !has("SigCgt")
}

/// Whether a call that any signal ends with `EINTR` has a limit of time; `None` for other calls.
fn has_limit(call: &SeccompData) -> Option<bool> {
    let arch = Arch::of_call(call.arch, call.nr)?;
    let pointer = |index: usize| call.args[index] != 0;
    match syscall::name(arch, Nr(call.nr))? {
        "epoll_wait" | "epoll_pwait" => Some(call.args[3] as i32 >= 0),
        "epoll_pwait2" | "semtimedop" | "semtimedop_time64" => Some(pointer(3)),
        "rt_sigtimedwait" | "rt_sigtimedwait_time64" => Some(pointer(2)),
        "io_getevents" | "io_pgetevents" | "io_pgetevents_time64" => Some(pointer(4)),
        "semop" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_any_signal_ends_are_told_by_their_limits() {
        let of = |text| has_limit(&tamis_abi::call::parse(text, Arch::X86_64).unwrap());
        assert_eq!(of("epoll_wait(3, 0x1000, 1, 0xffffffff)"), Some(false));
        assert_eq!(of("epoll_wait(3, 0x1000, 1, 100)"), Some(true));
        assert_eq!(of("rt_sigtimedwait(0x1000, 0, 0, 8)"), Some(false));
        assert_eq!(of("semtimedop(1, 0x1000, 1, 0x2000)"), Some(true));
        assert_eq!(of("read(0, 0x1000, 1)"), None);
    }
}
