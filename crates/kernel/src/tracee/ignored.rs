//! Ignored signals, which end calls of traced tasks.
//!
//! The kernel drops a signal that a task ignores, but not for a traced task, whose tracer may want to see it. The
//! signal is still not handled, so the kernel restarts most calls that it has ended. Some calls end with `EINTR` by any
//! signal: a parent in `epoll_wait` gets it when a child ends. The tracer makes the kernel restart these. A call with a
//! time limit then waits for the full time again, so its restarts in a row are limited.
//!
//! On AArch64 the kernel has forgotten the call by then, and its first argument is lost: there the call ends.

use std::collections::BTreeMap;

use tamis_abi::{Arch, Nr, SeccompData, restart, syscall};

use super::{Stopped, TraceError};
use crate::status::Status;

/// The most restarts in a row of a call with a time limit.
const MAX_REPEATS: u32 = 16;

/// The result of a call that a signal has ended for good.
pub const INTERRUPTED: i64 = -(libc::EINTR as i64);

/// The calls that were last restarted, by task, with the number of restarts in a row.
#[derive(Debug, Default)]
pub struct Restarts(BTreeMap<i32, (SeccompData, u32)>);

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
        let tid = stopped.tracee().tid();
        if stopped.result()? != Some(INTERRUPTED) {
            return Ok(None);
        }
        let Some(call) = stopped.last_call() else {
            return Ok(None);
        };
        let Some(has_limit) = has_limit(&call) else {
            return Ok(None);
        };
        // Another pending signal may be handled, and end the call for good.
        let Some(task) = Status::read(tid) else {
            return Ok(None);
        };
        if !is_ignored(&task, signal) || task.has_pending_signal() {
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

    /// Removes a task that has ended, or whose call has.
    pub fn forget(&mut self, tid: i32) {
        self.0.remove(&tid);
    }
}

/// Whether a task ignores a signal, by its own choice or by default.
fn is_ignored(task: &Status, signal: i32) -> bool {
    const BY_DEFAULT: [i32; 4] = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];
    let has = |set| task.has_signal(set, signal).unwrap_or(false);
    has("SigIgn") || BY_DEFAULT.contains(&signal) && !has("SigCgt")
}

/// Whether a call that any signal ends with `EINTR` has a time limit; `None` for other calls.
fn has_limit(call: &SeccompData) -> Option<bool> {
    /// `IORING_ENTER_EXT_ARG` of `linux/io_uring.h`: the argument may have a time limit.
    const EXT_ARG: u64 = 1 << 3;
    let arch = Arch::of_call(call.arch, call.nr)?;
    let pointer = |index: usize| call.args[index] != 0;
    match syscall::name(arch, Nr(call.nr))? {
        "epoll_wait" | "epoll_pwait" => Some(call.args[3] as i32 >= 0),
        "epoll_pwait2" | "semtimedop" | "semtimedop_time64" => Some(pointer(3)),
        "rt_sigtimedwait" | "rt_sigtimedwait_time64" => Some(pointer(2)),
        "io_getevents" | "io_pgetevents" | "io_pgetevents_time64" => Some(pointer(4)),
        "io_uring_enter" => Some(call.args[3] & EXT_ARG != 0),
        "semop" => Some(false),
        // `semop` and `semtimedop`.
        "ipc" => match call.args[0] & 0xffff {
            1 => Some(false),
            4 => Some(pointer(5)),
            _ => None,
        },
        // Of sockets with `SO_RCVTIMEO` or `SO_SNDTIMEO`: the kernel restarts the waits of others by itself.
        "accept" | "accept4" | "connect" | "read" | "readv" | "recv" | "recvfrom" | "recvmmsg"
        | "recvmmsg_time64" | "recvmsg" | "send" | "sendfile" | "sendfile64" | "sendmmsg"
        | "sendmsg" | "sendto" | "socketcall" | "splice" | "write" | "writev" => Some(true),
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
        assert_eq!(of("io_uring_enter(3, 0, 1, 1, 0, 8)"), Some(false));
        assert_eq!(of("io_uring_enter(3, 0, 1, 9, 0x1000, 24)"), Some(true));
        assert_eq!(of("recvfrom(3, 0x1000, 1, 0, 0, 0)"), Some(true));
        // Whether it has closed the descriptor is unknown.
        assert_eq!(of("close(3)"), None);
    }
}
