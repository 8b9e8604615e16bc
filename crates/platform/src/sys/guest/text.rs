//! The instructions of the signal handler, and of the calls that it and the guest make.

use std::arch::global_asm;

use super::handler::{
    AT_CALL, AT_CLONE, AT_HANDLER, AT_REPEATED, BELOW, BY_KERNEL, HAS_MASK_BIT, on_signal,
};
use super::inside::{IS_STOPPED, STARTING};
use super::{LET_PASS, REPEATS, SELECTOR, SET_SYSCALL_USER_DISPATCH};
use crate::sys::{frame, separate};

global_asm!(
    ".pushsection .text.tamis_platform_guest, \"ax\"",
    ".globl tamis_platform_guest_call",
    ".hidden tamis_platform_guest_call",
    ".globl tamis_platform_guest_forwarded",
    ".hidden tamis_platform_guest_forwarded",
    ".globl tamis_platform_guest_armed",
    ".hidden tamis_platform_guest_armed",
    ".globl tamis_platform_guest_called",
    ".hidden tamis_platform_guest_called",
    ".globl tamis_platform_guest_call_32",
    ".hidden tamis_platform_guest_call_32",
    ".globl tamis_platform_guest_blocking_handler",
    ".hidden tamis_platform_guest_blocking_handler",
    ".globl tamis_platform_guest_handler",
    ".hidden tamis_platform_guest_handler",
    ".globl tamis_platform_guest_restorer",
    ".hidden tamis_platform_guest_restorer",
    ".globl tamis_platform_guest_returned",
    ".hidden tamis_platform_guest_returned",
    ".globl tamis_platform_guest_enter",
    ".hidden tamis_platform_guest_enter",
    ".globl tamis_platform_guest_leave",
    ".hidden tamis_platform_guest_leave",
    ".globl tamis_platform_guest_restore_vectors",
    ".hidden tamis_platform_guest_restore_vectors",
    // Makes a call: its number, the address of six arguments, and whether it is the guest's. Calls of the guest have
    // another address, so that filters distinguish them from ours.
    "tamis_platform_guest_call:",
    "mov rax, [rsp]",
    "lea rsp, [rsp - 128]",
    "mov [rsp], rax",
    "mov rax, rdi",
    "mov rcx, rdx",
    "mov r11, rsi",
    "mov rdi, [r11]",
    "mov rsi, [r11 + 8]",
    "mov rdx, [r11 + 16]",
    "mov r10, [r11 + 24]",
    "mov r8, [r11 + 32]",
    "mov r9, [r11 + 40]",
    "jrcxz 5f",
    "28:",
    "syscall",
    "tamis_platform_guest_forwarded:",
    "ret 128",
    "5:",
    "syscall",
    "tamis_platform_guest_called:",
    "ret 128",
    // The same for a new thread, whose calls are to raise the signal, too.
    "21:",
    "syscall",
    "test rax, rax",
    "jnz 22f",
    "pushfq",
    "push rdi",
    "push rsi",
    "push rdx",
    "push r10",
    "push r8",
    "lock inc dword ptr [rip + {starting}]",
    "cmp byte ptr [rip + {is_stopped}], 0",
    "jne 23f",
    "mov eax, {prctl}",
    "mov edi, {dispatch}",
    "mov esi, 1",
    "lea rdx, [rip + tamis_platform_guest_call]",
    "lea r10, [rip + tamis_platform_guest_enter]",
    "sub r10, rdx",
    "lea r8, [rip + {selector}]",
    "syscall",
    "tamis_platform_guest_armed:",
    "23:",
    "lock dec dword ptr [rip + {starting}]",
    // Its calls wait like others that enter the handler.
    "34:",
    "cmp byte ptr [rip + {is_stopped}], 0",
    "je 35f",
    "cmp byte ptr [rip + {selector}], {let_pass}",
    "je 35f",
    "pause",
    "jmp 34b",
    "35:",
    "pop r8",
    "pop r10",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "popfq",
    "xor eax, eax",
    "22:",
    "ret 128",
    // The same for a call of the 32-bit interface.
    "tamis_platform_guest_call_32:",
    "int 0x80",
    "ret 128",
    // The signal handler, with the guest's registers in the third argument; under the second name it blocks all
    // signals.
    "tamis_platform_guest_handler:",
    "xor ecx, ecx",
    "jmp 29f",
    "tamis_platform_guest_blocking_handler:",
    "mov ecx, 1",
    "29:",
    "cld",
    "pushfq",
    "and dword ptr [rsp], {no_alignment_check}",
    "popfq",
    "mov rbx, rdx",
    "mov r12, rsp",
    "mov r13, rsi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "and rsp, -16",
    "lea rsp, [rsp - 32]",
    "mov rdx, rsp",
    "call {on_signal}",
    // The thread's flag.
    "mov r15, [rsp + 16]",
    "cmp eax, {by_kernel}",
    "je 3f",
    "cmp eax, {at_handler}",
    "je 8f",
    "btr eax, {has_mask_bit}",
    "push rax",
    "jc 32f",
    // Handlers of the guest may run from here on.
    "lea r11, [rip + 7f]",
    "lea rsp, [rsp - {below}]",
    "mov [rsp], r11",
    "mov edi, {sig_setmask}",
    "lea rsi, [rbx + 296]",
    "xor edx, edx",
    "mov r10d, 8",
    "mov eax, {rt_sigprocmask}",
    "jmp 5b",
    "7:",
    "mov dword ptr [r15], 0",
    "32:",
    // Returns without the kernel: vector registers, flags, and the others; registers that a call may change are
    // changed.
    "mov rcx, [rbx + 224]",
    "test rcx, rcx",
    "jz 2f",
    "call tamis_platform_guest_restore_vectors",
    "2:",
    "mov rdx, rbx",
    "mov r8, [rdx + 40]",
    "mov r9, [rdx + 48]",
    "mov r10, [rdx + 56]",
    "mov r12, [rdx + 72]",
    "mov r13, [rdx + 80]",
    "mov r14, [rdx + 88]",
    "mov r15, [rdx + 96]",
    "mov rdi, [rdx + 104]",
    "mov rsi, [rdx + 112]",
    "mov rbp, [rdx + 120]",
    "mov rbx, [rdx + 128]",
    "mov rax, [rdx + 144]",
    "mov rcx, [rdx + 168]",
    "mov r11, [rdx + 160]",
    "cmp dword ptr [rsp], {at_call}",
    "push qword ptr [rdx + 176]",
    "mov rdx, [rdx + 136]",
    "je 4f",
    "ja 6f",
    "popfq",
    "mov rsp, r11",
    "jmp rcx",
    // To the call above, with its return address below the red zone, which is skipped.
    "4:",
    "popfq",
    "lea rsp, [r11 - 136]",
    "mov [rsp], rcx",
    "jmp 28b",
    // The same for a call that is restarted, since only its notification can be interrupted. The red zone holds its
    // number and the count of restarts, which is limited since the error may be a filter's. Flags are the guest's.
    "24:",
    "popfq",
    "lea rsp, [r11 - 136]",
    "mov [rsp], rcx",
    "mov [rsp - 8], rax",
    "mov qword ptr [rsp - 16], {repeats}",
    "25:",
    "syscall",
    "lea rcx, [rax + {eintr}]",
    "jrcxz 26f",
    "27:",
    "ret 128",
    "26:",
    "mov rcx, [rsp - 16]",
    "lea rcx, [rcx - 1]",
    "mov [rsp - 16], rcx",
    "jrcxz 27b",
    "mov rax, [rsp - 8]",
    "jmp 25b",
    // To the call for a new thread.
    "20:",
    "popfq",
    "lea rsp, [r11 - 136]",
    "mov [rsp], rcx",
    "jmp 21b",
    // To the call above, which doesn't return.
    "6:",
    "cmp dword ptr [rsp + 8], {at_clone}",
    "je 20b",
    "cmp dword ptr [rsp + 8], {at_repeated}",
    "je 24b",
    "popfq",
    "mov rsp, r11",
    "jmp 28b",
    "3:",
    "mov rsp, r12",
    "ret",
    // To the guest's own handler, with the kernel's frame: the mask is set first.
    "8:",
    "mov r14, rsp",
    "lea r11, [rip + 9f]",
    "lea rsp, [rsp - {below}]",
    "mov [rsp], r11",
    "mov edi, {sig_setmask}",
    "mov rsi, r14",
    "xor edx, edx",
    "mov r10d, 8",
    "mov eax, {rt_sigprocmask}",
    "jmp 5b",
    "9:",
    "mov dword ptr [r15], 0",
    "mov rcx, [r14 + 8]",
    "mov edi, {sigsys}",
    "mov rsi, r13",
    "mov rdx, rbx",
    "xor eax, eax",
    "mov rsp, r12",
    "jmp rcx",
    "tamis_platform_guest_restorer:",
    "mov eax, {rt_sigreturn}",
    "syscall",
    "tamis_platform_guest_returned:",
    // The guest's first instruction: entry, stack pointer.
    "tamis_platform_guest_enter:",
    "mov rsp, rsi",
    "mov rcx, rdi",
    "xor eax, eax",
    "wrfsbase rax",
    "xor ebx, ebx",
    "xor edx, edx",
    "xor ebp, ebp",
    "xor esi, esi",
    "xor edi, edi",
    "xor r8d, r8d",
    "xor r9d, r9d",
    "xor r10d, r10d",
    "xor r11d, r11d",
    "xor r12d, r12d",
    "xor r13d, r13d",
    "xor r14d, r14d",
    "xor r15d, r15d",
    "jmp rcx",
    // The same, after the supervisor's memory has been discarded, on an unused part of the stack.
    "tamis_platform_guest_leave:",
    "mov rbx, rdi",
    "mov rbp, rsi",
    "lea rsp, [rsi - {far_below}]",
    "and rsp, -16",
    "call {leave_supervisor}",
    "mov rdi, rbx",
    "mov rsi, rbp",
    "jmp tamis_platform_guest_enter",
    // Restores the vector registers from a signal frame at rcx, as `rt_sigreturn`: the components that the kernel has
    // stored, which excludes those that the process has no permission for, or without both magic numbers the oldest
    // ones.
    "tamis_platform_guest_restore_vectors:",
    "cmp dword ptr [rcx + {magic_1_at}], {magic_1}",
    "jne 41f",
    "mov eax, [rcx + {xstate_size_at}]",
    "cmp dword ptr [rcx + rax], {magic_2}",
    "jne 41f",
    "mov eax, [rcx + {xfeatures_at}]",
    "mov edx, [rcx + {xfeatures_at} + 4]",
    "xrstor64 [rcx]",
    "ret",
    "41:",
    "fxrstor64 [rcx]",
    "ret",
    ".popsection",
    magic_1_at = const frame::MAGIC_1_AT,
    magic_1 = const frame::MAGIC_1,
    magic_2 = const frame::MAGIC_2,
    xstate_size_at = const frame::XSTATE_SIZE_AT,
    xfeatures_at = const frame::XFEATURES_AT,
    no_alignment_check = const !(1 << 18),
    below = const BELOW,
    sig_setmask = const libc::SIG_SETMASK,
    rt_sigprocmask = const libc::SYS_rt_sigprocmask,
    has_mask_bit = const HAS_MASK_BIT,
    by_kernel = const BY_KERNEL,
    at_call = const AT_CALL,
    at_handler = const AT_HANDLER,
    at_clone = const AT_CLONE,
    at_repeated = const AT_REPEATED,
    repeats = const REPEATS,
    eintr = const libc::EINTR,
    far_below = const 1 << 16,
    leave_supervisor = sym separate::leave_supervisor,
    prctl = const libc::SYS_prctl,
    dispatch = const SET_SYSCALL_USER_DISPATCH,
    sigsys = const libc::SIGSYS,
    is_stopped = sym IS_STOPPED,
    let_pass = const LET_PASS,
    starting = sym STARTING,
    selector = sym SELECTOR,
    on_signal = sym on_signal,
    rt_sigreturn = const libc::SYS_rt_sigreturn,
);

