//! The code that runs in a guest: it hands a call over to the supervisor through a [`Slot`](crate::patched::slot::Slot)
//! and waits for the answer.
//!
//! It is copied into guests as bytes and never runs in this process, so it is among the read-only data. It works at any
//! address and has no relocations. A trampoline jumps to its beginning with the address of its continuation in `r11`
//! and the entry of the table of numbers in `rcx`, which is free then, as after any call. All other registers, the
//! flags and the red zone are kept; no vector registers are used. If the calling thread has no slot, or its slot is in
//! use (by a call that a signal handler has interrupted), or the supervisor requests it, the code continues two bytes
//! before that address: a `syscall` there lets the kernel decide.
//!
//! The complement of its FS base identifies a thread: programs without thread-locals have 0 there, as have free
//! entries. The table of threads belongs to the address space and is wiped in forked children, so that each thread
//! registers once, and again if its slot's key differs from its entry's. It registers by a call whose number no kernel
//! has, and for which the filter notifies the supervisor.

use std::arch::global_asm;

/// The number of the call that registers a thread, with the thread's identification as the argument.
pub(crate) const HELLO: u32 = 0x3a71_0001;
/// The number of entries of the table of threads that are searched for a thread, starting at its own.
pub(crate) const WINDOW: usize = 4;
/// The number of threads with entries of their own in the table, as a power of two.
pub(crate) const TABLE_BITS: u32 = 10;
/// The bytes of an entry: the thread's identification, address of the slot (0 for none), whether it is in use, and the
/// expected key of the slot.
pub(crate) const ENTRY_BYTES: usize = 32;
/// The guest makes the call, and the kernel decides. A slot that has been replaced by zeroed memory during a call has
/// this value.
pub(crate) const ANSWER_BY_KERNEL: u32 = 0;
/// The offset of the flag of an entry in use.
pub(crate) const IN_USE: usize = 16;
/// The answer is a value.
pub(crate) const ANSWER_VALUE: u32 = 1;
/// The guest copies its memory to the slot and hands over its turn again.
pub(crate) const ANSWER_READ: u32 = 2;
/// The guest copies from the slot to its memory and hands over its turn again.
pub(crate) const ANSWER_WRITE: u32 = 3;
/// In the table of numbers: the kernel decides a call.
pub(crate) const BY_KERNEL: u8 = 0;
/// In the table of numbers: the supervisor decides a call.
pub(crate) const ASK: u8 = 1;
/// In the table of numbers: the call fails with the error in the table of errors.
pub(crate) const FAIL: u8 = 2;
/// The offset of the table of errors from the beginning of the code: negative numbers of 16 bits, by the call's number.
pub(crate) const ERRORS_OFFSET: usize = 0x1000;
/// The entries of the table of errors.
pub(crate) const ERRORS: usize = 512;
/// The multiplier of the hash function.
pub(crate) const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .rodata.tamis_stub, \"a\"",
    ".globl tamis_platform_stub_begin",
    ".hidden tamis_platform_stub_begin",
    "tamis_platform_stub_begin:",
    "50:",
    "lea rcx, [rcx - {ask}]",
    "jrcxz 51f",
    // A constant error.
    "lea rcx, [rip + 50b + {errors}]",
    "movzx eax, ax",
    "movsx rax, word ptr [rcx + 2 * rax]",
    "jmp r11",
    "51:",
    "lea rsp, [rsp - 128]",
    "push r11",
    "push rax",
    // The flags that change here are saved in a tenth of the time of `pushfq` and `popfq`.
    "lahf",
    "seto al",
    "push rax",
    "mov rax, [rsp + 8]",
    "push rbx",
    "push rdx",
    // The entry of this thread.
    "2:",
    "rdfsbase rcx",
    "not rcx",
    "movabs rbx, {multiplier}",
    "imul rbx, rcx",
    "shr rbx, {hash_shift}",
    "shl rbx, {entry_shift}",
    "add rbx, [rip + 90f]",
    "cmp [rbx], rcx",
    "je 3f",
    "add rbx, {entry_bytes}",
    "cmp [rbx], rcx",
    "je 3f",
    "add rbx, {entry_bytes}",
    "cmp [rbx], rcx",
    "je 3f",
    "add rbx, {entry_bytes}",
    "cmp [rbx], rcx",
    "je 3f",
    // Registers the thread.
    "push rdi",
    "mov rdi, rcx",
    "mov eax, {hello}",
    "syscall",
    "pop rdi",
    "test rax, rax",
    "mov rax, [rsp + 24]",
    "mov r11, [rsp + 32]",
    "jz 2b",
    "jmp 80f",
    // Its slot.
    "3:",
    "mov edx, 1",
    "xchg [rbx + 16], edx",
    "test edx, edx",
    "jnz 80f",
    "mov rdx, [rbx + 8]",
    "test rdx, rdx",
    "jz 79f",
    "mov rcx, [rbx + 24]",
    "cmp rcx, [rdx + 80]",
    "jne 34f",
    // The request.
    "mov [rdx + 16], rdi",
    "mov [rdx + 24], rsi",
    "mov rcx, [rsp]",
    "mov [rdx + 32], rcx",
    "mov [rdx + 40], r10",
    "mov [rdx + 48], r8",
    "mov [rdx + 56], r9",
    "mov [rdx + 4], eax",
    "mov [rdx + 8], r11d",
    "39:",
    "mov ecx, 1",
    "xchg [rdx], ecx",
    // A slot without a key is never answered: this is a process that a signal handler has forked just before.
    "cmp qword ptr [rdx + 80], 0",
    "je 79f",
    "cmp dword ptr [rdx + 68], 0",
    "jne 20f",
    // Spin.
    "40:",
    "mov ecx, [rdx + 72]",
    "test ecx, ecx",
    "jz 12f",
    "41:",
    "cmp dword ptr [rdx], 1",
    "jne 30f",
    "pause",
    "dec ecx",
    "jnz 41b",
    // Yields.
    "12:",
    "mov ecx, [rdx + 76]",
    "test ecx, ecx",
    "jz 15f",
    "push rcx",
    "13:",
    "cmp dword ptr [rdx], 1",
    "jne 14f",
    "mov eax, {sched_yield}",
    "syscall",
    "dec dword ptr [rsp]",
    "jnz 13b",
    "14:",
    "pop rcx",
    // Sleep.
    "15:",
    "cmp dword ptr [rdx], 1",
    "jne 30f",
    "push rdi",
    "push rsi",
    "push r10",
    "push rdx",
    "16:",
    "mov ecx, 1",
    "xchg [rdx + 64], ecx",
    "mov rdi, rdx",
    "xor esi, esi",
    "mov edx, 1",
    "xor r10d, r10d",
    "mov eax, {futex}",
    "syscall",
    "mov rdx, [rsp]",
    "cmp dword ptr [rdx], 1",
    "je 16b",
    "mov dword ptr [rdx + 64], 0",
    "pop rdx",
    "pop r10",
    "pop rsi",
    "pop rdi",
    "jmp 30f",
    // Wake the supervisor.
    "20:",
    "push rdi",
    "push rsi",
    "push rdx",
    "mov rdi, rdx",
    "mov esi, 1",
    "mov edx, 1",
    "mov eax, {futex}",
    "syscall",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "jmp 40b",
    // The answer.
    "30:",
    "mov ecx, [rdx + 4]",
    "cmp ecx, {value}",
    "je 33f",
    "test ecx, ecx",
    "jz 79f",
    // Copies memory for the supervisor: after a fault the tracer continues behind it.
    "push rsi",
    "push rdi",
    "pushfq",
    "mov rdi, [rdx + 16]",
    "lea rsi, [rdx + 32]",
    "cmp ecx, {read}",
    "jne 32f",
    "xchg rsi, rdi",
    "32:",
    "mov ecx, [rdx + 24]",
    "cld",
    ".globl tamis_platform_stub_copy",
    ".hidden tamis_platform_stub_copy",
    "tamis_platform_stub_copy:",
    "rep movsb",
    "mov [rdx + 24], rcx",
    "popfq",
    "pop rdi",
    "pop rsi",
    "jmp 39b",
    // A value.
    "33:",
    "mov rcx, [rdx + 16]",
    "mov dword ptr [rbx + 16], 0",
    "pop rdx",
    "pop rbx",
    "pop rax",
    "add al, 127",
    "sahf",
    "mov rax, rcx",
    "lea rsp, [rsp + 8]",
    "pop r11",
    "lea rsp, [rsp + 128]",
    "jmp r11",
    // The entry is that of a former thread.
    "34:",
    "mov qword ptr [rbx], 0",
    "mov dword ptr [rbx + 16], 0",
    "jmp 2b",
    // The kernel decides.
    "79:",
    "mov dword ptr [rbx + 16], 0",
    "80:",
    "pop rdx",
    "pop rbx",
    "pop rax",
    "add al, 127",
    "sahf",
    "pop rax",
    "pop r11",
    "lea rsp, [rsp + 128]",
    "lea r11, [r11 - 2]",
    "jmp r11",
    ".balign 8, 0x90",
    // The address of the table of threads, which is filled in.
    "90:",
    ".quad 0",
    ".globl tamis_platform_stub_end",
    ".hidden tamis_platform_stub_end",
    "tamis_platform_stub_end:",
    ".popsection",
    value = const ANSWER_VALUE,
    read = const ANSWER_READ,
    ask = const ASK,
    errors = const ERRORS_OFFSET,
    multiplier = const MULTIPLIER,
    hash_shift = const 64 - TABLE_BITS,
    entry_shift = const ENTRY_BYTES.trailing_zeros(),
    entry_bytes = const ENTRY_BYTES,
    hello = const HELLO,
    sched_yield = const libc::SYS_sched_yield,
    futex = const libc::SYS_futex,
);

