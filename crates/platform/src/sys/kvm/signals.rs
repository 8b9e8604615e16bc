//! Signals that the guest handles.
//!
//! The kernel has the guest's handled, ignored and blocked signals, so its default actions need no code here. For a
//! handled signal it calls this process's handler, which notes the signal and blocks all others. The thread leaves the
//! machine, or an interrupted call, and finds the signal. It writes the same frame as the kernel would, and continues
//! in the guest's handler under the mask that this handler has requested.

use std::sync::atomic::{AtomicU64, Ordering};

use super::area::{PAGE, State};
use super::call::{self, RESTART, own};
use super::machine::{self, VECTORS_BYTES};
use super::vcpu::{Entry, Vcpu};
use crate::sys::frame;

const EFAULT: i64 = -(libc::EFAULT as i64);
const EINVAL: i64 = -(libc::EINVAL as i64);
const EPERM: i64 = -(libc::EPERM as i64);
const SIGNALS: usize = 64;
/// The signals that the monitor itself must get: faults while it copies.
pub(super) const OWN: u64 = 1 << (libc::SIGSEGV - 1) | 1 << (libc::SIGBUS - 1);
/// The signals that it handles for itself, whether the guest does or not: also the filter's signal for a thread to be
/// killed.
const HANDLED: u64 = OWN | 1 << (libc::SIGSYS - 1);
/// The data of that signal.
pub(crate) const KILL_MARK: u16 = 0x7a78;
const RESTORER: u64 = 0x0400_0000;
const NO_HANDLER: u64 = 1;
/// The code of a signal that the kernel sends without an address.
const SI_KERNEL: i32 = 0x80;
/// `SA_RESETHAND`.
const RESET_HANDLER: u64 = 1 << 31;

/// The handlers of a process: address, flags, restorer and mask for each signal.
#[repr(C)]
pub(super) struct Handlers {
    is_used: AtomicU64,
    actions: [[AtomicU64; 4]; SIGNALS],
}

const HANDLER: usize = 0;
const FLAGS: usize = 1;
const TRAMPOLINE: usize = 2;
const MASK: usize = 3;

fn action(vcpu: &Vcpu, signal: u32) -> Option<[u64; 4]> {
    let all = vcpu.state().handlers.get(vcpu.handlers)?;
    let action = all.actions.get(signal.wrapping_sub(1) as usize)?;
    Some([0, 1, 2, 3].map(|word| action[word].load(Ordering::Relaxed)))
}

fn set(vcpu: &Vcpu, signal: u32, words: [u64; 4]) {
    let all = vcpu.state().handlers.get(vcpu.handlers);
    let action = all.and_then(|all| all.actions.get(signal.wrapping_sub(1) as usize));
    for (place, word) in action.into_iter().flatten().zip(words) {
        place.store(word, Ordering::Relaxed);
    }
}

/// Notes the signals that a program has begun with as ignored.
pub(super) fn note_ignored(state: &State, signals: u64) {
    const FIRST: usize = 0;
    let actions = state.handlers.get(FIRST).into_iter();
    for (number, action) in actions.flat_map(|all| all.actions.iter().enumerate()) {
        if signals & 1 << number != 0 {
            action[HANDLER].store(NO_HANDLER, Ordering::Relaxed);
        }
    }
}

/// A copy of handlers for another process.
pub(super) fn copy_handlers(state: &State, from: usize) -> Option<usize> {
    let is_free = |one: &Handlers| one.is_used.swap(1, Ordering::AcqRel) == 0;
    let index = 1 + state.handlers.iter().skip(1).position(is_free)?;
    let (from, to) = (state.handlers.get(from)?, state.handlers.get(index)?);
    let pairs = to
        .actions
        .as_flattened()
        .iter()
        .zip(from.actions.as_flattened());
    for (to, from) in pairs {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    Some(index)
}

pub(super) fn free_handlers(state: &State, index: usize) {
    if let Some(handlers) = state.handlers.get(index) {
        handlers.is_used.store(0, Ordering::Release);
    }
}

/// Installs the kernel's action for one of the guest's.
fn install(signal: u64, action: [u64; 4]) -> i64 {
    const KEPT: u64 = (libc::SA_NOCLDSTOP | libc::SA_NOCLDWAIT | libc::SA_RESTART) as u64;
    let is_own = signal <= SIGNALS as u64 && HANDLED & 1 << (signal.wrapping_sub(1) & 63) != 0;
    let kernel = match action[HANDLER] <= NO_HANDLER && !is_own {
        true => [
            action[HANDLER],
            action[FLAGS] & KEPT | RESTORER,
            call::restorer(),
            0,
        ],
        false => [
            on_signal as *const () as u64,
            action[FLAGS] & KEPT | libc::SA_SIGINFO as u64 | RESTORER,
            call::restorer(),
            !OWN,
        ],
    };
    own(
        libc::SYS_rt_sigaction,
        [signal, kernel.as_ptr() as u64, 0, 8, 0, 0],
    )
}

/// Installs the monitor's own handlers, before the guest begins.
pub(super) fn begin() {
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGSYS] {
        install(signal as u64, [0; 4]);
    }
}

