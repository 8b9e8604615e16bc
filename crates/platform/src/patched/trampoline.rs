//! The machine code of one patched site.
//!
//! A trampoline has the instructions that gave way, and between them the call: whether the supervisor may be asked about
//! a number is read from a table of 2^16 bytes, by its low half. If not, a `syscall` lets the kernel decide, so an entry
//! that is wrong costs time and never allows anything. Only `rcx` and `r11` change, as they do at any call; flags,
//! stack and red zone stay as they are.

use crate::patched::site::{JUMP_BYTES, SYSCALL_BYTES, Window};

/// A trampoline's code, and where it continues what gave way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trampoline {
    pub(crate) code: Vec<u8>,
    /// The offset after its `syscall`.
    pub(crate) resume: usize,
}

/// The addresses that a trampoline uses, all within 2 GiB of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// Its own.
    pub(crate) own: u64,
    /// The table of numbers.
    pub(crate) numbers: u64,
    /// The code that asks the supervisor.
    pub(crate) ask: u64,
    /// What gives way.
    pub(crate) window: u64,
}

impl Trampoline {
    /// The trampoline of a window; `None` if something is too far away.
    pub(crate) fn new(window: &Window, places: &Places) -> Option<Trampoline> {
        /// `jrcxz` skips these.
        const ASKING_BYTES: u8 = 12;
        let mut code = window.before.clone();
        // movzx ecx, ax
        code.extend([0x0f, 0xb7, 0xc8]);
        // lea r11, [numbers]
        code.extend([0x4c, 0x8d, 0x1d]);
        code.extend(distance(places.own, code.len() + 4, places.numbers)?);
        // movzx ecx, byte ptr [r11 + rcx]
        code.extend([0x41, 0x0f, 0xb6, 0x0c, 0x0b]);
        code.extend([0xe3, ASKING_BYTES]);
        // lea r11, [resume]
        code.extend([0x4c, 0x8d, 0x1d]);
        code.extend(((JUMP_BYTES + SYSCALL_BYTES) as i32).to_le_bytes());
        code.extend(jump(places.own, code.len(), places.ask)?);
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

/// The bytes that take a window's place: the jump, and traps for whoever comes another way.
pub(crate) fn patch(window: &Window, places: &Places) -> Option<Vec<u8>> {
    const TRAP: u8 = 0xcc;
    let mut bytes = jump(places.window, 0, places.own)?.to_vec();
    bytes.resize(window.len_bytes(), TRAP);
    Some(bytes)
}

/// `jmp` from an offset of code at an address.
fn jump(own: u64, offset: usize, to: u64) -> Option<[u8; JUMP_BYTES]> {
    let [a, b, c, d] = distance(own, offset + JUMP_BYTES, to)?;
    Some([0xe9, a, b, c, d])
}

/// The distance from the end of an instruction.
fn distance(own: u64, end: usize, to: u64) -> Option<[u8; 4]> {
    let distance = to.wrapping_sub(own + end as u64) as i64;
    Some(i32::try_from(distance).ok()?.to_le_bytes())
}
