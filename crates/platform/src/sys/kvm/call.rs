//! System calls without the C library: the monitor's own from known instructions, and the guest's, which a signal may
//! interrupt at any point.
//!
//! If a handler finds a thread between the check of `pending` and the `syscall`, or at the `syscall` because the kernel
//! would restart the call, it moves the thread to the end instead: the guest's handler runs first.

use std::arch::global_asm;
use std::sync::atomic::AtomicU32;

use tamis_abi::restart;
use tamis_kernel::Errno;

use super::signals;
use super::tasks::killed;
use super::vcpu::thread_entry;

/// The filter's error for a tested call that the guest's filter allows: the kernel doesn't return it.
pub(crate) const WOULD_BE_MADE: u16 = 4095;
/// The call was not made, or is to be restarted, because a signal is pending. The kernel's own number for that.
pub(super) const RESTART: i64 = restart::SYS;

/// Loads the registers of a call from six words at `r11`.
macro_rules! load_arguments {
    () => {
        "mov rdi, [r11]
        mov rsi, [r11 + 8]
        mov rdx, [r11 + 16]
        mov r10, [r11 + 24]
        mov r8, [r11 + 32]
        mov r9, [r11 + 40]"
    };
}

/// A function that makes a call unless a signal is pending.
macro_rules! guest_call {
    ($name:literal) => {
        concat!(
            ".globl tamis_platform_kvm_",
            $name,
            "
            .hidden tamis_platform_kvm_",
            $name,
            "
            tamis_platform_kvm_",
            $name,
            ":
            mov rax, rdi
            mov r11, rsi
            mov rcx, rdx
            ",
            load_arguments!(),
            "
            .globl tamis_platform_kvm_",
            $name,
            "_begin
            .hidden tamis_platform_kvm_",
            $name,
            "_begin
            tamis_platform_kvm_",
            $name,
            "_begin:
            cmp dword ptr [rcx], 0
            jne 9f
            .globl tamis_platform_kvm_",
            $name,
            "_at
            .hidden tamis_platform_kvm_",
            $name,
            "_at
            tamis_platform_kvm_",
            $name,
            "_at:
            syscall
            .globl tamis_platform_kvm_",
            $name,
            "_made
            .hidden tamis_platform_kvm_",
            $name,
            "_made
            tamis_platform_kvm_",
            $name,
            "_made:
            ret"
        )
    };
}

