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
            if let Err(errno) = start_thread(flags, top.cast(), plan_address.cast()) {
                plan.board.errno.store(errno.0, Ordering::Release);
                return;
            }
            loop {
                libc::pause();
            }
        }
    })
}

/// Starts [`subject`] in a thread with these flags and this stack. The `clone` of musl refuses flags of threads.
///
/// # Safety
/// The stack is aligned and used by nothing else, and the plan lives as long as the process.
#[cfg(target_arch = "x86_64")]
unsafe fn start_thread(
    flags: libc::c_int,
    top: *mut libc::c_void,
    plan: *mut libc::c_void,
) -> Result<(), Errno> {
    let result: i64;
    // SAFETY: the new thread, for which the kernel returns 0, has a stack of its own and never leaves `subject`; in this
    // one only the named registers change.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call {subject}",
            "ud2",
            "2:",
            subject = sym subject,
            inlateout("rax") libc::SYS_clone => result,
            in("rdi") i64::from(flags),
            in("rsi") top,
            in("rdx") 0,
            in("r10") 0,
            in("r8") 0,
            in("r12") plan,
            out("rcx") _,
            out("r11") _,
        );
    }
    match result {
        0.. => Ok(()),
        errno => Err(Errno(-errno as i32)),
    }
}

/// As on x86-64.
///
/// # Safety
/// As on x86-64.
#[cfg(target_arch = "aarch64")]
unsafe fn start_thread(
    flags: libc::c_int,
    top: *mut libc::c_void,
    plan: *mut libc::c_void,
) -> Result<(), Errno> {
    let result: i64;
    // SAFETY: as on x86-64.
    unsafe {
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x20",
            "bl {subject}",
            "udf #0",
            "2:",
            subject = sym subject,
            in("x8") libc::SYS_clone,
            inlateout("x0") i64::from(flags) => result,
            in("x1") top,
            in("x2") 0,
            in("x3") 0,
            in("x4") 0,
            in("x20") plan,
            out("x30") _,
        );
    }
    match result {
        0.. => Ok(()),
        errno => Err(Errno(-errno as i32)),
    }
}

/// By the C library.
///
/// # Safety
/// As on x86-64.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn start_thread(
    flags: libc::c_int,
    top: *mut libc::c_void,
    plan: *mut libc::c_void,
) -> Result<(), Errno> {
    // SAFETY: as the caller guarantees.
    check(unsafe { libc::clone(subject, top, flags, plan) }).map(|_| ())
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