/// Called by the kernel for a signal that the guest handles, and for faults of the monitor.
extern "C" fn on_signal(signal: i32, info: &mut [u8; 128], context: &mut [u64; 40]) {
    const RSP: usize = 20;
    const RIP: usize = 21;
    const SIGMASK: usize = 37;
    let is_fault = code_of(info) > 0 && OWN & 1 << (signal - 1) != 0;
    if is_fault {
        match call::after_fault(context[RIP]) {
            Some(ip) => context[RIP] = ip,
            None => die(signal),
        }
        return;
    }
    let data = i32::from_ne_bytes([info[4], info[5], info[6], info[7]]);
    if signal == libc::SIGSYS && is_by_filter(info) && data == i32::from(KILL_MARK) {
        context[RIP] = call::after_kill();
        context[SIGMASK] = !OWN;
        return;
    }
    let vcpu = Vcpu::place(context[RSP]);
    // SAFETY: the interrupted thread reads these only after it has seen the pending signal; the mask keeps other
    // handlers away until then.
    unsafe {
        (&raw mut (*vcpu).info).write(*info);
        (&raw mut (*vcpu).mask).write(context[SIGMASK]);
        (*vcpu).pending.store(signal as u32, Ordering::Release);
    }
    if let Some(ip) = call::after_signal(context[RIP]) {
        context[RIP] = ip;
    }
    context[SIGMASK] = !OWN;
}

fn code_of(info: &[u8; 128]) -> i32 {
    i32::from_ne_bytes([info[8], info[9], info[10], info[11]])
}

/// Whether a `SIGSYS` is a filter's.
fn is_by_filter(info: &[u8; 128]) -> bool {
    /// `SYS_SECCOMP`.
    const BY_FILTER: i32 = 1;
    code_of(info) == BY_FILTER
}

/// Blocks all signals; returns the mask before.
pub(super) fn block_all() -> u64 {
    block(!OWN)
}

/// The same except for the signal by which the filter traps a call and kills a thread, which would end the process.
pub(super) fn block_but_traps() -> u64 {
    block(!HANDLED)
}

/// Restores the mask after a call; returns whether the filter has trapped the call. The handler of a pending signal has
/// blocked all signals, and the guest continues in its own handler from the mask before.
pub(super) fn unblock(vcpu: &mut Vcpu, mask: u64) -> bool {
    if vcpu.pending.load(Ordering::Acquire) == 0 {
        restore_mask(mask);
        return false;
    }
    vcpu.mask = mask;
    is_by_filter(&vcpu.info)
}

fn block(all: u64) -> u64 {
    let mut before = 0_u64;
    let args = [
        libc::SIG_SETMASK as u64,
        (&raw const all) as u64,
        (&raw mut before) as u64,
        8,
        0,
        0,
    ];
    own(libc::SYS_rt_sigprocmask, args);
    before
}

pub(super) fn restore_mask(mask: u64) {
    let mask = mask & !OWN;
    let args = [
        libc::SIG_SETMASK as u64,
        (&raw const mask) as u64,
        0,
        8,
        0,
        0,
    ];
    own(libc::SYS_rt_sigprocmask, args);
}

/// Sets a signal's default action.
pub(super) fn reset(signal: i32) {
    let default = [0, RESTORER, call::restorer(), 0];
    let args = [signal as u64, default.as_ptr() as u64, 0, 8, 0, 0];
    own(libc::SYS_rt_sigaction, args);
}

