//! Machine code, written from its last instruction to its first.
//!
//! Filters jump only forward, so when a jump is written its target is already there and the distance is known: every
//! jump has its shortest form, and nothing is corrected afterwards. A [`Label`] is therefore a distance from the end
//! of the code, which does not change while code is added before it. Whoever writes loops gives jumps backward the label
//! that the target had when the same code was written before.
//!
//! Many processors of Intel decode anew, each time, a line of 32 bytes in which a jump crosses the end of the line or ends with it
//! (erratum "jump conditional code"), and programs are mostly jumps. So code ends where a line ends in memory, and
//! [`Assembler::space_jumps`] puts instructions without effect behind jumps that would lie so, which takes a third of the time
//! off some programs on such a processor. Others haven't been measured.

use std::mem;

use crate::x86::{Condition, Encoded, Inst, Reg};

/// A place in code that is being written: before what had been written when it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// Bytes to the end of the code.
    to_end: usize,
    /// Whether jumps take their long form even where the short one would do.
    is_far: bool,
}

impl Label {
    fn new(to_end: usize) -> Label {
        Label {
            to_end,
            is_far: false,
        }
    }

    /// The same place for jumps in their long form.
    pub(crate) fn far(self) -> Label {
        Label {
            is_far: true,
            ..self
        }
    }
}

/// The place of an instruction in [`Code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryPoint {
    offset: usize,
}

/// Machine code without its memory. Only the emitter of this crate makes it.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    buffer: Vec<u8>,
    start: usize,
}

/// The bytes that must be free before an instruction is written: two writes of eight bytes.
const MARGIN_BYTES: usize = 16;

/// The bytes of a line of code, with whose end jumps don't end.
pub(crate) const LINE_BYTES: usize = 32;

/// Instructions without effect, of one to eight bytes, the first in the lowest bits.
const FILLERS: [u64; 8] = [
    0x90,
    0x9066,
    0x1f0f,
    0x40_1f0f,
    0x44_1f0f,
    0x441f_0f66,
    0x80_1f0f,
    0x84_1f0f,
];

/// Writes code backwards.
#[derive(Debug)]
pub(crate) struct Assembler {
    /// The code is at the end.
    buffer: Vec<u8>,
    /// The first byte of the code in the buffer.
    start: usize,
    /// Whether jumps don't cross or end with a line.
    is_spaced: bool,
    /// Whether a jump took its long form since that was last asked.
    has_far_jump: bool,
}

impl Assembler {
    /// No code yet, with room for this many bytes.
    pub(crate) fn with_capacity(room_bytes: usize) -> Assembler {
        let len = room_bytes + MARGIN_BYTES;
        Assembler {
            buffer: vec![0; len],
            start: len,
            is_spaced: false,
            has_far_jump: false,
        }
    }

    /// From here on no jump crosses the end of a line or ends with it.
    pub(crate) fn space_jumps(&mut self) {
        self.is_spaced = true;
    }

    /// The place before all that is written.
    #[inline]
    pub(crate) fn here(&self) -> Label {
        Label::new(self.buffer.len() - self.start)
    }

    /// Writes an instruction before all others.
    #[inline(always)]
    pub(crate) fn push(&mut self, inst: Inst) {
        let encoded = inst.encode();
        if matches!(inst, Inst::Return | Inst::CallFrom(_)) {
            self.space(encoded.len());
        }
        self.push_encoded(encoded);
    }

    #[inline(always)]
    fn push_encoded(&mut self, encoded: Encoded) {
        self.reserve();
        self.bytes(encoded.tail.value, encoded.tail.len as usize);
        self.bytes(encoded.head.value, encoded.head.len as usize);
    }

    /// A place just before here, for which every jump takes its short form.
    pub(crate) fn just_before(&self) -> Label {
        Label::new(self.here().to_end + 1)
    }

    /// Writes a jump, unless its target comes next anyway.
    #[inline]
    pub(crate) fn jump(&mut self, to: Label) {
        if self.distance(to) == 0 {
            return;
        }
        self.space_jump(to, 0, [2, 5]);
        self.reserve();
        let distance = self.distance(to);
        if self.reaches(to) {
            self.bytes(0xeb | u64::from(distance as u8) << 8, 2);
        } else {
            self.bytes(0xe9 | u64::from(distance as u32) << 8, 5);
            self.has_far_jump = true;
        }
    }

    /// Whether a jump that ends here takes its short form.
    #[inline]
    fn reaches(&self, to: Label) -> bool {
        !to.is_far && matches!(self.distance(to), -128..=127)
    }

    /// Whether a jump took its long form since this was asked before.
    pub(crate) fn take_far_jump(&mut self) -> bool {
        mem::take(&mut self.has_far_jump)
    }