// SAFETY: the block above defines them, with these signatures.
unsafe extern "sysv64" {
    pub(super) fn tamis_platform_guest_call(nr: u64, args: *const u64, is_guests: u64) -> i64;
    pub(super) fn tamis_platform_guest_called();
    pub(super) fn tamis_platform_guest_forwarded();
    pub(super) fn tamis_platform_guest_call_32();
    pub(super) fn tamis_platform_guest_armed();
    pub(super) fn tamis_platform_guest_handler();
    pub(super) fn tamis_platform_guest_blocking_handler();
    pub(super) fn tamis_platform_guest_restorer();
    pub(super) fn tamis_platform_guest_returned();
    pub(super) fn tamis_platform_guest_enter(entry: u64, stack: u64) -> !;
    pub(super) fn tamis_platform_guest_leave(entry: u64, stack: u64) -> !;
}

#[cfg(test)]
mod tests {
    use std::arch::asm;
    use std::ptr;

    use super::*;

    const PAGE: usize = 4096;
    /// The registers of x87 and SSE, and the header that follows them.
    const LEGACY_BYTES: usize = 512;
    const HEADER_BYTES: usize = 64;

    /// A page before an inaccessible one.
    struct Guarded(*mut u8);

    impl Guarded {
        fn new() -> Guarded {
            // SAFETY: a new mapping, whose second page is protected.
            unsafe {
                let access = libc::PROT_READ | libc::PROT_WRITE;
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                let pages = libc::mmap(ptr::null_mut(), 2 * PAGE, access, flags, -1, 0);
                assert_ne!(pages, libc::MAP_FAILED);
                assert_eq!(libc::mprotect(pages.add(PAGE), PAGE, libc::PROT_NONE), 0);
                Guarded(pages.cast())
            }
        }

