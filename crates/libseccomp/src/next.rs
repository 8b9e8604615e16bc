//! What libseccomp's main branch has beyond 2.6.1.
//!
//! The library of this crate stands for 2.6.1: it lacks the function that came later, and refuses the action. Another
//! library, `tamis-libseccomp-next`, is made of this one, exports the function and chooses the later release when it is
//! loaded.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tamis_scmp::Release;

use crate::api;

static IS_NEXT: AtomicBool = AtomicBool::new(false);

/// From now on the library has the interface of the main branch, for the whole process.
pub fn choose() {
    IS_NEXT.store(true, Relaxed);
}

/// `seccomp_notify_addfd`: copies a descriptor of the caller into a task that waits for the response to a notification.
/// Returns its number there, or a negative error code. The kernel checks the address.
pub fn notify_addfd(fd: c_int, addfd: *mut c_void) -> c_int {
    api::notify_addfd(fd, addfd)
}

/// The release whose interface this is.
pub(crate) fn release() -> Release {
    match IS_NEXT.load(Relaxed) {
        true => Release::Next,
        false => Release::Reference,
    }
}
