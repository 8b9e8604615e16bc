//! System calls, one thin wrapper each; the only `unsafe` of the crate.
//!
//! A wrapper states what makes its call sound and turns -1 into [`Errno`]; policy is the callers'.
//! [`child`] is the code that runs between `fork` and `exec`.
#![allow(unsafe_code)]

pub(crate) mod child;
pub(crate) mod fd;
pub(crate) mod listener;
pub(crate) mod page;
pub(crate) mod process;
pub(crate) mod ptrace;
pub(crate) mod raw_call;
pub(crate) mod seccomp;
pub(crate) mod signal;
pub(crate) mod socket;
pub(crate) mod subject;
pub(crate) mod timing;
pub(crate) mod wait;

use crate::errno::Errno;

/// The result of a call that answers -1 and sets `errno` on failure.
pub(crate) fn check<T: PartialEq + From<i8>>(returned: T) -> Result<T, Errno> {
    if returned == T::from(-1) {
        Err(Errno::last())
    } else {
        Ok(returned)
    }
}
