//! The system call of a stopped tracee, `PTRACE_GET_SYSCALL_INFO`.

use tamis_abi::SeccompData;

/// The system call of a stopped tracee, in the same form on all machines.
///
/// ```no_run
/// use tamis_kernel::tracee::CallPhase;
/// # fn example(stopped: tamis_kernel::tracee::Stopped) -> Result<(), tamis_kernel::tracee::TraceError> {
/// match stopped.call()?.phase {
///     CallPhase::Entry { nr, args } => println!("call {nr} {args:x?}"),
///     CallPhase::Exit { result, .. } => println!("returns {result}"),
///     _ => {}
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallInfo {
    /// The architecture of the call, `AUDIT_ARCH_*`.
    pub arch: u32,
    /// The instruction pointer.
    pub ip: u64,
    /// The stack pointer.
    pub stack_pointer: u64,
    /// The phase of the call at the stop.
    pub phase: CallPhase,
}

/// The phase of the system call of a stopped tracee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallPhase {
    /// Not at a call.
    None,
    /// At its entry.
    Entry {
        /// The call's number.
        nr: u32,
        /// Its arguments.
        args: [u64; 6],
    },
    /// At its exit.
    Exit {
        /// The return value; a negative error number if it failed.
        result: i64,
        /// Whether it failed.
        is_error: bool,
    },
    /// At its entry, because a filter returned `trace`.
    Seccomp {
        /// The call's number.
        nr: u32,
        /// Its arguments.
        args: [u64; 6],
        /// The data of the action.
        data: u32,
    },
}

impl CallInfo {
    /// The call as filters see it; `None` at an exit and outside of calls.
    pub fn data(&self) -> Option<SeccompData> {
        match self.phase {
            CallPhase::Entry { nr, args } | CallPhase::Seccomp { nr, args, .. } => {
                Some(SeccompData {
                    nr,
                    arch: self.arch,
                    ip: self.ip,
                    args,
                })
            }
            CallPhase::None | CallPhase::Exit { .. } => None,
        }
    }
}
