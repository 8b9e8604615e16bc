//! Processes for testing filters in the kernel.
//!
//! A filter is permanent, so each stack of filters gets a process. A thread without filters only waits; another
//! one, the *subject*, installs the filters and makes the calls. This distinguishes actions that kill a thread from
//! those that kill a process. The subject makes no other system calls in between, stores its results in shared
//! memory, and ends by an illegal instruction.
//!
//! As between `fork` and `exec`, nothing here may allocate, lock or panic.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

use tamis_bpf::Insn;

use crate::errno::Errno;
use crate::sys::raw_call::{RawCall, call};
use crate::sys::{check, timing};

/// The most calls of one process.
pub(crate) const MAX_CALLS: usize = 512;
/// The last argument of the subject's own calls of `seccomp`, by which a filter can distinguish them from tested calls.
pub(crate) const COOKIE: u64 = 0x9c1f_36d5_e4a8_7b20;

/// The stack of the subject.
const STACK_BYTES: usize = 64 * 1024;

/// The subject's report.
pub(crate) struct SubjectReport {
    /// The count of installed filters.
    pub(crate) installed: AtomicU32,
    /// The error that stopped the process; 0 while there is none.
    pub(crate) errno: AtomicI32,
    /// The current call.
    pub(crate) call: AtomicU32,
    /// For each call, the instruction pointer that a filter sees.
    pub(crate) ips: [AtomicU64; MAX_CALLS],
    /// For each call, its return value.
    pub(crate) results: [AtomicI64; MAX_CALLS],
}

impl Default for SubjectReport {
    fn default() -> SubjectReport {
        SubjectReport {
            installed: AtomicU32::new(0),
            errno: AtomicI32::new(0),
            call: AtomicU32::new(0),
            ips: [const { AtomicU64::new(0) }; MAX_CALLS],
            results: [const { AtomicI64::new(0) }; MAX_CALLS],
        }
    }
}

/// The inputs of a process.
pub(crate) struct Plan<'a> {
    /// The filters, the oldest first.
    pub(crate) filters: &'a [&'a [Insn]],
    /// At most [`MAX_CALLS`].
    pub(crate) calls: &'a [RawCall],
    /// The board for the report.
    pub(crate) board: &'a SubjectReport,
}

/// Starts a process that waits for a byte from the gate, and then executes the plan in a second thread.
pub(crate) fn spawn(plan: &Plan<'_>, gate: BorrowedFd<'_>) -> Result<libc::pid_t, Errno> {
    let mut stack = vec![0_u128; STACK_BYTES / size_of::<u128>()];
    let top = stack.as_mut_ptr_range().end;
    in_child(|| {
        let mut byte = 0_u8;
        let plan_address = std::ptr::from_ref(plan).cast_mut();
        // SAFETY: `read` has room for one byte. The stack is aligned and used only by the new thread; the plan
        // outlives it, because this function doesn't return in the child.
        unsafe {
            if libc::read(gate.as_raw_fd(), (&raw mut byte).cast(), 1) != 1 {
                return;
            }
            let flags = libc::CLONE_VM
                | libc::CLONE_FS
                | libc::CLONE_FILES
                | libc::CLONE_SIGHAND
                | libc::CLONE_THREAD
                | libc::CLONE_SYSVSEM;
            if libc::clone(subject, top.cast(), flags, plan_address.cast()) == -1 {
                plan.board.errno.store(Errno::last().0, Ordering::Release);
                return;
            }
            loop {
                libc::pause();
            }
        }
    })
}

/// Forks a child that runs `body` and ends by an illegal instruction. It dies with the thread that forked it, has
/// only the kernel's limits on installing filters, and leaves no core dump.
fn in_child(body: impl FnOnce()) -> Result<libc::pid_t, Errno> {
    // SAFETY: takes no arguments and can't fail.
    let parent = unsafe { libc::getpid() };
    // SAFETY: the child only makes system calls and stores to shared memory.
    let forked = check(unsafe { libc::fork() })?;
    if forked != 0 {
        return Ok(forked);
    }
    let no_core = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the calls read only their arguments and change only this process; an empty set of signals is all
    // zeros.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if libc::getppid() != parent {
            libc::_exit(1);
        }
        libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::signal(libc::SIGILL, libc::SIG_DFL);
        let none = MaybeUninit::<libc::sigset_t>::zeroed().assume_init();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
    body();
    timing::illegal_instruction()
}

/// The second thread.
extern "C" fn subject(plan: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `spawn` passes a plan that lives as long as the process.
    let plan = unsafe { &*plan.cast_const().cast::<Plan<'_>>() };
    if install(plan) {
        let places = plan.board.ips.iter().zip(&plan.board.results);
        for (index, (raw, (ip, result))) in plan.calls.iter().zip(places).enumerate() {
            plan.board.call.store(index as u32, Ordering::Release);
            result.store(call(raw, ip), Ordering::Release);
        }
    }
    timing::illegal_instruction()
}

/// Installs all filters; returns whether this succeeded.
fn install(plan: &Plan<'_>) -> bool {
    for (index, insns) in plan.filters.iter().enumerate() {
        let program = libc::sock_fprog {
            len: insns.len() as libc::c_ushort,
            filter: insns.as_ptr().cast_mut().cast(),
        };
        let mode = u64::from(libc::SECCOMP_SET_MODE_FILTER);
        let raw = RawCall {
            is_compat: false,
            nr: libc::SYS_seccomp as u32,
            args: [mode, 0, &raw const program as u64, 0, 0, COOKIE],
        };
        let result = call(&raw, &AtomicU64::new(0));
        if result != 0 {
            plan.board.errno.store(-result as i32, Ordering::Release);
            return false;
        }
        plan.board
            .installed
            .store(index as u32 + 1, Ordering::Release);
    }
    true
}