// Other architectures have no code: the platform isn't available there.
#[cfg(not(target_arch = "x86_64"))]
global_asm!(
    ".pushsection .rodata.tamis_stub, \"a\"",
    ".globl tamis_platform_stub_begin",
    "tamis_platform_stub_begin:",
    ".globl tamis_platform_stub_copy",
    "tamis_platform_stub_copy:",
    ".byte 0, 0, 0, 0, 0, 0, 0, 0",
    ".globl tamis_platform_stub_end",
    "tamis_platform_stub_end:",
    ".popsection",
);

// SAFETY: the blocks above define them.
unsafe extern "C" {
    static tamis_platform_stub_begin: u8;
    static tamis_platform_stub_copy: u8;
    static tamis_platform_stub_end: u8;
}

/// The code, for a table of threads at this address.
pub(crate) fn code(threads: u64) -> Vec<u8> {
    let begin = &raw const tamis_platform_stub_begin;
    let end = &raw const tamis_platform_stub_end;
    let len_bytes = end.addr() - begin.addr();
    // SAFETY: both symbols are of the block above, in this order, with read-only data between them.
    let bytes = unsafe { std::slice::from_raw_parts(begin, len_bytes) };
    let (text, _place) = bytes.split_at(len_bytes - size_of::<u64>());
    [text, &threads.to_le_bytes()].concat()
}