        /// The current registers with this value in `xmm0`, in `len_bytes` bytes at the page's end.
        fn state(&self, len_bytes: usize, xmm0: u64) -> *mut u8 {
            const XMM0_AT: usize = 160;
            // SAFETY: inside the page, and aligned.
            unsafe {
                let state = self.0.add(PAGE - len_bytes);
                asm!("fxsave64 [{}]", in(reg) state, options(nostack));
                state.add(XMM0_AT).cast::<u64>().write(xmm0);
                state
            }
        }
    }

    impl Drop for Guarded {
        fn drop(&mut self) {
            // SAFETY: mapped by `new`.
            unsafe { libc::munmap(self.0.cast(), 2 * PAGE) };
        }
    }

    /// The value of `xmm0` afterwards.
    fn restored(state: *const u8) -> u64 {
        let xmm0;
        // SAFETY: the state is valid, and control registers in it are those of now.
        unsafe {
            asm!(
                "call tamis_platform_guest_restore_vectors",
                "movq rax, xmm0",
                out("rax") xmm0,
                inout("rcx") state => _,
                clobber_abi("sysv64"),
            );
        }
        xmm0
    }

    fn put(state: *mut u8, at: usize, word: u32) {
        // SAFETY: inside the state.
        unsafe { state.add(at).cast::<u32>().write(word) };
    }

