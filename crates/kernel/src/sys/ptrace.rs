//! `ptrace(2)`, one function per request.
//!
//! Requests succeed for stopped tracees of the calling thread; for others, and for those that have just been
//! killed, they fail with `ESRCH` and have no effect.

use std::mem::MaybeUninit;
use std::ptr;

use tamis_bpf::Insn;

use crate::errno::Errno;
use crate::sys::check;
use crate::tracee::{CallInfo, CallPhase, Resume, SignalInfo};

type Pointer = *mut libc::c_void;
/// The type of a request's number, which depends on the C library.
#[cfg(not(target_env = "musl"))]
type RequestNumber = libc::c_uint;
#[cfg(target_env = "musl")]
type RequestNumber = libc::c_int;

const NULL: Pointer = ptr::null_mut();

/// `PTRACE_SYSEMU`, which not every C library names.
const SYSEMU: libc::c_uint = if cfg!(any(target_arch = "powerpc", target_arch = "powerpc64")) {
    29
} else {
    31
};

/// Resumes a tracee, with a signal unless that is 0.
pub(crate) fn resume(tid: libc::pid_t, how: Resume, signal: i32) -> Result<(), Errno> {
    let request = match how {
        Resume::Run => libc::PTRACE_CONT,
        Resume::ToCall => libc::PTRACE_SYSCALL,
        Resume::Emulate => SYSEMU as _,
        Resume::Step => libc::PTRACE_SINGLESTEP,
    };
    let data = ptr::without_provenance_mut::<libc::c_void>(signal as usize);
    // SAFETY: the signal is passed as a number.
    check(unsafe { libc::ptrace(request, tid, NULL, data) }).map(|_| ())
}

/// Stops a tracee that was [seized](seize).
pub(crate) fn interrupt(tid: libc::pid_t) -> Result<(), Errno> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, tid, NULL, NULL) }).map(|_| ())
}

/// Detaches from a stopped tracee, with a signal unless that is 0.
pub(crate) fn detach(tid: libc::pid_t, signal: i32) -> Result<(), Errno> {
    let data = ptr::without_provenance_mut::<libc::c_void>(signal as usize);
    // SAFETY: the signal is passed as a number.
    check(unsafe { libc::ptrace(libc::PTRACE_DETACH, tid, NULL, data) }).map(|_| ())
}

/// `PTRACE_SECCOMP_GET_FILTER` of `linux/ptrace.h`. Kernel 4.4.
const SECCOMP_GET_FILTER: u32 = 0x420c;

/// The instructions of one of a tracee's filters; the oldest has the index 0, contrary to `ptrace(2)`
/// (`get_nth_filter` in `kernel/seccomp.c`).
pub(crate) fn filter(tid: libc::pid_t, index: usize) -> Result<Vec<Insn>, Errno> {
    let index = ptr::without_provenance_mut::<libc::c_void>(index);
    let request = SECCOMP_GET_FILTER as _;
    // SAFETY: without a buffer the kernel only returns the length.
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

/// Leaves a tracee in its group stop until its next event.
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

/// Sets the register at an offset in `struct user`, which begins with the registers.
#[cfg(target_arch = "x86_64")]
pub(crate) fn set_register(tid: libc::pid_t, place: usize, value: usize) -> Result<(), Errno> {
    let place = ptr::without_provenance_mut::<libc::c_void>(place);
    let value = ptr::without_provenance_mut::<libc::c_void>(value);
    // SAFETY: place and value are passed as numbers.
    check(unsafe { libc::ptrace(libc::PTRACE_POKEUSER, tid, place, value) }).map(|_| ())
}

/// The set of general registers, `NT_PRSTATUS` of `elf.h`.
const GENERAL: usize = 1;
/// An upper bound for all machines: the largest set, of PowerPC, has 384.
const MAX_REGISTER_BYTES: usize = 1024;

/// The general registers.
pub(crate) fn registers(tid: libc::pid_t) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; MAX_REGISTER_BYTES];
    let len_bytes = register_set(libc::PTRACE_GETREGSET as _, tid, GENERAL, &mut bytes)?;
    bytes.truncate(len_bytes);
    Ok(bytes)
}

/// Replaces as many general registers as there are bytes for.
pub(crate) fn set_registers(tid: libc::pid_t, bytes: &[u8]) -> Result<(), Errno> {
    register_set(SETREGSET as _, tid, GENERAL, &mut bytes.to_vec()).map(|_| ())
}

/// Sets the number of the call that a tracee is about to enter; -1 skips it.
#[cfg(target_arch = "aarch64")]
pub(crate) fn set_system_call(tid: libc::pid_t, nr: i32) -> Result<(), Errno> {
    /// `NT_ARM_SYSTEM_CALL`
    const SYSTEM_CALL: usize = 0x404;
    register_set(SETREGSET as _, tid, SYSTEM_CALL, &mut nr.to_ne_bytes()).map(|_| ())
}

