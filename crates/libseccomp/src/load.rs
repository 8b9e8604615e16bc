//! Installing a program.
//!
//! After the system call that installs the filter nothing happens but the return: the filter may forbid everything
//! else. The notification descriptor belongs to the process, not to a filter, as in libseccomp.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use tamis_bpf::Insn;

use crate::attributes::Attributes;
use crate::filter::Filter;
use crate::status::{self, Status, last_errno};
use crate::support::{Feature, supports};

/// No descriptor.
const NONE: c_int = -1;

/// The process's notification descriptor.
static LISTENER: AtomicI32 = AtomicI32::new(NONE);

/// The notification descriptor, or -1.
pub(crate) fn listener() -> c_int {
    LISTENER.load(Relaxed)
}

/// Closes and forgets the notification descriptor.
pub(crate) fn reset() {
    let fd = LISTENER.swap(NONE, Relaxed);
    if fd > 0 {
        // SAFETY: the descriptor came from the kernel at a load, and is closed once.
        unsafe { libc::close(fd) };
    }
}

/// Makes the program if there is none yet, and installs it.
pub(crate) fn load(filter: &mut Filter) -> Result<(), Status> {
    filter.program()?;
    let notifies = filter.notifies();
    let attributes = filter.attributes().clone();
    let program = filter.program()?;
    install(program.insns(), &attributes, notifies).map_err(|status| match status {
        Status::Raw(_) if !attributes.raw_errors => Status::Canceled,
        Status::Raw(errno) if !status::is_returned(errno) => Status::Fault,
        status => status,
    })
}

fn install(insns: &[Insn], attributes: &Attributes, notifies: bool) -> Result<(), Status> {
    if attributes.no_new_privs {
        // SAFETY: takes no pointers.
        check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())?;
    }
    let program = libc::sock_fprog {
        // A proved program has at most 4096 instructions.
        len: insns.len() as libc::c_ushort,
        filter: insns.as_ptr().cast::<libc::sock_filter>().cast_mut(),
    };
    if !supports(Feature::Syscall) {
        // SAFETY: `Insn` has the layout of `sock_filter`; the kernel reads `len` of them.
        let returned = unsafe {
            libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            )
        };
        return check(returned.into()).map(|_| ());
    }
    let flags = flags(attributes, notifies)?;
    // SAFETY: as above.
    let returned = check(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    })?;
    installed(returned, flags)
}

/// The meaning of a positive result: a descriptor, or the thread that couldn't be synchronised.
fn installed(returned: libc::c_long, flags: libc::c_ulong) -> Result<(), Status> {
    if returned == 0 {
        return Ok(());
    }
    if flags & libc::SECCOMP_FILTER_FLAG_NEW_LISTENER != 0 {
        LISTENER.store(returned as c_int, Relaxed);
        return Ok(());
    }
    Err(Status::NoThread)
}

fn flags(attributes: &Attributes, notifies: bool) -> Result<libc::c_ulong, Status> {
    let is_first = listener() == NONE;
    let listens = notifies && is_first && supports(Feature::Notify);
    let mut flags = 0;
    if attributes.tsync {
        flags |= libc::SECCOMP_FILTER_FLAG_TSYNC;
        if is_first && supports(Feature::TsyncEsrch) {
            flags |= libc::SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
        } else if listens {
            return Err(Status::Canceled);
        }
    }
    if listens {
        flags |= libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        if attributes.wait_killable {
            flags |= libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        }
    }
    if attributes.log {
        flags |= libc::SECCOMP_FILTER_FLAG_LOG;
    }
    if attributes.spec_allow {
        flags |= libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    }
    Ok(flags)
}

fn check(returned: libc::c_long) -> Result<libc::c_long, Status> {
    match returned {
        ..0 => Err(Status::Raw(last_errno())),
        _ => Ok(returned),
    }
}