    /// A frame whose header lists a component that the frame lacks: that of a process without permission for it.
    fn frame_of_two(pages: &Guarded, xmm0: u64, magic_2: u32) -> *mut u8 {
        const COMPONENTS: u32 = 3;
        const AND_ONE_MORE: u32 = 7;
        let size = LEGACY_BYTES + HEADER_BYTES;
        let state = pages.state(size + HEADER_BYTES, xmm0);
        put(state, frame::MAGIC_1_AT, frame::MAGIC_1);
        put(state, frame::XFEATURES_AT, COMPONENTS);
        put(state, frame::XSTATE_SIZE_AT, size as u32);
        put(state, LEGACY_BYTES, AND_ONE_MORE);
        put(state, size, magic_2);
        state
    }

    #[test]
    fn components_that_a_frame_lacks_are_not_read() {
        let pages = Guarded::new();
        assert_eq!(
            restored(frame_of_two(&pages, 0x1234, frame::MAGIC_2)),
            0x1234
        );
    }

    #[test]
    fn a_frame_without_its_second_magic_has_the_oldest_registers() {
        let pages = Guarded::new();
        assert_eq!(restored(frame_of_two(&pages, 0x1235, 0)), 0x1235);
    }

    #[test]
    fn a_frame_without_its_first_magic_has_the_oldest_registers() {
        let pages = Guarded::new();
        let state = pages.state(LEGACY_BYTES, 0x1236);
        put(state, frame::MAGIC_1_AT, 0);
        assert_eq!(restored(state), 0x1236);
    }
}
