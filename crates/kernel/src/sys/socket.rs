//! Classic programs as socket filters, `SO_ATTACH_FILTER`.

use std::os::fd::{AsRawFd, BorrowedFd};

use tamis_bpf::Insn;

use crate::errno::Errno;
use crate::sys::check;

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
