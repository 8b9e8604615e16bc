//! System calls, one thin wrapper each; the only `unsafe` of the crate.
//!
//! A wrapper states why its call is sound and converts -1 to [`Errno`]; policy is up to the callers. [`child`] is
//! the code that runs between `fork` and `exec`.
#![allow(unsafe_code)]
#![cfg_attr(
    not(feature = "commands"),
    allow(
        dead_code,
        reason = "a file has the wrappers of one subject, for commands, too"
    )
)]

#[cfg(feature = "commands")]
pub(crate) mod affinity;
#[cfg(feature = "commands")]
pub(crate) mod bpf;
#[cfg(feature = "commands")]
pub(crate) mod call_registers;
#[cfg(feature = "commands")]
pub(crate) mod child;
#[cfg(feature = "commands")]
pub(crate) mod execute;
pub(crate) mod fd;
#[cfg(feature = "commands")]
pub(crate) mod interrupt;
pub(crate) mod listener;
#[cfg(feature = "commands")]
pub(crate) mod mapped_file;
#[cfg(feature = "commands")]
pub(crate) mod memory;
#[cfg(feature = "commands")]
pub(crate) mod page;
#[cfg(feature = "commands")]
pub(crate) mod process;
#[cfg(feature = "commands")]
pub(crate) mod ptrace;
#[cfg(feature = "commands")]
pub(crate) mod raw_call;
#[cfg(feature = "commands")]
pub(crate) mod ring;
pub(crate) mod seccomp;
pub(crate) mod seize;
#[cfg(feature = "commands")]
pub(crate) mod signal;
#[cfg(feature = "commands")]
pub(crate) mod socket;
#[cfg(feature = "commands")]
pub(crate) mod subject;
#[cfg(feature = "commands")]
pub(crate) mod timing;
#[cfg(feature = "commands")]
pub(crate) mod wait;

use crate::errno::Errno;

/// The result of a call that returns -1 and sets `errno` on failure.
pub(crate) fn check<T: PartialEq + From<i8>>(returned: T) -> Result<T, Errno> {
    if returned == T::from(-1) {
        Err(Errno::last())
    } else {
        Ok(returned)
    }
}
