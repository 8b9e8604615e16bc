//! Options of sockets: classic programs as filters, `SO_ATTACH_FILTER`, and time limits of other processes' sockets.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use tamis_bpf::Insn;

use crate::errno::Errno;
use crate::sys::{check, fd};

/// Which transfers a time limit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
}

/// The time limit of a descriptor's transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    /// The socket has none, or it is no socket.
    None,
    After(Duration),
}

/// The time limit of a process's descriptor: `SO_RCVTIMEO` or `SO_SNDTIMEO`.
pub(crate) fn time_limit(
    pid: libc::pid_t,
    fd: i32,
    direction: Direction,
) -> Result<TimeLimit, Errno> {
    // SAFETY: takes no pointers.
    let process = check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    let process = fd::adopt(process as i32);
    // SAFETY: as above.
    let copy = check(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) })?;
    let copy = fd::adopt(copy as i32);
    let option = match direction {
        Direction::In => libc::SO_RCVTIMEO,
        Direction::Out => libc::SO_SNDTIMEO,
    };
    let mut time = MaybeUninit::<libc::timeval>::zeroed();
    let mut size = size_of::<libc::timeval>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes.
    let returned = unsafe {
        libc::getsockopt(
            copy.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            time.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    match check(returned) {
        Ok(_) => {}
        Err(Errno(libc::ENOTSOCK)) => return Ok(TimeLimit::None),
        Err(errno) => return Err(errno),
    }
    // SAFETY: it was zeroed, which is valid.
    let time = unsafe { time.assume_init() };
    let seconds = Duration::from_secs(time.tv_sec.cast_unsigned());
    let limit = seconds + Duration::from_micros(time.tv_usec.cast_unsigned());
    Ok(match limit.is_zero() {
        true => TimeLimit::None,
        false => TimeLimit::After(limit),
    })
}

/// Attaches a program as the filter of incoming packets; it replaces the previous one.
pub(crate) fn attach_filter(socket: BorrowedFd<'_>, insns: &[Insn]) -> Result<(), Errno> {
    let program = libc::sock_fprog {
        len: insns.len() as libc::c_ushort,
        filter: insns.as_ptr().cast::<libc::sock_filter>().cast_mut(),
    };
    // SAFETY: `Insn` is `repr(C)` with the fields of `sock_filter`; the kernel reads `len` of them, at most
    // as many as there are, and the size is that of the structure.
    let returned = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    check(returned).map(|_| ())
}