/// Ends the process by this signal, regardless of its filter: by an instruction that raises it.
pub(super) fn die(signal: i32) -> ! {
    reset(signal);
    reset(libc::SIGILL);
    if signal == libc::SIGSYS {
        // This isn't one of the monitor's calls, so the filter kills the process.
        own(libc::SYS_execve, [0; 6]);
    }
    // SAFETY: the memory that they read is unmapped or irrelevant; the process ends.
    unsafe {
        match signal {
            libc::SIGFPE => std::arch::asm!("xor eax, eax", "div al", out("eax") _),
            libc::SIGTRAP => std::arch::asm!("int3"),
            libc::SIGSEGV => std::arch::asm!("mov eax, [0]", out("eax") _),
            libc::SIGBUS => std::arch::asm!(
                "mov rax, rbp",
                "movabs rbp, 0x4000000000000000",
                "mov rcx, [rbp]",
                "mov rbp, rax",
                out("rax") _,
                out("rcx") _
            ),
            _ => {}
        }
        std::arch::asm!("ud2", options(noreturn));
    }
}

/// The signal and its code for an exception.
pub(super) const fn of_exception(vector: u64) -> (i32, i32) {
    match vector {
        0 => (libc::SIGFPE, 1),
        1 => (libc::SIGTRAP, 2),
        3 => (libc::SIGTRAP, SI_KERNEL),
        6 => (libc::SIGILL, 2),
        12 => (libc::SIGBUS, SI_KERNEL),
        16 | 19 => (libc::SIGFPE, 3),
        17 => (libc::SIGBUS, 1),
        _ => (libc::SIGSEGV, SI_KERNEL),
    }
}

/// Raises a fault in the guest: its handler is called, or it ends.
pub(super) fn force(
    vcpu: &mut Vcpu,
    signal: i32,
    code: i32,
    address: u64,
    vector: u64,
    error: u64,
) {
    let mask = block_all();
    // A pending signal has blocked all signals, and has noted the mask.
    if vcpu.pending.load(Ordering::Acquire) == 0 {
        vcpu.mask = mask;
    }
    let handler = action(vcpu, signal as u32).map_or(0, |action| action[HANDLER]);
    if handler <= NO_HANDLER || vcpu.mask & 1 << (signal - 1) != 0 {
        die(signal);
    }
    let address = if code == SI_KERNEL { 0 } else { address };
    let mut info = [0; 128];
    info[..4].copy_from_slice(&signal.to_ne_bytes());
    info[8..12].copy_from_slice(&code.to_ne_bytes());
    info[16..24].copy_from_slice(&address.to_ne_bytes());
    enter(vcpu, signal as u32, &info, [error, vector, address]);
    if vcpu.pending.load(Ordering::Acquire) == 0 {
        restore_mask(vcpu.mask);
    }
}

/// Continues the guest in its handler for the pending signal.
pub(super) fn deliver(vcpu: &mut Vcpu) {
    let signal = vcpu.pending.swap(0, Ordering::AcqRel);
    let mut info = vcpu.info;
    if signal == libc::SIGSYS as u32 {
        // The address is that of the guest's call that its filter traps, not of the monitor's.
        info[16..24].copy_from_slice(&vcpu.registers.rip.to_ne_bytes());
        // A forced signal can't be ignored.
        let handler = action(vcpu, signal).map_or(0, |action| action[HANDLER]);
        if handler <= NO_HANDLER && is_by_filter(&info) {
            die(libc::SIGSYS);
        }
    }
    enter(vcpu, signal, &info, [0; 3]);
    restore_mask(vcpu.mask);
}

/// The words that `rt_sigreturn` reads, from the address at the end of a handler on.
const CONTEXT_WORDS: usize = 38;
const INFO_BYTES: u64 = 128;
const FRAME_BYTES: u64 = 8 + 8 * CONTEXT_WORDS as u64 + INFO_BYTES;
/// The offset of the kernel's own words in the legacy part of the vector registers.
const SOFTWARE: usize = frame::MAGIC_1_AT;

