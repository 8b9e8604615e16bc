//! The signal handler, between its first and last instructions.

use std::sync::atomic::{AtomicU32, Ordering};

use tamis_abi::{Arch, SeccompData};

use super::inside::{self, await_stop, calls, enter, fs_base, is_stopped_everywhere, leave};
use super::text::tamis_platform_guest_call_32;
use super::{
    ACTION_WORDS, HAS_THREADS, HOST_FS, REPORT, Step, die, own_action, reset_action, write,
};
use crate::in_process::calls::{Outcome, Thread};
use crate::in_process::filter::OURS;

/// The return paths of the handler: at once; by `rt_sigreturn`; to the `syscall` for calls of the guest and then
/// to the interrupted code; to that `syscall`, for a call that doesn't return; to a handler of the guest.
pub(super) const AT_ONCE: u32 = 0;
pub(super) const BY_KERNEL: u32 = 1;
pub(super) const AT_CALL: u32 = 2;
pub(super) const AT_LAST_CALL: u32 = 3;
pub(super) const AT_HANDLER: u32 = 4;
/// To a `syscall` for a new thread whose calls are to be caught as well.
pub(super) const AT_CLONE: u32 = 5;
/// As at a call, which is restarted when it is interrupted.
pub(super) const AT_REPEATED: u32 = 6;
/// The bit that is added if the thread has its mask already.
pub(super) const HAS_MASK_BIT: u32 = 8;

/// The distance of the stack for a call that the handler returns to: the red zone, and the return address.
pub(super) const BELOW: u64 = 136;

/// The beginning of `siginfo_t` for `SIGSYS`.
#[repr(C)]
pub(super) struct Info {
    signo: i32,
    errno: i32,
    code: i32,
    _padding: i32,
    call_address: u64,
    nr: i32,
    arch: u32,
}

/// The word indices of the argument registers in `ucontext_t`.
const ARGS: [usize; 6] = [13, 14, 17, 7, 5, 6];
const RAX: usize = 18;
const RIP: usize = 21;
const MASK: usize = 37;
/// The flags of the signal stack.
const STACK_FLAGS: usize = 3;
/// The number of words that are used.
const WORDS: usize = 40;

/// The length of `syscall`.
const SYSCALL_BYTES: u64 = 2;

/// The input of the handler's last instructions.
#[repr(C)]
pub(super) struct Target {
    /// The mask and the address of a handler of the guest.
    mask: u64,
    handler: u64,
    /// The thread's flag, cleared once its mask is restored.
    leaving: *const AtomicU32,
}

/// Called by the handler, which may block signals; returns the way to return.
pub(super) extern "sysv64" fn on_signal(
    info: &mut Info,
    context: &mut [u64; WORDS],
    target: &mut Target,
    blocks: u64,
) -> u32 {
    let mask = context[MASK];
    let fs_base = fs_base();
    let mut thread = Thread {
        fs_base,
        mask,
        blocks: blocks != 0,
        is_inside: false,
    };
    enter(&mut thread);
    let is_own = fs_base == HOST_FS.load(Ordering::Relaxed);
    let flag = (!is_own).then(|| calls().leaving(fs_base)).flatten();
    let flag = flag.unwrap_or(&inside::NOBODY);
    // The handler may have been left by `longjmp` before.
    flag.store(0, Ordering::Relaxed);
    target.leaving = flag;
    let how = answer(info, context, &mut thread, target);
    if thread.mask != mask {
        inside::block_until_last_call(&mut thread);
    }
    let has_mask = !thread.blocks && thread.mask == mask;
    let how = match how {
        BY_KERNEL | AT_HANDLER => how,
        how if has_mask => how | 1 << HAS_MASK_BIT,
        how => how,
    };
    if how != BY_KERNEL && how & 1 << HAS_MASK_BIT == 0 {
        flag.store(1, Ordering::SeqCst);
    }
    leave(&mut thread);
    how
}

/// Separate from the part that runs with the other FS base: the compiler may compute addresses of thread-locals at the
/// beginning of a function.
#[inline(never)]
fn answer(
    info: &mut Info,
    context: &mut [u64; WORDS],
    thread: &mut Thread,
    target: &mut Target,
) -> u32 {
    /// `SYS_SECCOMP`.
    const BY_FILTER: i32 = 1;
    /// `SYS_USER_DISPATCH`.
    const BY_DISPATCH: i32 = 2;
    match info.code {
        BY_FILTER if info.errno == i32::from(OURS) => {}
        BY_DISPATCH if is_stopped_everywhere() => return again(info, context, thread),
        BY_DISPATCH => {}
        code => return foreign(info, code, context, thread, target),
    }
    let call = SeccompData {
        nr: info.nr as u32,
        arch: info.arch,
        ip: info.call_address,
        args: args(info.arch, context),
    };
    let outcome = calls().decide(&call, thread);
    match outcome {
        Outcome::Result(value) => context[RAX] = value as u64,
        // A filter that all threads have got meanwhile may deny the call that would set the mask.
        Outcome::InGuest if thread.blocks && !thread.is_inside => {
            return again(info, context, thread);
        }
        Outcome::InGuest => {
            context[RAX] = u64::from(call.nr);
            return in_guest(&call, context);
        }
        Outcome::Again => return again(info, context, thread),
        Outcome::Kill => die(libc::SIGKILL),
        Outcome::Unsupported => {
            // SAFETY: set before the guest's first call, and mapped as long as the guest lives.
            let report = unsafe { &*REPORT.load(Ordering::Relaxed) };
            report.step.store(Step::Answer as i32, Ordering::Release);
            die(libc::SIGKILL)
        }
        Outcome::Signal => die(libc::SIGSYS),
        Outcome::Trap(data) => {
            (info.code, info.errno) = (BY_FILTER, i32::from(data));
            return foreign(info, BY_FILTER, context, thread, target);
        }
    }
    at_once(context, thread)
}