global_asm!(
    ".pushsection .text.tamis_platform_kvm, \"ax\"",
    // Makes a call of the monitor: its number, and the address of six arguments.
    ".globl tamis_platform_kvm_own",
    ".hidden tamis_platform_kvm_own",
    "tamis_platform_kvm_own:",
    "mov rax, rdi",
    "mov r11, rsi",
    load_arguments!(),
    "syscall",
    ".globl tamis_platform_kvm_owned",
    ".hidden tamis_platform_kvm_owned",
    "tamis_platform_kvm_owned:",
    "ret",
    // Runs a thread: its descriptor, and the address of the pending signal.
    ".globl tamis_platform_kvm_run",
    ".hidden tamis_platform_kvm_run",
    "tamis_platform_kvm_run:",
    "cmp dword ptr [rsi], 0",
    "jne 9f",
    "mov eax, {ioctl}",
    "mov esi, {run}",
    "xor edx, edx",
    ".globl tamis_platform_kvm_run_at",
    ".hidden tamis_platform_kvm_run_at",
    "tamis_platform_kvm_run_at:",
    "syscall",
    ".globl tamis_platform_kvm_ran",
    ".hidden tamis_platform_kvm_ran",
    "tamis_platform_kvm_ran:",
    "ret",
    // Makes a call of the guest: its number, the address of six arguments, and that of the pending signal.
    guest_call!("guest"),
    // The same from an instruction for which the filter only returns the result that the call would have.
    guest_call!("ask"),
    ".globl tamis_platform_kvm_restart",
    ".hidden tamis_platform_kvm_restart",
    "tamis_platform_kvm_restart:",
    "9:",
    "mov rax, {restart}",
    "ret",
    // Makes a call that returns twice in this memory: number, arguments, and the end of the new stack.
    ".globl tamis_platform_kvm_clone",
    ".hidden tamis_platform_kvm_clone",
    "tamis_platform_kvm_clone:",
    "push r12",
    "mov r12, rdx",
    "mov rax, rdi",
    "mov r11, rsi",
    load_arguments!(),
    "syscall",
    "test rax, rax",
    "jz 1f",
    "pop r12",
    "ret",
    // Begins on a stack.
    ".globl tamis_platform_kvm_start",
    ".hidden tamis_platform_kvm_start",
    "tamis_platform_kvm_start:",
    "mov r12, rdi",
    "1:",
    "mov rsp, r12",
    "xor ebp, ebp",
    "lea rdi, [r12 - 1]",
    "call {entry}",
    "ud2",
    // Ends a thread, whose stack is free as soon as the number at the second address is 0.
    ".globl tamis_platform_kvm_exit",
    ".hidden tamis_platform_kvm_exit",
    "tamis_platform_kvm_exit:",
    "mov dword ptr [rsi], 0",
    "mov eax, {exit}",
    "syscall",
    ".globl tamis_platform_kvm_exited",
    ".hidden tamis_platform_kvm_exited",
    "tamis_platform_kvm_exited:",
    "ud2",
    // A thread that the filter kills is moved here.
    ".globl tamis_platform_kvm_killed",
    ".hidden tamis_platform_kvm_killed",
    "tamis_platform_kvm_killed:",
    "and rsp, -16",
    "mov rdi, rsp",
    "call {killed}",
    "ud2",
    // The machine has failed with the error in `edi`; the tracer recognises the address.
    ".globl tamis_platform_kvm_fail",
    ".hidden tamis_platform_kvm_fail",
    "tamis_platform_kvm_fail:",
    "ud2",
    // Copies bytes: to, from, count; returns the number of bytes left.
    ".globl tamis_platform_kvm_copy",
    ".hidden tamis_platform_kvm_copy",
    "tamis_platform_kvm_copy:",
    "mov rcx, rdx",
    ".globl tamis_platform_kvm_copy_at",
    ".hidden tamis_platform_kvm_copy_at",
    "tamis_platform_kvm_copy_at:",
    "rep movsb",
    ".globl tamis_platform_kvm_copied",
    ".hidden tamis_platform_kvm_copied",
    "tamis_platform_kvm_copied:",
    "mov rax, rcx",
    "ret",
    ".globl tamis_platform_kvm_restorer",
    ".hidden tamis_platform_kvm_restorer",
    "tamis_platform_kvm_restorer:",
    "mov eax, {sigreturn}",
    "syscall",
    ".globl tamis_platform_kvm_restored",
    ".hidden tamis_platform_kvm_restored",
    "tamis_platform_kvm_restored:",
    "ud2",
    ".popsection",
    ioctl = const libc::SYS_ioctl,
    run = const super::machine::KVM_RUN,
    restart = const RESTART,
    exit = const libc::SYS_exit,
    sigreturn = const libc::SYS_rt_sigreturn,
    entry = sym thread_entry,
    killed = sym killed,
);

// SAFETY: the block above defines them, with these signatures.
unsafe extern "sysv64" {
    fn tamis_platform_kvm_own(nr: u64, args: *const u64) -> i64;
    fn tamis_platform_kvm_owned();
    fn tamis_platform_kvm_run(fd: u64, pending: *const u32) -> i64;
    fn tamis_platform_kvm_run_at();
    fn tamis_platform_kvm_ran();
    fn tamis_platform_kvm_guest(nr: u64, args: *const u64, pending: *const u32) -> i64;
    fn tamis_platform_kvm_guest_begin();
    fn tamis_platform_kvm_guest_at();
    fn tamis_platform_kvm_ask(nr: u64, args: *const u64, pending: *const u32) -> i64;
    fn tamis_platform_kvm_ask_begin();
    fn tamis_platform_kvm_ask_at();
    fn tamis_platform_kvm_ask_made();
    fn tamis_platform_kvm_restart();
    fn tamis_platform_kvm_clone(nr: u64, args: *const u64, stack_end: u64) -> i64;
    fn tamis_platform_kvm_start(stack_end: u64) -> !;
    fn tamis_platform_kvm_exit(code: u64, in_use: *const u32) -> !;
    fn tamis_platform_kvm_exited();
    fn tamis_platform_kvm_killed();
    fn tamis_platform_kvm_fail(errno: i32) -> !;
    fn tamis_platform_kvm_copy(to: u64, from: u64, count: u64) -> u64;
    fn tamis_platform_kvm_copy_at();
    fn tamis_platform_kvm_copied();
    fn tamis_platform_kvm_restorer();
    fn tamis_platform_kvm_restored();
}

fn address(code: *const ()) -> u64 {
    code as u64
}

/// The return addresses of the monitor's own calls.
pub(crate) fn own_ips() -> [u64; 4] {
    [
        address(tamis_platform_kvm_owned as *const ()),
        address(tamis_platform_kvm_ran as *const ()),
        address(tamis_platform_kvm_restored as *const ()),
        address(tamis_platform_kvm_exited as *const ()),
    ]
}

/// The return address of tested calls, which are never made.
pub(crate) fn asking_ip() -> u64 {
    address(tamis_platform_kvm_ask_made as *const ())
}

