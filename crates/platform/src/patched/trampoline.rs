//! The machine code of one patched site.
//!
//! A trampoline has the replaced instructions, and between them the call. A table of 2^16 bytes, indexed by the low
//! half of the call's number, selects whether the supervisor may decide or the call is counted. If not, a `syscall`
//! lets the kernel decide, so a wrong entry costs time and never allows a call. Only `rcx` and `r11` change, as they do
//! at any call; flags, stack and red zone stay unchanged.
//!
//! Calls that are counted are made at a *gate*, a `syscall` at an address that the filter recognises.

use crate::patched::site::{JUMP_BYTES, SYSCALL_BYTES, Window};

/// A trampoline's code, and the offset where it continues the replaced instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trampoline {
    pub(crate) code: Vec<u8>,
    /// The offset after its `syscall`.
    pub(crate) resume: usize,
}

/// The addresses that a trampoline uses, all within 2 GiB of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// The trampoline's address.
    pub(crate) own: u64,
    /// The table of numbers.
    pub(crate) numbers: u64,
    /// The address of the replaced instructions.
    pub(crate) window: u64,
}

/// The addresses that a counting trampoline uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CounterAddresses {
    /// The counts, by the calls' numbers.
    pub(crate) counts: u64,
    /// The number of counts.
    pub(crate) numbers: u32,
    /// A [gate].
    pub(crate) gate: u64,
}

impl Trampoline {
    /// The trampoline of a window that hands calls over by the code at an address; `None` if a distance is too large.
    pub(crate) fn asking(window: &Window, places: &Places, ask: u64) -> Option<Trampoline> {
        let mut asking = Vec::new();
        // lea r11, [resume]
        asking.extend([0x4c, 0x8d, 0x1d]);
        asking.extend(((JUMP_BYTES + SYSCALL_BYTES) as i32).to_le_bytes());
        let jump_at = window.before.len() + CHOICE_BYTES + asking.len();
        asking.extend(jump(places.own, jump_at, ask)?);
        Trampoline::with(window, places, &asking)
    }

    /// The trampoline of a window that counts a call and makes it at a gate; `None` if a distance is too large.
    pub(crate) fn counting(
        window: &Window,
        places: &Places,
        counted: &CounterAddresses,
    ) -> Option<Trampoline> {
        // lea rsp, [rsp - 128]: below the red zone
        const DOWN: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 0x80];
        // popfq; lea rsp, [rsp + 128]
        const UP: [u8; 9] = [0x9d, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];
        // jmp [rip + 0], with the address behind it
        const FAR: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0];
        let mut made = Vec::new();
        // lock inc qword ptr [r11 + 8 rcx]
        made.extend([0xf0, 0x49, 0xff, 0x04, 0xcb]);
        made.extend(UP);
        made.extend(FAR);
        made.extend(counted.gate.to_le_bytes());
        let mut code = DOWN.to_vec();
        // pushfq; mov ecx, eax
        code.extend([0x9c, 0x89, 0xc1]);
        // mov r11, counts
        code.extend([0x49, 0xbb]);
        code.extend(counted.counts.to_le_bytes());
        // cmp ecx, numbers: the table goes by the lower half alone
        code.extend([0x81, 0xf9]);
        code.extend(counted.numbers.to_le_bytes());
        // jae to the other numbers
        code.extend([0x73, made.len() as u8]);
        code.extend(made);
        code.extend(UP);
        Trampoline::with(window, places, &code)
    }

    /// The trampoline that runs this code, which ends before a `syscall`, for the numbers that the table selects.
    fn with(window: &Window, places: &Places, chosen: &[u8]) -> Option<Trampoline> {
        let mut code = window.before.clone();
        // movzx ecx, ax
        code.extend([0x0f, 0xb7, 0xc8]);
        // lea r11, [numbers]
        code.extend([0x4c, 0x8d, 0x1d]);
        code.extend(distance(places.own, code.len() + 4, places.numbers)?);
        // movzx ecx, byte ptr [r11 + rcx]
        code.extend([0x41, 0x0f, 0xb6, 0x0c, 0x0b]);
        // jrcxz to the `syscall`
        code.extend([0xe3, chosen.len() as u8]);
        debug_assert_eq!(code.len(), window.before.len() + CHOICE_BYTES);
        code.extend(chosen);
        code.extend([0x0f, 0x05]);
        let resume = code.len();
        code.extend(&window.after);
        let back = places.window + window.len_bytes() as u64;
        code.extend(jump(places.own, code.len(), back)?);
        Some(Trampoline { code, resume })
    }

    /// The offset in the trampoline of an offset in its window that is a boundary between instructions.
    pub(crate) const fn moved(&self, window: &Window, offset: usize) -> usize {
        let site = window.before.len();
        if offset <= site {
            offset
        } else {
            self.resume + offset - site - SYSCALL_BYTES
        }
    }
}

/// The size of the code that looks up a number in the table.
const CHOICE_BYTES: usize = 17;
/// The size of a gate.
pub(crate) const GATE_BYTES: usize = 16;

/// A `syscall`, and a jump to the address where a trampoline continues behind its own.
pub(crate) fn gate(resume: u64) -> [u8; GATE_BYTES] {
    // syscall; jmp [rip + 0], with the address behind it
    const CODE: [u8; 8] = [0x0f, 0x05, 0xff, 0x25, 0, 0, 0, 0];
    let mut bytes = [0; GATE_BYTES];
    bytes[..CODE.len()].copy_from_slice(&CODE);
    bytes[CODE.len()..].copy_from_slice(&resume.to_le_bytes());
    bytes
}

/// The bytes that replace a window: the jump, and traps for any other way in.
pub(crate) fn patch(window: &Window, places: &Places) -> Option<Vec<u8>> {
    const TRAP: u8 = 0xcc;
    let mut bytes = jump(places.window, 0, places.own)?.to_vec();
    bytes.resize(window.len_bytes(), TRAP);
    Some(bytes)
}

/// A `jmp` at an offset of code at an address.
fn jump(own: u64, offset: usize, to: u64) -> Option<[u8; JUMP_BYTES]> {
    let [a, b, c, d] = distance(own, offset + JUMP_BYTES, to)?;
    Some([0xe9, a, b, c, d])
}

/// The distance from the end of an instruction.
fn distance(own: u64, end: usize, to: u64) -> Option<[u8; 4]> {
    let distance = to.wrapping_sub(own + end as u64) as i64;
    Some(i32::try_from(distance).ok()?.to_le_bytes())
}
