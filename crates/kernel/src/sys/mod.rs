//! System calls, one thin wrapper each; the only `unsafe` of the crate.
//!
//! A wrapper states why its call is sound and converts -1 to [`Errno`]; policy is up to the callers. [`child`] is
//! the code that runs between `fork` and `exec`.
#![allow(unsafe_code)]

pub(crate) mod affinity;
pub(crate) mod bpf;
pub(crate) mod call_registers;
pub(crate) mod child;
pub(crate) mod execute;
pub(crate) mod fd;
pub(crate) mod interrupt;
pub(crate) mod listener;
pub(crate) mod mapped_file;
pub(crate) mod memory;
pub(crate) mod page;
pub(crate) mod process;
pub(crate) mod ptrace;
pub(crate) mod raw_call;
pub(crate) mod ring;
pub(crate) mod seccomp;
pub(crate) mod signal;
pub(crate) mod socket;
pub(crate) mod subject;
pub(crate) mod timing;
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