    /// Writes a call of code in the same program.
    pub(crate) fn call(&mut self, to: Label) {
        self.space(5);
        let distance = self.distance(to);
        self.reserve();
        self.bytes(0xe8 | u64::from(distance as u32) << 8, 5);
    }

    /// Writes a jump for one value of a condition, and before it the instruction that decides about the condition: the
    /// processor runs both as one.
    #[inline(always)]
    pub(crate) fn jump_if(&mut self, compare: Inst, condition: Condition, to: Label) {
        self.jump_if_encoded(compare.encode(), condition, to);
    }

    /// The same for an instruction that is encoded where it is known which it is.
    fn jump_if_encoded(&mut self, compare: Encoded, condition: Condition, to: Label) {
        self.space_jump(to, compare.len(), [2, 6]);
        self.reserve();
        let condition = condition as u64;
        let distance = self.distance(to);
        if self.reaches(to) {
            self.bytes(0x70 | condition | u64::from(distance as u8) << 8, 2);
        } else {
            let opcode = 0x0f | (0x80 | condition) << 8;
            self.bytes(opcode | u64::from(distance as u32) << 16, 6);
            self.has_far_jump = true;
        }
        self.push_encoded(compare);
    }

    /// Writes jumps for both values of a condition, or one, and before them the instruction that decides.
    #[inline]
    pub(crate) fn branch(&mut self, compare: Inst, condition: Condition, yes: Label, no: Label) {
        let compare = compare.encode();
        if self.here() == yes {
            self.jump_if_encoded(compare, condition.inverted(), no);
        } else {
            self.jump(no);
            self.jump_if_encoded(compare, condition, yes);
        }
    }

    /// Makes room for a jump in its short or its long form and `before_bytes` that belong to it.
    #[inline]
    fn space_jump(&mut self, to: Label, before_bytes: usize, [short, long]: [usize; 2]) {
        while self.is_spaced {
            let len = before_bytes + if self.reaches(to) { short } else { long };
            if !self.space(len) {
                break;
            }
        }
    }

    /// Makes room for a jump of this length; whether it wasn't there.
    #[inline]
    fn space(&mut self, len_bytes: usize) -> bool {
        // The code ends with a line.
        let used = (self.buffer.len() - self.start) % LINE_BYTES;
        if !self.is_spaced || used > 0 && used + len_bytes <= LINE_BYTES {
            return false;
        }
        // One byte of the line before is enough: then the jump ends before it.
        let filler = if used == 0 { 1 } else { LINE_BYTES - used + 1 };
        self.fill(filler);
        true
    }

    /// Writes so many bytes without effect, in few instructions.
    #[cold]
    fn fill(&mut self, len_bytes: usize) {
        let mut left = len_bytes;
        while left > 0 {
            let part = left.min(FILLERS.len());
            self.reserve();
            self.bytes(FILLERS[part - 1], part);
            left -= part;
        }
    }

    /// The code.
    pub(crate) fn finish(self) -> Code {
        let Assembler { buffer, start, .. } = self;
        Code { buffer, start }
    }

    /// Bytes from here to a place, negative to one before.
    #[inline]
    fn distance(&self, to: Label) -> i32 {
        self.here().to_end as i32 - to.to_end as i32
    }

    #[inline(always)]
    fn reserve(&mut self) {
        if self.start < MARGIN_BYTES {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let len = self.buffer.len();
        let mut larger = vec![0; len];
        larger.extend_from_slice(&self.buffer);
        self.start += len;
        self.buffer = larger;
    }

    /// Writes up to eight bytes, the first in the lowest bits of the value. What is before them in the same eight
    /// bytes of the buffer is free and becomes 0.
    #[inline(always)]
    fn bytes(&mut self, value: u64, len: usize) {
        if len > 0 {
            let shifted = value << (64 - 8 * len);
            let place = &mut self.buffer[self.start - 8..self.start];
            place.copy_from_slice(&shifted.to_le_bytes());
            self.start -= len;
        }
    }
}

impl Code {
    /// The shortest code: it returns 0.
    pub(crate) fn of_return() -> Code {
        let mut assembler = Assembler::with_capacity(0);
        assembler.push(Inst::Return);
        assembler.push(Inst::Set(Reg::Rax, 0));
        assembler.finish()
    }

    /// The bytes, first to last.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// The entry point at a place of this code.
    pub(crate) fn entry(&self, label: Label) -> EntryPoint {
        let offset = self.bytes().len() - label.to_end;
        EntryPoint { offset }
    }
}

impl EntryPoint {
    /// The offset in the code, in bytes.
    #[inline]
    pub(crate) fn offset(self) -> usize {
        self.offset
    }
}
