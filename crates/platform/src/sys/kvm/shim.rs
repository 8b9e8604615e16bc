//! The code that leaves the guest's machine, and the processor's tables for it.
//!
//! A call enters the shim by `LSTAR`: one instruction leaves the machine, the next returns to the guest by a frame that
//! the monitor has written. An exception enters a stub that provides its number. KVMs differ in the privilege level of
//! calls in the shim, so all of it works at both levels, and no code relies on the address that an exit reports.

use super::area::{Exit, PAGE, State, pointer};

/// The port of calls.
pub(super) const CALL_PORT: u16 = 0x10;
/// The port of exceptions.
pub(super) const EXCEPTION_PORT: u16 = 0x11;
/// An address without memory in the guest's machine, both physical and linear.
pub(super) const NO_MEMORY: u64 = 0x30_0000;
/// The offsets in the page of the shim: the exit of a call, the return, and the stubs of exceptions.
const RETURN: u64 = 16;
const STUBS: u64 = 64;
const STUB_BYTES: u64 = 8;
const EXCEPTIONS: u64 = 32;
/// `iretq`.
const IRETQ: [u8; 2] = [0x48, 0xcf];

pub(super) const CODE_SELECTOR: u16 = 0x2b;
pub(super) const STACK_SELECTOR: u16 = 0x23;
pub(super) const TASK_SELECTOR: u16 = 0x30;
pub(super) const GDT_BYTES: u64 = 0x40;
/// The offset of the task state in the first page of a thread.
const TASK: u64 = 0x100;
/// The task state, and permissions for the first ports with the byte that ends them.
pub(super) const TASK_BYTES: u64 = 104 + 4;
/// The offset of return frames in their page.
pub(super) const FRAME: u64 = 0x800;

/// The address of the return.
pub(super) fn return_at(state: &State) -> u64 {
    state.shim() + RETURN
}

/// The linear address of the page without memory.
pub(super) fn no_memory(state: &State) -> u64 {
    state.shim() - PAGE
}

/// The address of the task state of a thread.
pub(super) fn task_state(state: &State, index: usize) -> u64 {
    state.vcpu_pages(index) + TASK
}

/// The end of the stack for exceptions.
pub(super) fn exception_stack(state: &State, index: usize) -> u64 {
    state.vcpu_pages(index) + PAGE
}

/// Writes the shim and the table of interrupts.
pub(super) fn write(state: &State, exit: Exit) {
    let base = state.shim();
    let put = |at: u64, bytes: &[u8]| {
        // SAFETY: inside the page of the shim, which is the monitor's alone.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), pointer(base + at), bytes.len()) };
    };
    match exit {
        Exit::Halt => put(0, &[0xf4, 0xeb, (RETURN - 3) as u8]),
        Exit::Port => put(0, &[0xe6, CALL_PORT as u8, 0xeb, (RETURN - 4) as u8]),
        Exit::Memory => {
            // mov [address], al
            put(0, &[0xa2]);
            put(1, &no_memory(state).to_le_bytes());
            put(9, &[0xeb, (RETURN - 11) as u8]);
        }
    }
    put(RETURN, &IRETQ);
    for vector in 0..EXCEPTIONS {
        // push vector; out port, al; then unreachable
        let stub = [0x6a, vector as u8, 0xe6, EXCEPTION_PORT as u8, 0x0f, 0x0b];
        put(STUBS + vector * STUB_BYTES, &stub);
        /// All code may use the instruction `int3`.
        const BREAKPOINT: u64 = 3;
        let access: u64 = if vector == BREAKPOINT { 0xee } else { 0x8e };
        let target = base + STUBS + vector * STUB_BYTES;
        let low = target & 0xffff | 0x08 << 16 | access << 40 | (target >> 16 & 0xffff) << 48;
        // SAFETY: inside the page of the table.
        unsafe { pointer::<[u64; 2]>(state.idt() + 16 * vector).write([low, target >> 32]) };
    }
}

/// The bytes of the table of interrupts.
pub(super) const IDT_BYTES: u64 = EXCEPTIONS * 16;

/// Whether the processor pushes an error code for an exception.
pub(super) const fn has_error_code(vector: u64) -> bool {
    matches!(vector, 8 | 10..=14 | 17 | 21 | 29 | 30)
}

/// Writes the descriptors and the task state of a thread.
pub(super) fn write_task(state: &State, index: usize) {
    let page = state.vcpu_pages(index);
    let task = task_state(state, index);
    let limit = TASK_BYTES - 1;
    let low = limit | (task & 0xff_ffff) << 16 | 0x89 << 40 | (task >> 24 & 0xff) << 56;
    let descriptors = [
        0,
        0x00af_9b00_0000_ffff,
        0x00cf_9300_0000_ffff,
        0,
        0x00cf_f300_0000_ffff,
        0x00af_fb00_0000_ffff,
        low,
        task >> 32,
    ];
    // SAFETY: inside the thread's first page.
    unsafe {
        pointer::<[u64; 8]>(page).write(descriptors);
        pointer::<u64>(task + 4).write_unaligned(exception_stack(state, index));
        pointer::<u16>(task + 102).write_unaligned(104);
        // A bit for each port: the two of the shim are permitted.
        let ports = !(1_u32 << CALL_PORT | 1 << EXCEPTION_PORT);
        pointer::<u32>(task + 104).write_unaligned(ports | 0xff00_0000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::kvm::area::Area;
    use iced_x86::{Code, Decoder, DecoderOptions, Instruction};

    fn decode(state: &State, at: u64) -> [Instruction; 2] {
        // SAFETY: inside the page of the shim, which this test has written.
        let bytes = unsafe { std::slice::from_raw_parts(pointer::<u8>(at), 16) };
        let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        assert!((state.shim()..state.shim() + PAGE).contains(&at));
        [decoder.decode(), decoder.decode()]
    }

    #[test]
    fn calls_leave_and_return() {
        for (exit, code) in [
            (Exit::Halt, Code::Hlt),
            (Exit::Port, Code::Out_imm8_AL),
            (Exit::Memory, Code::Mov_moffs8_AL),
        ] {
            let area = Area::new().unwrap();
            // SAFETY: mapped, and of zeros.
            let state = unsafe { &*area.state() };
            write(state, exit);
            let [first, next] = decode(state, state.shim());
            assert_eq!(first.code(), code);
            if exit == Exit::Memory {
                assert_eq!(first.memory_displacement64(), no_memory(state));
            }
            assert_eq!(next.near_branch_target(), return_at(state));
            assert_eq!(decode(state, return_at(state))[0].code(), Code::Iretq);
        }
    }

    #[test]
    fn exceptions_say_which_they_are() {
        let area = Area::new().unwrap();
        // SAFETY: as above.
        let state = unsafe { &*area.state() };
        write(state, Exit::Port);
        for vector in 0..EXCEPTIONS {
            // SAFETY: an entry of the table.
            let [low, high] = unsafe { pointer::<[u64; 2]>(state.idt() + 16 * vector).read() };
            let target = low & 0xffff | low >> 32 & 0xffff_0000 | high << 32;
            let [push, out] = decode(state, target);
            assert_eq!((push.code(), push.immediate(0)), (Code::Pushq_imm8, vector));
            assert_eq!(out.code(), Code::Out_imm8_AL);
            assert_eq!(u16::from(out.immediate8()), EXCEPTION_PORT);
        }
    }
}