/// A call of the monitor.
pub(super) fn own(nr: i64, args: [u64; 6]) -> i64 {
    // SAFETY: callers pass the arguments that the call takes; the filter bounds its effects.
    unsafe { tamis_platform_kvm_own(nr as u64, args.as_ptr()) }
}

/// Runs a thread of the machine until it exits or a signal is pending.
pub(super) fn run(fd: i32, pending: &AtomicU32) -> i64 {
    // SAFETY: takes a number, and an address of its own.
    unsafe { tamis_platform_kvm_run(fd as u64, pending.as_ptr()) }
}

/// A call of the guest; [`RESTART`] if a signal comes first.
pub(super) fn guest(nr: u64, args: &[u64; 6], pending: &AtomicU32) -> i64 {
    // SAFETY: the call affects this process as the guest's calls affect its own, except for arguments that callers have
    // checked.
    unsafe { tamis_platform_kvm_guest(nr, args.as_ptr(), pending.as_ptr()) }
}

/// Tests a call by the guest's filter without making it: `None` if the filter allows it, otherwise its result;
/// [`RESTART`] if a signal comes first.
pub(super) fn ask(nr: u64, args: &[u64; 6], pending: &AtomicU32) -> Option<i64> {
    // SAFETY: the filter lets no call be made.
    let result = unsafe { tamis_platform_kvm_ask(nr, args.as_ptr(), pending.as_ptr()) };
    (result != -i64::from(WOULD_BE_MADE)).then_some(result)
}

/// A call that also returns in a new task, which begins on this stack.
pub(super) fn clone(nr: u64, args: &[u64; 6], stack_end: u64) -> i64 {
    // SAFETY: the stack is a free one of the area, with a thread that can begin.
    unsafe { tamis_platform_kvm_clone(nr, args.as_ptr(), stack_end) }
}

/// Begins as a thread on this stack.
pub(super) fn start(stack_end: u64) -> ! {
    // SAFETY: as above.
    unsafe { tamis_platform_kvm_start(stack_end) }
}

/// Ends this thread and releases its stack.
pub(super) fn exit(code: u64, in_use: &AtomicU32) -> ! {
    // SAFETY: nothing of the stack is used any more.
    unsafe { tamis_platform_kvm_exit(code, in_use.as_ptr()) }
}

/// Ends the process at the address where the tracer finds the error.
pub(super) fn fail(errno: Errno) -> ! {
    signals::reset(libc::SIGILL);
    // SAFETY: an invalid instruction, whose signal ends the process.
    unsafe { tamis_platform_kvm_fail(errno.0) }
}

/// The address of the machine's failures.
pub(crate) fn failed_at() -> u64 {
    address(tamis_platform_kvm_fail as *const ())
}

/// Copies between the monitor and the guest's memory; returns the number of bytes left.
pub(super) fn copy(to: u64, from: u64, count: u64) -> u64 {
    // SAFETY: one side is the monitor's, the other isn't; the fault handler ends the copy at unmapped memory.
    unsafe { tamis_platform_kvm_copy(to, from, count) }
}

/// Whether an address of the guest is mapped; a stack may have to grow for it.
pub(super) fn is_readable(address: u64) -> bool {
    let mut byte = 0_u8;
    copy((&raw mut byte).addr() as u64, address, 1) == 0
}

/// The return function of signal handlers.
pub(super) fn restorer() -> u64 {
    address(tamis_platform_kvm_restorer as *const ())
}

/// The continuation of a thread that a signal has interrupted here: before a call of the guest or a run of its machine.
/// `None` elsewhere.
pub(super) fn after_signal(ip: u64) -> Option<u64> {
    let first = address(tamis_platform_kvm_run as *const ());
    let is_run = (first..=address(tamis_platform_kvm_run_at as *const ())).contains(&ip);
    let calls = address(tamis_platform_kvm_guest_begin as *const ())
        ..=address(tamis_platform_kvm_guest_at as *const ());
    let asks = address(tamis_platform_kvm_ask_begin as *const ())
        ..=address(tamis_platform_kvm_ask_at as *const ());
    (is_run || calls.contains(&ip) || asks.contains(&ip))
        .then(|| address(tamis_platform_kvm_restart as *const ()))
}

/// The continuation of a thread that the filter kills.
pub(super) fn after_kill() -> u64 {
    address(tamis_platform_kvm_killed as *const ())
}

/// The continuation of a copy that has reached unmapped memory.
pub(super) fn after_fault(ip: u64) -> Option<u64> {
    (ip == address(tamis_platform_kvm_copy_at as *const ()))
        .then(|| address(tamis_platform_kvm_copied as *const ()))
}
