//! Notifications.

use std::ffi::{c_int, c_void};

use crate::api::{code, filter, guarded};
use crate::contexts::Handle;
use crate::listener;
use crate::load;
use crate::status::Status;
use crate::support;

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_notify_alloc(
    notification: *mut *mut c_void,
    response: *mut *mut c_void,
) -> c_int {
    code(|| {
        support::level();
        // SAFETY: as the caller guarantees.
        unsafe { listener::allocate(notification, response) }
    })
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_notify_free(notification: *mut c_void, response: *mut c_void) {
    // SAFETY: both are null or come from `seccomp_notify_alloc`.
    unsafe {
        libc::free(notification);
        libc::free(response);
    }
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
extern "C" fn seccomp_notify_receive(fd: c_int, notification: *mut c_void) -> c_int {
    code(|| listener::receive(fd, notification))
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
extern "C" fn seccomp_notify_respond(fd: c_int, response: *mut c_void) -> c_int {
    code(|| listener::respond(fd, response))
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
extern "C" fn seccomp_notify_id_valid(fd: c_int, id: u64) -> c_int {
    code(|| {
        support::level();
        listener::is_valid(fd, id)
    })
}

/// The number of the descriptor in the task, or an error code.
pub(crate) fn notify_addfd(fd: c_int, addfd: *mut c_void) -> c_int {
    guarded(Status::Fault.code(), || {
        support::level();
        listener::add_fd(fd, addfd).unwrap_or_else(Status::code)
    })
}

/// The descriptor of the process; it doesn't depend on the filter.
// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_notify_fd(handle: Handle) -> c_int {
    support::level();
    // SAFETY: the caller uses the handle in one thread at a time.
    let valid = code(|| unsafe { filter(handle) }.map(|_| ()));
    match load::listener() {
        _ if valid < 0 => valid,
        ..0 => Status::Fault.code(),
        fd => fd,
    }
}