/// Writes a frame, and continues the guest in its handler.
fn enter(vcpu: &mut Vcpu, signal: u32, info: &[u8; 128], cause: [u64; 3]) {
    const RED_ZONE: u64 = 128;
    let Some(action) = action(vcpu, signal) else {
        die(libc::SIGSEGV);
    };
    if action[HANDLER] <= NO_HANDLER {
        // A signal for the monitor's own handler that the guest doesn't handle, or no longer.
        match action[HANDLER] {
            0 => die(signal as i32),
            _ => return,
        }
    }
    let mut stack = vcpu.registers.rsp.wrapping_sub(RED_ZONE);
    let [base, size, flags] = vcpu.signal_stack;
    let is_on_stack = is_inside(vcpu.registers.rsp, base, size);
    if action[FLAGS] & libc::SA_ONSTACK as u64 != 0 && size != 0 && !is_on_stack && flags & 2 == 0 {
        stack = base.wrapping_add(size);
    }
    let xsave_bytes = vcpu.state().xsave_bytes.load(Ordering::Relaxed);
    let vectors = stack.wrapping_sub(xsave_bytes + 4) & !63;
    let frame = (vectors.wrapping_sub(FRAME_BYTES) & !15).wrapping_sub(8);
    let context = frame + 8;
    let info_at = context + 8 * CONTEXT_WORDS as u64;
    let words = context_words(vcpu, cause, vectors);
    let is_written = put_vectors(vcpu, vectors, xsave_bytes) == 0
        && put(vcpu.state(), frame, &action[TRAMPOLINE].to_ne_bytes()) == 0
        && put(
            vcpu.state(),
            context,
            words.map(u64::to_ne_bytes).as_flattened(),
        ) == 0
        && put(vcpu.state(), info_at, info) == 0;
    if !is_written {
        die(libc::SIGSEGV);
    }
    let registers = &mut vcpu.registers;
    registers.rdi = u64::from(signal);
    registers.rsi = info_at;
    registers.rdx = context;
    registers.rax = 0;
    registers.rsp = frame;
    registers.rip = action[HANDLER];
    registers.rflags &= !0x5_0500;
    let mut mask = vcpu.mask | action[MASK];
    if action[FLAGS] & libc::SA_NODEFER as u64 == 0 {
        mask |= 1 << (signal - 1);
    }
    if action[FLAGS] & RESET_HANDLER != 0 {
        set(vcpu, signal, [0; 4]);
        install(u64::from(signal), [0; 4]);
    }
    vcpu.mask = mask;
}

fn is_inside(stack: u64, base: u64, size: u64) -> bool {
    stack > base && stack - base <= size
}

/// `struct ucontext`.
fn context_words(vcpu: &Vcpu, cause: [u64; 3], vectors: u64) -> [u64; CONTEXT_WORDS] {
    /// Vector registers in the long form, and a stack segment that is to be restored.
    const LONG: u64 = 7;
    const SEGMENTS: u64 = 0x23 << 48 | 0x2b;
    let registers = &vcpu.registers;
    let mut words = [0; CONTEXT_WORDS];
    words[0] = LONG;
    let [base, size, flags] = vcpu.signal_stack;
    words[2..5].copy_from_slice(&[base, flags, size]);
    words[5..23].copy_from_slice(&[
        registers.r8,
        registers.r9,
        registers.r10,
        registers.r11,
        registers.r12,
        registers.r13,
        registers.r14,
        registers.r15,
        registers.rdi,
        registers.rsi,
        registers.rbp,
        registers.rbx,
        registers.rdx,
        registers.rax,
        registers.rcx,
        registers.rsp,
        registers.rip,
        registers.rflags,
    ]);
    words[23] = SEGMENTS;
    let [error, vector, address] = cause;
    words[24..28].copy_from_slice(&[error, vector, vcpu.mask, address]);
    words[28] = vectors;
    words[37] = vcpu.mask;
    words
}

/// Stores the vector registers in the guest's memory.
fn put_vectors(vcpu: &mut Vcpu, to: u64, xsave_bytes: u64) -> i64 {
    let (fd, xcr0) = (vcpu.fd, vcpu.state().xcr0.load(Ordering::Relaxed));
    if machine::get_vectors(fd, &mut vcpu.vectors).is_err() {
        return EFAULT;
    }
    let end = xsave_bytes as usize;
    let software = &mut vcpu.vectors[SOFTWARE..SOFTWARE + 48];
    software.fill(0);
    software[..4].copy_from_slice(&frame::MAGIC_1.to_ne_bytes());
    software[4..8].copy_from_slice(&(xsave_bytes as u32 + 4).to_ne_bytes());
    software[8..16].copy_from_slice(&xcr0.to_ne_bytes());
    software[16..20].copy_from_slice(&(xsave_bytes as u32).to_ne_bytes());
    let state = vcpu.state();
    match put(state, to, &vcpu.vectors[..end]) {
        0 => put(state, to + xsave_bytes, &frame::MAGIC_2.to_ne_bytes()),
        error => error,
    }
}

