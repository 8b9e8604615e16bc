//! `ptrace(2)`, one function per request.
//!
//! The requests are answered for tracees of the calling thread that are stopped; for others, and for
//! those that have just been killed, they fail with `ESRCH`, which changes nothing.

use std::mem::MaybeUninit;
use std::ptr;

use tamis_bpf::Insn;

use crate::errno::Errno;
use crate::sys::check;

type Pointer = *mut libc::c_void;

/// Whether `ptrace(2)` is there at all: a request about process 0, which never exists, must answer
/// `ESRCH`. An outer filter that forbids tracing answers something else.
pub(crate) fn available() -> Result<(), Errno> {
    match seize(0, 0) {
        Ok(()) | Err(Errno(libc::ESRCH)) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Starts tracing a process without stopping it.
pub(crate) fn seize(pid: libc::pid_t, options: i32) -> Result<(), Errno> {
    let data = ptr::without_provenance_mut::<libc::c_void>(options as usize);
    // SAFETY: the kernel takes the options as a number.
    let returned = unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, NULL, data) };
    check(returned).map(|_| ())
}

const NULL: Pointer = ptr::null_mut();

/// Lets a tracee run on, with a signal unless that is 0.
pub(crate) fn cont(tid: libc::pid_t, signal: i32) -> Result<(), Errno> {
    let data = ptr::without_provenance_mut::<libc::c_void>(signal as usize);
    // SAFETY: the kernel takes the signal as a number.
    check(unsafe { libc::ptrace(libc::PTRACE_CONT, tid, NULL, data) }).map(|_| ())
}

/// Stops a tracee that was [seized](seize).
pub(crate) fn interrupt(tid: libc::pid_t) -> Result<(), Errno> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, tid, NULL, NULL) }).map(|_| ())
}

/// Lets a stopped tracee go, with a signal unless that is 0.
pub(crate) fn detach(tid: libc::pid_t, signal: i32) -> Result<(), Errno> {
    let data = ptr::without_provenance_mut::<libc::c_void>(signal as usize);
    // SAFETY: the kernel takes the signal as a number.
    check(unsafe { libc::ptrace(libc::PTRACE_DETACH, tid, NULL, data) }).map(|_| ())
}

/// `PTRACE_SECCOMP_GET_FILTER` of `linux/ptrace.h`. Kernel 4.4.
const SECCOMP_GET_FILTER: u32 = 0x420c;

/// The instructions of one of a tracee's filters; the oldest has the index 0, whatever `ptrace(2)`
/// says (`get_nth_filter` in `kernel/seccomp.c`).
pub(crate) fn filter(tid: libc::pid_t, index: usize) -> Result<Vec<Insn>, Errno> {
    let index = ptr::without_provenance_mut::<libc::c_void>(index);
    let request = SECCOMP_GET_FILTER as _;
    // SAFETY: without a buffer the kernel only tells the length.
    let len_insns = check(unsafe { libc::ptrace(request, tid, index, NULL) })?;
    let nothing = Insn {
        code: 0,
        jt: 0,
        jf: 0,
        k: 0,
    };
    let mut insns = vec![nothing; len_insns as usize];
    // SAFETY: the tracee is stopped, so the filter is the same and the buffer is long enough; `Insn` is
    // `repr(C)` with the fields of `sock_filter`.
    check(unsafe {
        libc::ptrace(
            request,
            tid,
            index,
            insns.as_mut_ptr().cast::<libc::c_void>(),
        )
    })?;
    Ok(insns)
}

/// Leaves a tracee in its group stop until something happens to it.
pub(crate) fn listen(tid: libc::pid_t) -> Result<(), Errno> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::ptrace(libc::PTRACE_LISTEN, tid, NULL, NULL) }).map(|_| ())
}

/// The message of an event stop: the status of an exiting thread.
pub(crate) fn event_message(tid: libc::pid_t) -> Result<u64, Errno> {
    let mut message: libc::c_ulong = 0;
    let data = (&raw mut message).cast::<libc::c_void>();
    // SAFETY: the kernel writes one `unsigned long`.
    check(unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, NULL, data) })?;
    #[expect(
        clippy::useless_conversion,
        reason = "the type has 32 bits on some targets"
    )]
    Ok(message.into())
}

/// Keeps a tracee that has stopped at the entry of a system call from making it: it returns what it has as
/// a result by then, `ENOSYS`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn skip_call(tid: libc::pid_t) -> Result<(), Errno> {
    let place = std::mem::offset_of!(libc::user_regs_struct, orig_rax);
    let place = ptr::without_provenance_mut::<libc::c_void>(place);
    let no_call = ptr::without_provenance_mut::<libc::c_void>(usize::MAX);
    // SAFETY: `struct user` begins with the registers; the kernel takes place and value as numbers.
    check(unsafe { libc::ptrace(libc::PTRACE_POKEUSER, tid, place, no_call) }).map(|_| ())
}

/// Nothing: calls are only asked about on x86-64.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn skip_call(_: libc::pid_t) -> Result<(), Errno> {
    Err(Errno(libc::ENOSYS))
}

/// What a signal says about where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignalInfo {
    /// `si_code`.
    pub(crate) code: i32,
    /// `si_errno`: the data of a trap.
    pub(crate) errno: i32,
    /// `si_syscall`, if the code is [`SYS_SECCOMP`].
    pub(crate) nr: u32,
    /// `si_arch`, if the code is [`SYS_SECCOMP`].
    pub(crate) arch: u32,
}

/// The code of a `SIGSYS` that a filter caused.
pub(crate) const SYS_SECCOMP: i32 = 1;

/// The member of `siginfo_t` that belongs to `SIGSYS`.
#[repr(C)]
struct SigSys {
    signo: i32,
    errno_and_code: [i32; 2],
    call_addr: *const libc::c_void,
    nr: i32,
    arch: u32,
}

/// The signal that a tracee is about to get.
pub(crate) fn signal_info(tid: libc::pid_t) -> Result<SignalInfo, Errno> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let data = info.as_mut_ptr().cast::<libc::c_void>();
    // SAFETY: the kernel fills a `siginfo_t`.
    check(unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, tid, NULL, data) })?;
    // SAFETY: filled above; all bit patterns are valid.
    let info = unsafe { info.assume_init_ref() };
    // SAFETY: `SigSys` is a prefix of `siginfo_t` in size and alignment, and of plain numbers.
    let sigsys = unsafe { &*ptr::from_ref(info).cast::<SigSys>() };
    Ok(SignalInfo {
        code: info.si_code,
        errno: info.si_errno,
        nr: sigsys.nr as u32,
        arch: sigsys.arch,
    })
}

/// The architecture of the call in which a stopped tracee is or was last. Kernel 5.3.
pub(crate) fn arch(tid: libc::pid_t) -> Result<u32, Errno> {
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = ptr::without_provenance_mut::<libc::c_void>(size_of::<libc::ptrace_syscall_info>());
    let data = info.as_mut_ptr().cast::<libc::c_void>();
    // SAFETY: the kernel writes at most as many bytes as `size` says.
    check(unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, tid, size, data) })?;
    // SAFETY: the architecture is filled in for every kind of stop, and zero is valid.
    Ok(unsafe { (*info.as_ptr()).arch })
}
