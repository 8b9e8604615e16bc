//! Notifications of calls that a filter passes to user space.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tamis_kernel::probe;

use crate::status::Status;
use crate::support::{Feature, is_known_to_support, supports};

/// The number of `SECCOMP_IOCTL_NOTIF_ID_VALID` before Linux 5.9, with the wrong direction.
const IS_VALID_BEFORE_5_9: libc::Ioctl = 0x8008_2102_u32 as libc::Ioctl;

/// The sizes of a notification and of a response, once queried.
static SIZES: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Allocates zeroed memory for a notification and a response with the C library's allocator. A null pointer omits one.
///
/// # Safety
/// Each pointer is null or valid for a write.
pub(crate) unsafe fn allocate(
    notification: *mut *mut c_void,
    response: *mut *mut c_void,
) -> Result<(), Status> {
    if !supports(Feature::Syscall) {
        return Err(Status::NotSupported);
    }
    let [for_notification, for_response] = sizes()?;
    // SAFETY: as the caller guarantees; the pointers are ours until stored.
    unsafe {
        if !notification.is_null() {
            *notification = zeroed(for_notification)?;
        }
        if !response.is_null() {
            match zeroed(for_response) {
                Ok(memory) => *response = memory,
                Err(status) => {
                    if !notification.is_null() {
                        libc::free(*notification);
                    }
                    return Err(status);
                }
            }
        }
    }
    Ok(())
}

fn sizes() -> Result<[usize; 2], Status> {
    if SIZES[0].load(Relaxed) == 0 {
        let sizes = probe::notify_sizes().ok_or(Status::Canceled)?;
        if sizes.request == 0 || sizes.response == 0 {
            return Err(Status::Fault);
        }
        SIZES[1].store(sizes.response.into(), Relaxed);
        SIZES[0].store(sizes.request.into(), Relaxed);
    }
    Ok([0, 1].map(|index: usize| SIZES[index].load(Relaxed)))
}

/// Allocated with `calloc`, so that callers can release it with `free`.
fn zeroed(size: usize) -> Result<*mut c_void, Status> {
    // SAFETY: `calloc` takes any sizes.
    let memory = unsafe { libc::calloc(1, size) };
    if memory.is_null() {
        return Err(Status::NoMemory);
    }
    Ok(memory)
}

/// Waits for a notification.
pub(crate) fn receive(fd: c_int, notification: *mut c_void) -> Result<(), Status> {
    let result = ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_RECV, notification);
    result.map(|_| ()).map_err(|status| status.shown(false))
}

/// Responds to a notification.
pub(crate) fn respond(fd: c_int, response: *mut c_void) -> Result<(), Status> {
    let result = ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_SEND, response);
    result.map(|_| ()).map_err(|status| status.shown(false))
}

/// Copies a descriptor into the task, since Linux 5.9; returns its number there.
pub(crate) fn add_fd(fd: c_int, addfd: *mut c_void) -> Result<c_int, Status> {
    ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_ADDFD, addfd).map_err(|status| status.shown(false))
}

/// Whether a notification still waits for its response.
pub(crate) fn is_valid(fd: c_int, id: u64) -> Result<(), Status> {
    let id = ptr::from_ref(&id).cast_mut().cast();
    let result = ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, id).or_else(|status| match status {
        Status::Raw(libc::EINVAL) => ioctl(fd, IS_VALID_BEFORE_5_9, id),
        status => Err(status),
    });
    result.map(|_| ()).map_err(|status| match status {
        Status::NotSupported => status,
        _ => Status::NoEntry,
    })
}

/// Calls `ioctl`.
fn ioctl(fd: c_int, request: libc::Ioctl, argument: *mut c_void) -> Result<c_int, Status> {
    if !is_known_to_support(Feature::Notify) {
        return Err(Status::NotSupported);
    }
    // SAFETY: the kernel checks descriptor and address: an unusable one is an error, not a fault.
    match unsafe { libc::ioctl(fd, request, argument) } {
        ..0 => Err(Status::last()),
        returned => Ok(returned),
    }
}