/// Reads the vector registers from a frame in the guest's memory; returns their components. As in the kernel, they are
/// those that the frame lists if both its magic numbers are present, otherwise the oldest form. The registers are in
/// KVM's form, with existing components only.
fn get_frame(vcpu: &mut Vcpu, place: u64) -> Option<u64> {
    const OLDEST: u64 = 3;
    let state = vcpu.state();
    let most = state.xsave_bytes.load(Ordering::Relaxed) as usize;
    let all = state.xcr0.load(Ordering::Relaxed);
    if get(state, place, &mut vcpu.vectors[..HEADER]) != 0 {
        return None;
    }
    let number = |bytes: &[u8; VECTORS_BYTES], at: usize| {
        u32::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]))
    };
    let [magic, size, extended] = [
        frame::MAGIC_1_AT,
        frame::XSTATE_SIZE_AT,
        frame::EXTENDED_SIZE_AT,
    ]
    .map(|at| number(&vcpu.vectors, at));
    let stored = u64::from(number(&vcpu.vectors, frame::XFEATURES_AT));
    let is_sized = (HEADER + HEADER_BYTES..=most).contains(&(size as usize)) && size <= extended;
    if magic != frame::MAGIC_1 || !is_sized {
        return Some(OLDEST & all);
    }
    let mut magic_2 = [0; 4];
    if get(state, place + u64::from(size), &mut magic_2) != 0 {
        return None;
    }
    if u32::from_ne_bytes(magic_2) != frame::MAGIC_2 {
        return Some(OLDEST & all);
    }
    let state = vcpu.state();
    if get(state, place, &mut vcpu.vectors[..size as usize]) != 0 {
        return None;
    }
    let known = u64::from_ne_bytes(std::array::from_fn(|byte| vcpu.vectors[HEADER + byte]));
    Some(known & stored & all)
}

/// The offset of the header of the vector registers, and its size.
const HEADER: usize = 512;
const HEADER_BYTES: usize = 64;

/// Returns from a handler.
pub(super) fn sigreturn(vcpu: &mut Vcpu) {
    let mut bytes = [[0_u8; 8]; CONTEXT_WORDS];
    if get(vcpu.state(), vcpu.registers.rsp, bytes.as_flattened_mut()) != 0 {
        return force(vcpu, libc::SIGSEGV, SI_KERNEL, 0, 0, 0);
    }
    let words = bytes.map(u64::from_ne_bytes);
    let place = words[28];
    if place != 0 {
        let Some(known) = get_frame(vcpu, place) else {
            return force(vcpu, libc::SIGSEGV, SI_KERNEL, 0, 0, 0);
        };
        vcpu.vectors[HEADER..HEADER + HEADER_BYTES].fill(0);
        vcpu.vectors[HEADER..HEADER + 8].copy_from_slice(&known.to_ne_bytes());
        vcpu.vectors[SOFTWARE..HEADER].fill(0);
        // Reserved bits of the control register would make it fail.
        vcpu.vectors[26] = 0;
        vcpu.vectors[27] = 0;
        if machine::set_vectors(vcpu.fd, &vcpu.vectors).is_err() {
            return force(vcpu, libc::SIGSEGV, SI_KERNEL, 0, 0, 0);
        }
    }
    let registers = &mut vcpu.registers;
    let targets = [
        &mut registers.r8,
        &mut registers.r9,
        &mut registers.r10,
        &mut registers.r11,
        &mut registers.r12,
        &mut registers.r13,
        &mut registers.r14,
        &mut registers.r15,
        &mut registers.rdi,
        &mut registers.rsi,
        &mut registers.rbp,
        &mut registers.rbx,
        &mut registers.rdx,
        &mut registers.rax,
        &mut registers.rcx,
        &mut registers.rsp,
        &mut registers.rip,
        &mut registers.rflags,
    ];
    for (target, word) in targets.into_iter().zip(&words[5..23]) {
        *target = *word;
    }
    vcpu.signal_stack = [words[2], words[4], words[3] & 0xffff_ffff];
    if vcpu.pending.load(Ordering::Acquire) == 0 {
        restore_mask(words[37]);
    } else {
        // It is delivered at once, before the mask changes.
        vcpu.mask = words[37];
    }
    debug_assert!(vcpu.entry == Entry::InCall);
}

