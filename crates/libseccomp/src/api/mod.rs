//! The exported functions, `seccomp.h`.
//!
//! Each checks its arguments and calls the module that implements it. Null and unknown handles, null pointers and
//! undefined values yield `EINVAL`. The functions are documented by libseccomp: `seccomp_init(3)` and so on.

mod arches;
mod calls;
mod filters;
mod notifications;
mod output;
mod rules;

pub(crate) use notifications::notify_addfd;

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tamis_abi::{Arch, host};
use tamis_scmp::number;

use crate::contexts::{self, Handle};
use crate::filter::Filter;
use crate::status::Status;

/// The return value of a function: 0 or a negative code. A panic, which would be a bug, is an internal error.
fn code(work: impl FnOnce() -> Result<(), Status>) -> c_int {
    let result = guarded(Err(Status::Fault), work);
    result.map_or_else(Status::code, |()| 0)
}

/// The result of a function, or a default if it panics.
fn guarded<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    // A filter is valid even after a panic during a change: its program is cleared, and its rules are those added so
    // far.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

/// The filter of a handle.
///
/// # Safety
/// The caller of the interface uses a handle in one thread at a time.
unsafe fn any_filter<'a>(handle: Handle) -> Result<&'a mut Filter, Status> {
    // SAFETY: as the caller guarantees.
    unsafe { contexts::get(handle) }.ok_or(Status::Invalid)
}

/// The filter of a handle, which must have architectures.
///
/// # Safety
/// As for [`any_filter`].
unsafe fn filter<'a>(handle: Handle) -> Result<&'a mut Filter, Status> {
    // SAFETY: as the caller guarantees.
    let filter = unsafe { any_filter(handle) }?;
    match filter.has_arches() {
        true => Ok(filter),
        false => Err(Status::Invalid),
    }
}

/// The architecture that the library was compiled for.
fn native() -> Result<Arch, Status> {
    host::arch().ok_or(Status::NotSupported)
}

/// The architecture of a value of the interface; 0 is the native one.
fn arch(value: u32) -> Result<Arch, Status> {
    match value {
        0 => native(),
        value => number::arch_of_token(value).ok_or(Status::Invalid),
    }
}
