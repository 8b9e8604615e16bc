//! Signals that end the wait for a supervisor.
//!
//! With `ERESTARTSYS`, the kernel lets any signal end a notified call that the supervisor hasn't received yet: under a
//! handler without `SA_RESTART` the call fails with `EINTR`, even an uninterruptible one such as `close`. With
//! `WAIT_KILLABLE_RECV` (5.19) only fatal signals end the wait after the reception. The guest's tracer sees the signal
//! before the handler runs, so it makes the kernel restart a call that wasn't received. Natively the call would not
//! have begun.
//!
//! A forwarded call that blocks ends with the same code, which is the native behaviour. It is identified as the last
//! call that was forwarded for the task, with the same address and arguments. The next call may be identical and not
//! received yet: then the code is kept only if the call would block, since a signal ends it natively as well.
//!
//! Registers at such a stop are those of x86-64, in both its interfaces: AArch64 has restarted the call by then.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tamis_abi::{ActionKind, Arch, Nr, SeccompData, restart, syscall};
use tamis_bpf::{Program, interp};
use tamis_kernel::tracee::{Stop, Stopped, TraceError};

use crate::patched::dispatcher::lock;
use crate::sys::readiness::{self, Transfer};

/// The calls that the kernel last executed after a notification, by task.
pub(super) struct ForwardedCalls<'a> {
    /// The guest's filter.
    filter: &'a Program,
    calls: Mutex<BTreeMap<i32, SeccompData>>,
}

impl<'a> ForwardedCalls<'a> {
    /// The state of a guest with this filter.
    pub(super) fn new(filter: &'a Program) -> ForwardedCalls<'a> {
        ForwardedCalls {
            filter,
            calls: Mutex::default(),
        }
    }

    /// Notes a task's call that is about to be executed.
    pub(super) fn add(&self, tid: i32, call: SeccompData) {
        lock(&self.calls).insert(tid, call);
    }

    /// Removes a task whose call was answered, or that has ended.
    pub(super) fn remove(&self, tid: i32) {
        lock(&self.calls).remove(&tid);
    }

    /// Restarts the call of a task that has stopped for a signal, if the signal has ended the wait for the supervisor.
    ///
    /// # Errors
    /// As [`Stopped::registers`] and [`Stopped::set_result`].
    pub(super) fn restart_unreceived(&self, stopped: &Stopped) -> Result<(), TraceError> {
        let is_signal = matches!(stopped.stop(), Stop::Signal(_));
        if !is_signal || stopped.result()? != Some(restart::SYS) {
            return Ok(());
        }
        let tid = stopped.tracee().tid();
        let Some(call) = stopped.last_call() else {
            return Ok(());
        };
        // The entry stays: several signals may end one call.
        let forwarded = lock(&self.calls).get(&tid).copied();
        if self.is_notified(&call) && (forwarded != Some(call) || !would_block(tid, &call)) {
            stopped.set_result(restart::NO_INTR)?;
        }
        Ok(())
    }

    fn is_notified(&self, call: &SeccompData) -> bool {
        let returned = interp::run(self.filter, call).ret;
        tamis_abi::Action::from_ret(returned).kind == ActionKind::Notify
    }
}

/// Whether a call of a stopped task would wait for an event that a signal ends.
fn would_block(tid: i32, call: &SeccompData) -> bool {
    let Some(arch) = Arch::of_call(call.arch, call.nr) else {
        return false;
    };
    let name = syscall::name(arch, Nr(call.nr)).unwrap_or_default();
    let transfer = match Wait::by_name(name) {
        Wait::Never => return false,
        Wait::Always => return true,
        Wait::For(transfer) => transfer,
    };
    !readiness::is_ready(tid, call.args[0] as i32, transfer).unwrap_or(false)
}

/// The event that a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// None, or an event whose wait signals don't end with `ERESTARTSYS`.
    Never,
    /// Readiness of its first argument, a descriptor.
    For(Transfer),
    /// An event that can't be checked from another process.
    Always,
}

impl Wait {
    /// The wait of a call of Linux 6.18; other calls don't return `ERESTARTSYS`.
    fn by_name(name: &str) -> Wait {
        match name {
            "read" | "readv" | "preadv2" | "recv" | "recvfrom" | "recvmsg" | "recvmmsg"
            | "recvmmsg_time64" | "accept" | "accept4" => Wait::For(Transfer::In),
            "write" | "writev" | "pwritev2" | "send" | "sendto" | "sendmsg" | "sendmmsg" => {
                Wait::For(Transfer::Out)
            }
            "add_key"
            | "connect"
            | "copy_file_range"
            | "creat"
            | "fcntl"
            | "fcntl64"
            | "flock"
            | "futex"
            | "futex_time64"
            | "futex_wait"
            | "futex_waitv"
            | "getrandom"
            | "io_uring_enter"
            | "ioctl"
            | "ipc"
            | "keyctl"
            | "mq_timedreceive"
            | "mq_timedreceive_time64"
            | "mq_timedsend"
            | "mq_timedsend_time64"
            | "open"
            | "openat"
            | "openat2"
            | "quotactl"
            | "quotactl_fd"
            | "request_key"
            | "sendfile"
            | "sendfile64"
            | "socketcall"
            | "splice"
            | "tee"
            | "vmsplice"
            | "wait4"
            | "waitid"
            | "waitpid" => Wait::Always,
            _ => Wait::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_that_wait_are_interrupted() {
        for name in ["read", "write", "accept4", "wait4", "futex", "flock"] {
            assert_ne!(Wait::by_name(name), Wait::Never, "{name}");
        }
        // A sleep ends with another code.
        for name in ["close", "getppid", "nanosleep", "kill", "dup2", "mmap"] {
            assert_eq!(Wait::by_name(name), Wait::Never, "{name}");
        }
    }
}
