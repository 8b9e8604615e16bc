//! Installing a program.
//!
//! Nothing but the return follows the system call that installs the filter, because the filter may deny everything
//! else. The notification descriptor belongs to the process, not to a filter, as in libseccomp.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use tamis_bpf::Insn;
use tamis_kernel::install::{self, Answer};
use tamis_kernel::{Flag, Flags};

use crate::attributes::Attributes;
use crate::filter::Filter;
use crate::status::{self, Status};
use crate::support::{Feature, supports};

/// No descriptor.
const NONE: c_int = -1;

/// The process's notification descriptor.
static LISTENER: AtomicI32 = AtomicI32::new(NONE);

/// The notification descriptor, or -1.
pub(crate) fn listener() -> c_int {
    LISTENER.load(Relaxed)
}

/// Closes the notification descriptor and resets it to -1.
pub(crate) fn reset() {
    let fd = LISTENER.swap(NONE, Relaxed);
    if fd > 0 {
        // SAFETY: the descriptor came from the kernel at a load, and is closed once.
        unsafe { libc::close(fd) };
    }
}

/// Compiles the program if necessary and installs it.
pub(crate) fn load(filter: &mut Filter) -> Result<(), Status> {
    let notifies = filter.notifies();
    let attributes = *filter.attributes();
    let program = filter.program()?;
    let installed = install(program.insns(), &attributes, notifies);
    installed.map_err(|status| match status.shown(attributes.raw_errors) {
        Status::Raw(errno) if !status::is_returned(errno) => Status::Fault,
        status => status,
    })
}

fn install(insns: &[Insn], attributes: &Attributes, notifies: bool) -> Result<(), Status> {
    if attributes.no_new_privs {
        install::set_no_new_privs()?;
    }
    if !supports(Feature::Syscall) {
        return set_filter_by_prctl(insns);
    }
    let flags = flags(attributes, notifies)?;
    // A proved program has at most 4096 instructions.
    let answer = install::set_filter(insns, flags)?;
    installed(answer, flags)
}

/// Installs a program in a kernel without `seccomp(2)`, before Linux 3.17.
fn set_filter_by_prctl(insns: &[Insn]) -> Result<(), Status> {
    let program = libc::sock_fprog {
        len: insns.len() as libc::c_ushort,
        filter: insns.as_ptr().cast::<libc::sock_filter>().cast_mut(),
    };
    // SAFETY: `Insn` has the layout of `sock_filter`; the kernel reads `len` of them.
    let returned = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    match returned {
        ..0 => Err(Status::last()),
        _ => Ok(()),
    }
}

/// Interprets a positive result: a descriptor, or the thread that couldn't be synchronised.
fn installed(answer: Answer, flags: Flags) -> Result<(), Status> {
    if answer == 0 {
        return Ok(());
    }
    if flags.contains(Flag::NewListener) {
        LISTENER.store(answer as c_int, Relaxed);
        return Ok(());
    }
    Err(Status::NoThread)
}

fn flags(attributes: &Attributes, notifies: bool) -> Result<Flags, Status> {
    let is_first = listener() == NONE;
    let listens = notifies && is_first && supports(Feature::Notify);
    let mut flags = Flags::NONE;
    if attributes.tsync {
        flags = flags | Flag::Tsync;
        if is_first && supports(Feature::TsyncEsrch) {
            flags = flags | Flag::TsyncEsrch;
        } else if listens {
            return Err(Status::Canceled);
        }
    }
    if listens {
        flags = flags | Flag::NewListener;
        if attributes.wait_killable {
            flags = flags | Flag::WaitKillableRecv;
        }
    }
    if attributes.log {
        flags = flags | Flag::Log;
    }
    if attributes.spec_allow {
        flags = flags | Flag::SpecAllow;
    }
    Ok(flags)
}
