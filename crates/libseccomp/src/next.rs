//! Additions of libseccomp's main branch after 2.6.1.
//!
//! The library of this crate implements 2.6.1: it lacks the newer function and rejects the newer action. A second
//! library, `tamis-libseccomp-next`, links this one, exports the function and selects the newer release when it is
//! loaded.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tamis_scmp::Release;

use crate::api;

static IS_NEXT: AtomicBool = AtomicBool::new(false);

/// Selects the interface of the main branch for the whole process.
pub fn choose() {
    IS_NEXT.store(true, Relaxed);
}

/// `seccomp_notify_addfd`: copies a descriptor into the task of a notification. Returns its number there, or a negative
/// error code. The kernel checks the address.
pub fn notify_addfd(fd: c_int, addfd: *mut c_void) -> c_int {
    api::notify_addfd(fd, addfd)
}

/// The implemented release.
pub(crate) fn release() -> Release {
    match IS_NEXT.load(Relaxed) {
        true => Release::Next,
        false => Release::Reference,
    }
}