/// `rt_sigaction`.
pub(super) fn set_action(vcpu: &mut Vcpu, args: &[u64; 6]) -> i64 {
    const WORDS: usize = 4;
    let [signal, new, old, size, ..] = *args;
    let before = action(vcpu, signal as u32);
    // The kernel and the filter check the call twice first: without an action, and then with the requested one.
    let asked = [signal, 0, 0, size, 0, 0];
    let result = call::guest(libc::SYS_rt_sigaction as u64, &asked, &vcpu.pending);
    if result != 0 {
        return result;
    }
    let mut words = [0; WORDS];
    if new != 0 {
        let mut bytes = [[0_u8; 8]; WORDS];
        if get(vcpu.state(), new, bytes.as_flattened_mut()) != 0 {
            return EFAULT;
        }
        words = bytes.map(u64::from_ne_bytes);
    }
    if new != 0 {
        if [libc::SIGKILL, libc::SIGSTOP].contains(&(signal as i32)) {
            return EINVAL;
        }
        set(vcpu, signal as u32, words);
        install(signal, words);
    }
    match (old, before) {
        (0, _) | (_, None) => 0,
        (old, Some(before)) => put(
            vcpu.state(),
            old,
            before.map(u64::to_ne_bytes).as_flattened(),
        ),
    }
}

/// `rt_sigprocmask`: the kernel executes it, except for the signals that the monitor needs.
pub(super) fn set_mask(vcpu: &mut Vcpu, nr: u64, args: &[u64; 6]) -> i64 {
    let result = call::guest(nr, args, &vcpu.pending);
    if result == 0 && args[1] != 0 {
        let mask = OWN;
        let how = libc::SIG_UNBLOCK as u64;
        own(
            libc::SYS_rt_sigprocmask,
            [how, (&raw const mask) as u64, 0, 8, 0, 0],
        );
    }
    result
}

/// `sigaltstack`.
pub(super) fn set_stack(vcpu: &mut Vcpu, args: &[u64; 6]) -> i64 {
    let [new, old, ..] = *args;
    let [base, size, flags] = vcpu.signal_stack;
    let is_on_stack = is_inside(vcpu.registers.rsp, base, size);
    let mut bytes = [[0_u8; 8]; 3];
    // The kernel and the filter check the call first. The kernel then has the stack, too, which has no effect: no
    // handler of the monitor runs on it.
    let made = [new, 0, 0, 0, 0, 0];
    let result = call::guest(libc::SYS_sigaltstack as u64, &made, &vcpu.pending);
    if result != 0 {
        return result;
    }
    if new != 0 && get(vcpu.state(), new, bytes.as_flattened_mut()) != 0 {
        return EFAULT;
    }
    if new != 0 && is_on_stack {
        return EPERM;
    }
    if old != 0 {
        let flags = match (size, is_on_stack) {
            (0, _) => u64::from(libc::SS_DISABLE as u32),
            (_, true) => flags | u64::from(libc::SS_ONSTACK as u32),
            _ => flags,
        };
        let words = [base, flags, size].map(u64::to_ne_bytes);
        if put(vcpu.state(), old, words.as_flattened()) != 0 {
            return EFAULT;
        }
    }
    if new != 0 {
        let [base, flags, size] = bytes.map(u64::from_ne_bytes);
        let flags = flags & 0xffff_ffff;
        vcpu.signal_stack = match flags & u64::from(libc::SS_DISABLE as u32) {
            0 => [base, size, flags],
            _ => [0, 0, flags],
        };
    }
    0
}

/// Writes to the guest's memory; `EFAULT` if the guest itself may not write there.
pub(super) fn put(state: &State, to: u64, bytes: &[u8]) -> i64 {
    let count = bytes.len() as u64;
    if state.is_host(to, count) {
        return EFAULT;
    }
    match call::copy(to, bytes.as_ptr() as u64, count) {
        0 => 0,
        _ => EFAULT,
    }
}

/// Reads the guest's memory.
pub(super) fn get(state: &State, from: u64, bytes: &mut [u8]) -> i64 {
    let count = bytes.len() as u64;
    if state.is_host(from, count) {
        return EFAULT;
    }
    match call::copy(bytes.as_mut_ptr() as u64, from, count) {
        0 => 0,
        _ => EFAULT,
    }
}

const _: () = assert!(RESTART < 0 && VECTORS_BYTES as u64 == PAGE);
