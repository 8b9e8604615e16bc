//! Signals that end the wait for a supervisor.
//!
//! The kernel lets any signal end a notified call that the supervisor hasn't received yet, with `ERESTARTSYS`: under a handler
//! without `SA_RESTART` the call fails with `EINTR`, even one that can't be interrupted, such as `close`. With
//! `WAIT_KILLABLE_RECV` (5.19) the wait after that is only ended by deadly signals. The guest's tracer sees the signal
//! before the handler runs, so it has the kernel make a call again that nobody has received. Natively it would not have begun.
//!
//! A forwarded call that blocks ends with the same code, and that one is the program's own. It is the last call that was
//! forwarded for the task, with the same address and arguments. The next one may be the same call again, before it is
//! received: then the code stays only where the call would block, which natively ends it as well.
//!
//! Registers at such a stop are those of x86-64, in both its interfaces: AArch64 has restarted the call by then.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tamis_abi::{ActionKind, Arch, Nr, SeccompData, restart, syscall};
use tamis_bpf::{Program, interp};
use tamis_kernel::tracee::{Stop, Stopped, TraceError};

use crate::patched::serve::lock;
use crate::sys::readiness::{self, Transfer};

/// The calls that the kernel was last told to execute, by task.
pub(super) struct Forwarded<'a> {
    /// The guest's filter.
    filter: &'a Program,
    calls: Mutex<BTreeMap<i32, SeccompData>>,
}

impl<'a> Forwarded<'a> {
    /// Of a guest with this filter.
    pub(super) fn new(filter: &'a Program) -> Forwarded<'a> {
        Forwarded {
            filter,
            calls: Mutex::default(),
        }
    }

    /// A task's call is about to be executed.
    pub(super) fn add(&self, tid: i32, call: SeccompData) {
        lock(&self.calls).insert(tid, call);
    }

    /// A task's call was answered, or the task has ended.
    pub(super) fn remove(&self, tid: i32) {
        lock(&self.calls).remove(&tid);
    }

    /// Has a task that has stopped for a signal make its call again if the signal has ended the wait for the supervisor.
    ///
    /// # Errors
    /// As [`Stopped::registers`] and [`Stopped::set_result`].
    pub(super) fn restart_unreceived(&self, stopped: &Stopped) -> Result<(), TraceError> {
        let is_signal = matches!(stopped.stop(), Stop::Signal(_));
        if !is_signal || result(stopped)? != Some(restart::SYS) {
            return Ok(());
        }
        let tid = stopped.tracee().tid();
        let Some(call) = stopped.last_call() else {
            return Ok(());
        };
        // It stays: several signals may end one call.
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

/// The value in the register of results, of both interfaces of x86-64.
pub(super) fn result(stopped: &Stopped) -> Result<Option<i64>, TraceError> {
    const WORDS: usize = 27;
    const RAX: usize = 10;
    const WORDS_I386: usize = 17;
    const EAX: usize = 6;
    let registers = stopped.registers()?;
    let bytes = registers.bytes();
    let word = |index: usize, size: usize| bytes.get(index * size..(index + 1) * size);
    Ok(match bytes.len() {
        len if len == WORDS * 8 => word(RAX, 8)
            .and_then(|bytes| bytes.try_into().ok())
            .map(i64::from_ne_bytes),
        len if len == WORDS_I386 * 4 => word(EAX, 4)
            .and_then(|bytes| bytes.try_into().ok())
            .map(|bytes| i32::from_ne_bytes(bytes).into()),
        _ => None,
    })
}

/// Whether a call of a stopped task would wait for something that a signal ends.
fn would_block(tid: i32, call: &SeccompData) -> bool {
    let Some(arch) = Arch::of_call(call.arch, call.nr) else {
        return false;
    };
    let name = syscall::name(arch, Nr(call.nr)).unwrap_or_default();
    let transfer = match Wait::of(name) {
        Wait::Never => return false,
        Wait::Always => return true,
        Wait::For(transfer) => transfer,
    };
    !readiness::is_ready(tid, call.args[0] as i32, transfer).unwrap_or(false)
}

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// For nothing, or for something that signals don't end with `ERESTARTSYS`.
    Never,
    /// For its first argument, a descriptor.
    For(Transfer),
    /// For what can't be found out from another process.
    Always,
}

impl Wait {
    /// Of the calls of Linux 6.18 that return `ERESTARTSYS`.
    fn of(name: &str) -> Wait {
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
            assert_ne!(Wait::of(name), Wait::Never, "{name}");
        }
        // A sleep has another code.
        for name in ["close", "getppid", "nanosleep", "kill", "dup2", "mmap"] {
            assert_eq!(Wait::of(name), Wait::Never, "{name}");
        }
    }
}
