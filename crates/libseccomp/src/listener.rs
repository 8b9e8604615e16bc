//! Notifications of calls that a filter passes to user space.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::status::{Status, last_errno};
use crate::support::{self, Feature, is_known_to_support, supports};

/// `SECCOMP_IOCTL_NOTIF_RECV`, `_SEND` and `_ID_VALID`, for structures of the sizes of Linux 5.0.
const RECEIVE: libc::c_ulong = 0xc050_2100;
const RESPOND: libc::c_ulong = 0xc018_2101;
const IS_VALID: libc::c_ulong = 0x4008_2102;
/// The number of `SECCOMP_IOCTL_NOTIF_ID_VALID` before Linux 5.9, with the wrong direction.
const IS_VALID_BEFORE_5_9: libc::c_ulong = 0x8008_2102;

/// The sizes of a notification and of a response, once known.
static SIZES: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Zeroed memory for a notification and a response, from the C library. A null pointer asks for none.
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
        let sizes = support::notification_sizes().ok_or(Status::Canceled)?;
        if sizes.seccomp_notif == 0 || sizes.seccomp_notif_resp == 0 {
            return Err(Status::Fault);
        }
        SIZES[1].store(sizes.seccomp_notif_resp.into(), Relaxed);
        SIZES[0].store(sizes.seccomp_notif.into(), Relaxed);
    }
    Ok([0, 1].map(|index: usize| SIZES[index].load(Relaxed)))
}

/// Callers may free it by the C library's `free`.
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
    ask(fd, RECEIVE, notification).map_err(refused)
}

/// Responds to a notification.
pub(crate) fn respond(fd: c_int, response: *mut c_void) -> Result<(), Status> {
    ask(fd, RESPOND, response).map_err(refused)
}

/// Whether a notification is still waiting for its response.
pub(crate) fn is_valid(fd: c_int, id: u64) -> Result<(), Status> {
    let id = ptr::from_ref(&id).cast_mut().cast();
    let asked = ask(fd, IS_VALID, id).or_else(|status| match status {
        Status::Raw(libc::EINVAL) => ask(fd, IS_VALID_BEFORE_5_9, id),
        status => Err(status),
    });
    asked.map_err(|status| match status {
        Status::NotSupported => status,
        _ => Status::NoEntry,
    })
}

/// The kernel's errors are one.
const fn refused(status: Status) -> Status {
    match status {
        Status::Raw(_) => Status::Canceled,
        status => status,
    }
}

fn ask(fd: c_int, request: libc::c_ulong, argument: *mut c_void) -> Result<(), Status> {
    if !is_known_to_support(Feature::Notify) {
        return Err(Status::NotSupported);
    }
    // SAFETY: the kernel checks descriptor and address: an unusable one is an error, not a fault.
    match unsafe { libc::ioctl(fd, request, argument) } {
        ..0 => Err(Status::Raw(last_errno())),
        _ => Ok(()),
    }
}