/// The arguments of a call, by the registers of its interface.
fn args(arch: u32, context: &[u64; WORDS]) -> [u64; 6] {
    /// `ebx`, `ecx`, `edx`, `esi`, `edi`, `ebp`.
    const OF_I386: [usize; 6] = [16, 19, 17, 14, 13, 15];
    match arch == Arch::X86.audit() {
        true => OF_I386.map(|place| context[place] & u64::from(u32::MAX)),
        false => ARGS.map(|place| context[place]),
    }
}

/// Makes the guest restart the call at its own instruction.
fn again(info: &Info, context: &mut [u64; WORDS], thread: &mut Thread) -> u32 {
    await_stop(thread);
    context[RAX] = u64::from(info.nr as u32);
    context[RIP] = context[RIP].wrapping_sub(SYSCALL_BYTES);
    at_once(context, thread)
}

/// The shortest way back.
fn at_once(context: &mut [u64; WORDS], thread: &Thread) -> u32 {
    /// The signal stack is disarmed in handlers, and armed again by `rt_sigreturn`.
    const AUTODISARM: u64 = 1 << 31;
    let sets_mask = thread.blocks || thread.mask != context[MASK];
    context[MASK] = thread.mask;
    match context[STACK_FLAGS] & AUTODISARM {
        // A filter that all threads have got meanwhile may deny calls of this return path; handlers of the guest return
        // by the kernel, too.
        0 if thread.is_inside || !sets_mask => AT_ONCE,
        _ => BY_KERNEL,
    }
}

/// Handles a signal for no call of ours: the guest's own action for it decides.
fn foreign(
    info: &Info,
    code: i32,
    context: &mut [u64; WORDS],
    thread: &mut Thread,
    target: &mut Target,
) -> u32 {
    const OWN_SIGNAL: u64 = 1 << (libc::SIGSYS - 1);
    const IGNORED: u64 = libc::SIG_IGN as u64;
    let [handler, flags, _, mask] = own_action(None);
    let is_sent = code <= 0;
    match handler {
        IGNORED if is_sent => return BY_KERNEL,
        // The call is restarted, and ends this process: by the filter that has trapped it, or by dispatch.
        0 | IGNORED if !is_sent && reset_action(libc::SIGSYS) => {
            return again(info, context, thread);
        }
        0 | IGNORED => die(libc::SIGSYS),
        _ => {}
    }
    // It has interrupted the handler itself, where the guest's handler has no valid stack.
    if thread.fs_base == HOST_FS.load(Ordering::Relaxed) {
        return BY_KERNEL;
    }
    if flags & u64::from(libc::SA_RESETHAND as u32) != 0 {
        own_action(Some([0; ACTION_WORDS]));
    }
    target.mask = (context[MASK] | mask) & !OWN_SIGNAL;
    target.handler = handler;
    AT_HANDLER
}

/// Makes the guest make a call itself.
fn in_guest(call: &SeccompData, context: &mut [u64; WORDS]) -> u32 {
    const STACK: usize = 1;
    const FS_BASE: usize = 4;
    if call.arch == Arch::X86.audit() {
        return in_guest_32(call, context);
    }
    match i64::from(call.nr) {
        libc::SYS_rt_sigreturn => return AT_LAST_CALL,
        libc::SYS_fork | libc::SYS_execve | libc::SYS_execveat => return repeated(),
        libc::SYS_clone => {}
        _ => return AT_CALL,
    }
    // A new thread begins behind the call, too, on its own stack.
    let stack = call.args[STACK].wrapping_sub(BELOW);
    let has_fs_base = call.args[0] & libc::CLONE_SETTLS as u64 != 0;
    if has_fs_base {
        calls().forget(call.args[FS_BASE]);
    }
    if call.args[STACK] != 0 && write(stack, &context[RIP].to_ne_bytes()) == Ok(size_of::<u64>()) {
        context[ARGS[STACK]] = stack;
        // Another process has no stub: it would stay counted if it was killed, and couldn't be informed of
        // events that other threads wait for.
        let is_thread = call.args[0] & libc::CLONE_THREAD as u64 != 0;
        if is_thread && has_fs_base && calls().is_there() {
            HAS_THREADS.store(true, Ordering::Relaxed);
            return AT_CLONE;
        }
    }
    repeated()
}

/// The return for calls that can't be interrupted, unless a supervisor in another process is notified of them.
fn repeated() -> u32 {
    match calls().is_there() {
        true => AT_REPEATED,
        false => AT_CALL,
    }
}

/// The same for a call of the 32-bit interface, which needs the register of the return path.
fn in_guest_32(call: &SeccompData, context: &mut [u64; WORDS]) -> u32 {
    const RSP: usize = 20;
    const CLONE: u32 = 120;
    const STACK: usize = 1;
    let stack = context[RSP].wrapping_sub(BELOW);
    let returns_once = call.nr != CLONE || call.args[STACK] == 0;
    if returns_once && write(stack, &context[RIP].to_ne_bytes()) == Ok(size_of::<u64>()) {
        context[RSP] = stack;
        context[RIP] = tamis_platform_guest_call_32 as *const () as u64;
    } else {
        context[RAX] = -i64::from(libc::ENOSYS) as u64;
    }
    BY_KERNEL
}