/// `PTRACE_SETREGSET`, which not every C library names.
const SETREGSET: libc::c_uint = 0x4205;

/// Reads or writes a set of registers; returns the count of bytes.
fn register_set(
    request: RequestNumber,
    tid: libc::pid_t,
    set: usize,
    bytes: &mut [u8],
) -> Result<usize, Errno> {
    let mut buffer = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let set = ptr::without_provenance_mut::<libc::c_void>(set);
    let data = (&raw mut buffer).cast::<libc::c_void>();
    // SAFETY: the kernel reads or writes at most the bytes of the buffer, and stores the count.
    check(unsafe { libc::ptrace(request, tid, set, data) })?;
    Ok(buffer.iov_len)
}

/// The set of signals that a tracee blocks. Kernel 3.11.
pub(crate) fn signal_mask(tid: libc::pid_t) -> Result<u64, Errno> {
    const GETSIGMASK: u32 = 0x420a;
    let mut mask = 0u64;
    let size = ptr::without_provenance_mut::<libc::c_void>(size_of::<u64>());
    let data = (&raw mut mask).cast::<libc::c_void>();
    // SAFETY: the kernel writes a set of signals, which has `size` bytes.
    check(unsafe { libc::ptrace(GETSIGMASK as _, tid, size, data) })?;
    Ok(mask)
}

/// Replaces the set of signals that a tracee blocks.
pub(crate) fn set_signal_mask(tid: libc::pid_t, mask: u64) -> Result<(), Errno> {
    const SETSIGMASK: u32 = 0x420b;
    let size = ptr::without_provenance_mut::<libc::c_void>(size_of::<u64>());
    let data = (&raw const mask).cast_mut().cast::<libc::c_void>();
    // SAFETY: the kernel reads a set of signals, which has `size` bytes.
    check(unsafe { libc::ptrace(SETSIGMASK as _, tid, size, data) }).map(|_| ())
}

/// The signal that a tracee is about to get.
pub(crate) fn signal_info(tid: libc::pid_t) -> Result<SignalInfo, Errno> {
    /// The bytes of `siginfo_t`.
    const SIZE_BYTES: usize = 128;
    let mut info = [0_u8; SIZE_BYTES];
    let data = info.as_mut_ptr().cast::<libc::c_void>();
    // SAFETY: the kernel writes a `siginfo_t`, which has `SIZE_BYTES` on every machine, without alignment requirements.
    check(unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, tid, NULL, data) })?;
    SignalInfo::of_bytes(&info).ok_or(Errno(libc::EINVAL))
}

/// `struct ptrace_syscall_info`, which not every C library declares. The fields after the stack pointer depend on the
/// kind of the stop.
#[repr(C)]
#[derive(Clone, Copy)]
struct SyscallInfo {
    op: u8,
    _reserved: [u8; 3],
    arch: u32,
    ip: u64,
    stack_pointer: u64,
    words: [u64; 8],
}

/// Of the action `PTRACE_GET_SYSCALL_INFO`, and the kinds of its stops.
const GET_SYSCALL_INFO: i32 = 0x420e;
const AT_ENTRY: u8 = 1;
const AT_EXIT: u8 = 2;
const AT_SECCOMP: u8 = 3;

/// The call of a stopped tracee. Kernel 5.3.
pub(crate) fn call_info(tid: libc::pid_t) -> Result<CallInfo, Errno> {
    let mut info = MaybeUninit::<SyscallInfo>::zeroed();
    let size = ptr::without_provenance_mut::<libc::c_void>(size_of::<SyscallInfo>());
    let data = info.as_mut_ptr().cast::<libc::c_void>();
    // SAFETY: the kernel writes at most `size` bytes.
    check(unsafe { libc::ptrace(GET_SYSCALL_INFO as _, tid, size, data) })?;
    // SAFETY: filled for every kind of stop; all members are plain numbers.
    let info = unsafe { info.assume_init() };
    let [first, args @ .., last] = info.words;
    let phase = match info.op {
        AT_ENTRY => CallPhase::Entry {
            nr: first as u32,
            args,
        },
        AT_EXIT => CallPhase::Exit {
            result: first.cast_signed(),
            // One byte.
            is_error: args[0].to_ne_bytes()[0] != 0,
        },
        AT_SECCOMP => {
            let [a, b, c, d, ..] = last.to_ne_bytes();
            CallPhase::Seccomp {
                nr: first as u32,
                args,
                data: u32::from_ne_bytes([a, b, c, d]),
            }
        }
        _ => CallPhase::None,
    };
    Ok(CallInfo {
        arch: info.arch,
        ip: info.ip,
        stack_pointer: info.stack_pointer,
        phase,
    })
}
