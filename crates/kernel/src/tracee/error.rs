//! Errors of tracing.

use std::error;
use std::fmt;

use crate::errno::Errno;

/// A request to the kernel for a tracee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Request {
    /// Starting to trace.
    Seize,
    /// Stopping.
    Interrupt,
    /// Waiting for a report.
    Wait,
    /// Reading its current call.
    CallInfo,
    /// Reading registers.
    Registers,
    /// Writing registers.
    SetRegisters,
    /// Reading the source of a signal.
    SignalInfo,
    /// Reading the message of an event.
    Message,
    /// Reading a filter.
    Filter,
    /// Resuming.
    Resume,
    /// Leaving it in a group stop.
    Listen,
    /// Ending tracing.
    Detach,
    /// Killing.
    Kill,
}

/// A failed request for a tracee.
///
/// ```
/// use tamis_kernel::tracee::{TraceOptions, Request, Tracee};
/// let error = Tracee::seize(i32::MAX, TraceOptions::NONE).unwrap_err();
/// assert_eq!(error.request, Request::Seize);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceError {
    /// The request.
    pub request: Request,
    /// The kernel's error.
    pub errno: Errno,
}

impl Request {
    /// The request's name in `ptrace(2)`, or the call.
    pub const fn name(self) -> &'static str {
        match self {
            Request::Seize => "PTRACE_SEIZE",
            Request::Interrupt => "PTRACE_INTERRUPT",
            Request::Wait => "waitid",
            Request::CallInfo => "PTRACE_GET_SYSCALL_INFO",
            Request::Registers => "PTRACE_GETREGSET",
            Request::SetRegisters => "PTRACE_SETREGSET",
            Request::SignalInfo => "PTRACE_GETSIGINFO",
            Request::Message => "PTRACE_GETEVENTMSG",
            Request::Filter => "PTRACE_SECCOMP_GET_FILTER",
            Request::Resume => "PTRACE_CONT",
            Request::Listen => "PTRACE_LISTEN",
            Request::Detach => "PTRACE_DETACH",
            Request::Kill => "kill",
        }
    }

    /// Converts the kernel's error to the error of this request.
    pub(super) fn failed(self) -> impl Fn(Errno) -> TraceError {
        move |errno| TraceError {
            request: self,
            errno,
        }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.request.name(), self.errno)
    }
}

impl error::Error for TraceError {}