/// The offsets of the instruction that copies memory for the supervisor, and of the next one.
pub(crate) fn copy() -> (u64, u64) {
    /// The bytes of `rep movsb`.
    const LEN_BYTES: u64 = 2;
    let begin = &raw const tamis_platform_stub_begin;
    let copy = &raw const tamis_platform_stub_copy;
    let offset = (copy.addr() - begin.addr()) as u64;
    (offset, offset + LEN_BYTES)
}

/// The index of the first entry of a thread in the table, by its identification.
pub(crate) const fn entry_of(known_by: u64) -> usize {
    (known_by.wrapping_mul(MULTIPLIER) >> (64 - TABLE_BITS)) as usize
}

/// The bytes of the table.
pub(crate) const TABLE_BYTES: usize = ((1 << TABLE_BITS) + WINDOW) * ENTRY_BYTES;

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Code, Decoder, DecoderOptions, FlowControl};

    /// Checks that jumps stay inside, that addresses are those of its own data and the table of errors, and that only
    /// general registers are used.
    #[test]
    fn it_works_at_any_address() {
        let bytes = code(0x1234_5678_9abc);
        let text = &bytes[..bytes.len() - size_of::<u64>()];
        let data = [text.len() as u64, ERRORS_OFFSET as u64];
        let mut calls = 0;
        for insn in Decoder::with_ip(64, text, 0, DecoderOptions::NONE) {
            assert!(!insn.is_invalid());
            calls += usize::from(insn.code() == Code::Syscall);
            if insn.is_ip_rel_memory_operand() {
                assert!(data.contains(&insn.memory_displacement64()), "{insn}");
            }
            if matches!(
                insn.flow_control(),
                FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
            ) {
                assert!(insn.near_branch_target() < text.len() as u64, "{insn}");
            }
        }
        assert_eq!(calls, 4);
        assert_eq!(bytes[text.len()..], 0x1234_5678_9abc_u64.to_le_bytes());
        let (copy, next) = super::copy();
        assert_eq!(text[copy as usize..next as usize], [0xf3, 0xa4]);
        assert!(bytes.len() <= ERRORS_OFFSET);
    }
}
