//! The requests on a listener, `SECCOMP_IOCTL_NOTIF_*`.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Instant;

use tamis_abi::SeccompData;

use crate::errno::Errno;
use crate::listener::{Notification, Reply};
use crate::sys::{check, seccomp};

/// The sizes of the kernel's structures: newer kernels may have longer ones than this crate, and read and write
/// that much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffers {
    request_words: usize,
    response_words: usize,
}

impl Buffers {
    /// Gets the sizes from the kernel.
    pub(crate) fn new() -> Result<Buffers, Errno> {
        let sizes = seccomp::notification_sizes()?;
        let words = |kernel: u16, own: usize| usize::from(kernel).max(own).div_ceil(8);
        Ok(Buffers {
            request_words: words(sizes.seccomp_notif, size_of::<libc::seccomp_notif>()),
            response_words: words(
                sizes.seccomp_notif_resp,
                size_of::<libc::seccomp_notif_resp>(),
            ),
        })
    }
}

/// The time limit of a wait.
#[derive(Clone, Copy)]
pub(crate) enum Timeout {
    AtOnce,
    Never,
    At(Instant),
}

impl Timeout {
    /// In milliseconds, rounded up; -1 is never.
    fn ms(self) -> i32 {
        match self {
            Timeout::AtOnce => 0,
            Timeout::Never => -1,
            Timeout::At(time) => {
                let left = time.saturating_duration_since(Instant::now());
                i32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
            }
        }
    }
}

/// The result of a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitResult {
    /// There is a call.
    Call,
    /// No task with the filter is left, or `until` is readable.
    Ended,
    /// The time is up.
    TimedOut,
}

/// Blocks until there is a call, no task with the filter is left, `until` is readable, or the time is up.
pub(crate) fn wait(
    fd: BorrowedFd<'_>,
    until: Option<BorrowedFd<'_>>,
    timeout: Timeout,
) -> Result<WaitResult, Errno> {
    let entry = |fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // A negative descriptor is skipped.
    let mut entries = [
        entry(until.map_or(-1, |fd| fd.as_raw_fd())),
        entry(fd.as_raw_fd()),
    ];
    loop {
        // SAFETY: the array has this many entries.
        let returned = unsafe {
            let count = entries.len() as libc::nfds_t;
            libc::poll(entries.as_mut_ptr(), count, timeout.ms())
        };
        match check(returned) {
            Ok(0) => return Ok(WaitResult::TimedOut),
            Ok(_) if entries[0].revents != 0 => return Ok(WaitResult::Ended),
            Ok(_) if entries[1].revents & libc::POLLIN != 0 => return Ok(WaitResult::Call),
            Ok(_) => return Ok(WaitResult::Ended),
            Err(Errno(libc::EINTR)) => {}
            Err(errno) => return Err(errno),
        }
    }
}

pub(crate) fn receive(fd: BorrowedFd<'_>, buffers: &Buffers) -> Result<Notification, Errno> {
    // The kernel requires zeros.
    let mut buffer = vec![0u64; buffers.request_words];
    // SAFETY: the buffer has the size of the kernel's structure.
    let returned = unsafe {
        libc::ioctl(
            fd.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_RECV as _,
            buffer.as_mut_ptr(),
        )
    };
    check(returned)?;
    // SAFETY: the buffer is aligned for 64-bit words, at least as large as the structure, which has only numbers
    // and the same beginning in every kernel.
    let request = unsafe { &*buffer.as_ptr().cast::<libc::seccomp_notif>() };
    Ok(Notification {
        id: request.id,
        thread: request.pid as i32,
        call: SeccompData {
            nr: request.data.nr as u32,
            arch: request.data.arch,
            ip: request.data.instruction_pointer,
            args: request.data.args,
        },
    })
}

/// Repeats a request until no signal interrupts it.
fn uninterrupted<T>(mut request: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match request() {
            Err(Errno(libc::EINTR)) => {}
            result => return result,
        }
    }
}

pub(crate) fn send(
    fd: BorrowedFd<'_>,
    buffers: &Buffers,
    id: u64,
    reply: Reply,
) -> Result<(), Errno> {
    let (val, error, flags) = match reply {
        Reply::Return(value) => (value, 0, 0),
        Reply::Errno(errno) => (0, -i32::from(errno), 0),
        Reply::Continue => (0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
    };
    let mut buffer = vec![0u64; buffers.response_words];
    let response = libc::seccomp_notif_resp {
        id,
        val,
        error,
        flags,
    };
    // SAFETY: the buffer is aligned for 64-bit words and at least as large as the structure.
    unsafe {
        buffer
            .as_mut_ptr()
            .cast::<libc::seccomp_notif_resp>()
            .write(response);
    }
    uninterrupted(|| {
        // SAFETY: the buffer has the size of the kernel's structure.
        let returned = unsafe {
            libc::ioctl(
                fd.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND as _,
                buffer.as_mut_ptr(),
            )
        };
        check(returned).map(|_| ())
    })
}

pub(crate) fn is_valid(fd: BorrowedFd<'_>, id: u64) -> Result<(), Errno> {
    uninterrupted(|| {
        // SAFETY: the kernel reads one 64-bit word.
        let returned = unsafe {
            libc::ioctl(
                fd.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _,
                &raw const id,
            )
        };
        check(returned).map(|_| ())
    })
}

/// The purpose of passing a descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddFd {
    /// Give it to the caller, which still waits.
    Only,
    /// The same, and have the call return its number. Kernel 5.14.
    AndReply,
}

pub(crate) fn add_fd(
    fd: BorrowedFd<'_>,
    id: u64,
    added: BorrowedFd<'_>,
    what: AddFd,
) -> Result<i32, Errno> {
    let mut request = MaybeUninit::<libc::seccomp_notif_addfd>::zeroed();
    // SAFETY: zero is valid for all members; the pointer is to the value above.
    let request = unsafe {
        let members = request.as_mut_ptr();
        (*members).id = id;
        if what == AddFd::AndReply {
            (*members).flags = libc::SECCOMP_ADDFD_FLAG_SEND as u32;
        }
        (*members).srcfd = added.as_raw_fd() as u32;
        (*members).newfd_flags = libc::O_CLOEXEC as u32;
        request.assume_init()
    };
    uninterrupted(|| {
        // SAFETY: the number of the request contains the size of the structure.
        let returned = unsafe {
            libc::ioctl(
                fd.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ADDFD as _,
                &raw const request,
            )
        };
        check(returned)
    })
}

pub(crate) fn set_sync_wake_up(fd: BorrowedFd<'_>, on: bool) -> Result<(), Errno> {
    /// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP` of `linux/seccomp.h`.
    const SYNC_WAKE_UP: u64 = 1;
    let flags = if on { SYNC_WAKE_UP } else { 0 };
    // SAFETY: the kernel takes the flags as a number.
    let returned = unsafe {
        libc::ioctl(
            fd.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as _,
            flags,
        )
    };
    check(returned).map(|_| ())
}
