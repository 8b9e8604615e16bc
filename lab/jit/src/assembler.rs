//! Machine code, written from its last instruction to its first.
//!
//! Filters jump only forward, so when a jump is written its target is already there and the distance is known: every
//! jump has its shortest form, and nothing is corrected afterwards. A [`Label`] is therefore a distance from the end of
//! the code, which does not change while code is added before it. Backward jumps of loops use the label of their target
//! from a previous round of writing the same code.
//!
//! Many processors of Intel decode anew, each time, a line of 32 bytes in which a jump crosses the end of the line or ends with it
//! (erratum "jump conditional code"), and programs are mostly jumps. So code ends where a line ends in memory, and
//! [`Assembler::space_jumps`] puts instructions without effect behind jumps that would lie so, which takes a third of the time
//! off some programs on such a processor. Others haven't been measured.

use std::mem;

use crate::x86::{Condition, Encoded, Inst, Reg};

/// A place in code that is being written: before the code that existed when it was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// Bytes to the end of the code, and [`FAR`] if jumps take their long form even where the short one would do.
    to_end: u32,
}

/// Makes every distance too long for the short form of a jump.
const FAR: u32 = 1 << 31;

impl Label {
    /// The same place for jumps in their long form.
    pub(crate) fn far(self) -> Label {
        Label {
            to_end: self.to_end | FAR,
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

/// The bytes that must be free before something is written.
const MARGIN_BYTES: usize = 8;

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
    /// All bits of the distances of jumps with the long form since the last query. A backward jump has the highest.
    far_distances: u32,
}

impl Assembler {
    /// No code yet, with room for this many bytes.
    pub(crate) fn with_capacity(room_bytes: usize) -> Assembler {
        let len = room_bytes + MARGIN_BYTES;
        Assembler {
            buffer: vec![0; len],
            start: len,
            is_spaced: false,
            far_distances: 0,
        }
    }

    /// From here on no jump crosses the end of a line or ends with it.
    pub(crate) fn space_jumps(&mut self) {
        self.is_spaced = true;
    }

    /// The place before all that is written.
    #[inline]
    pub(crate) fn here(&self) -> Label {
        Label {
            to_end: (self.buffer.len() - self.start) as u32,
        }
    }

    /// Writes an instruction before all others.
    #[inline(always)]
    pub(crate) fn push(&mut self, inst: Inst) {
        let encoded = inst.encode();
        if matches!(inst, Inst::Return | Inst::CallFrom(_)) {
            self.space(encoded.len);
        }
        self.write(encoded);
    }

    /// A place just before here; every jump to it has the short form.
    pub(crate) fn just_before(&self) -> Label {
        Label {
            to_end: self.here().to_end + 1,
        }
    }

    /// Writes a jump, unless its target comes next anyway.
    #[inline]
    pub(crate) fn jump(&mut self, to: Label) {
        if self.distance(to) != 0 {
            self.jump_away(to);
        }
    }

    /// Writes a jump.
    #[inline(never)]
    fn jump_away(&mut self, to: Label) {
        let is_short = self.space_jump(to, 0, [2, 5]);
        let distance = self.distance(to);
        if is_short {
            self.bytes(0xeb | u64::from(distance as u8) << 8, 2);
        } else {
            self.bytes(0xe9 | u64::from(distance) << 8, 5);
            self.far_distances |= distance;
        }
    }

    /// Whether a backward jump has used the long form since the last query.
    pub(crate) fn take_far_jump_back(&mut self) -> bool {
        (mem::take(&mut self.far_distances) as i32) < 0
    }

    /// Writes a call of code in the same program.
    pub(crate) fn call(&mut self, to: Label) {
        self.space(5);
        let distance = self.distance(to);
        self.bytes(0xe8 | u64::from(distance) << 8, 5);
    }

    /// Writes a jump for one value of a condition, and before it the instruction that decides about the condition: the
    /// processor runs both as one.
    #[inline(always)]
    pub(crate) fn jump_if(&mut self, compare: Inst, condition: Condition, to: Label) {
        self.jump_if_encoded(compare.encode(), condition, to);
    }

    /// The same for an instruction that is encoded where it is known which it is.
    #[inline(always)]
    fn jump_if_encoded(&mut self, compare: Encoded, condition: Condition, to: Label) {
        let is_short = self.space_jump(to, compare.len, [2, 6]);
        let condition = condition as u64;
        let distance = self.distance(to);
        if is_short {
            let jump = 0x70 | condition | u64::from(distance as u8) << 8;
            // Most comparisons and their jumps are eight bytes together.
            if compare.len <= 6 {
                let both = compare.value as u64 | jump << (8 * compare.len);
                return self.bytes(both, compare.len + 2);
            }
            self.bytes(jump, 2);
        } else {
            self.bytes(0x800f | condition << 8 | u64::from(distance) << 16, 6);
            self.far_distances |= distance;
        }
        self.write(compare);
    }

    /// Writes jumps for both values of a condition, or one, and before them the instruction that decides.
    #[inline(always)]
    pub(crate) fn branch(&mut self, compare: Encoded, condition: Condition, yes: Label, no: Label) {
        let (condition, to) = if self.here() == yes {
            (condition.inverted(), no)
        } else {
            self.jump(no);
            (condition, yes)
        };
        self.jump_if_encoded(compare, condition, to);
    }

    /// Makes room for a jump in its short or its long form and `before_bytes` that belong to it; whether it takes the short one.
    #[inline]
    fn space_jump(&mut self, to: Label, before_bytes: usize, [short, long]: [usize; 2]) -> bool {
        let is_short = self.reaches(to);
        let is_moved = self.space(before_bytes + if is_short { short } else { long });
        if is_moved { self.reaches(to) } else { is_short }
    }

    /// Whether a jump that ends here takes its short form.
    #[inline]
    fn reaches(&self, to: Label) -> bool {
        let distance = self.here().to_end.wrapping_sub(to.to_end) as i32;
        matches!(distance, -128..=127)
    }

    /// Makes room for a jump of this length, or any other: space for one is space for all, as the line is empty then but
    /// for one byte. Whether there was none.
    #[inline]
    fn space(&mut self, len_bytes: usize) -> bool {
        // The code ends with a line.
        let used = self.here().to_end as usize % LINE_BYTES;
        // In an empty line the jump would end with it: `used - 1` is the largest number there.
        let has_room = used.wrapping_sub(1) < LINE_BYTES - len_bytes;
        let is_moved = self.is_spaced && !has_room;
        if is_moved {
            // One byte of the line before is enough: then the jump ends before it.
            self.fill((LINE_BYTES - used) % LINE_BYTES + 1);
        }
        is_moved
    }

    /// Writes so many bytes without effect, in few instructions.
    fn fill(&mut self, mut len_bytes: usize) {
        let longest = FILLERS.len();
        while len_bytes > longest {
            self.bytes(FILLERS[longest - 1], longest);
            len_bytes -= longest;
        }
        self.bytes(FILLERS[len_bytes - 1], len_bytes);
    }

    /// The code.
    pub(crate) fn finish(self) -> Code {
        let Assembler { buffer, start, .. } = self;
        Code { buffer, start }
    }

    /// Bytes from here to a place, in two's complement.
    #[inline]
    fn distance(&self, to: Label) -> u32 {
        self.here().to_end.wrapping_sub(to.to_end & !FAR)
    }

    #[cold]
    fn write_in_more_space(&mut self, value: u64, len: usize) {
        let used = self.buffer.len();
        let mut larger = vec![0; used + MARGIN_BYTES];
        larger.extend_from_slice(&self.buffer);
        self.start += used + MARGIN_BYTES;
        self.buffer = larger;
        self.bytes(value, len);
    }

    /// Writes an instruction before all others.
    #[inline(always)]
    fn write(&mut self, Encoded { value, len }: Encoded) {
        let mut first = len;
        if len > 8 {
            first = 8;
            self.bytes((value >> 64) as u64, len - 8);
        }
        self.bytes(value as u64, first);
    }

    /// Writes one to eight bytes, the first in the lowest bits of the value. The preceding bytes in the same eight
    /// bytes of the buffer are free and become 0.
    #[inline(always)]
    fn bytes(&mut self, value: u64, len: usize) {
        let written = self.buffer.get_mut(..self.start);
        let Some(place) = written.and_then(<[u8]>::last_chunk_mut::<8>) else {
            return self.write_in_more_space(value, len);
        };
        *place = (value << (64 - 8 * len)).to_le_bytes();
        self.start -= len;
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
        let offset = self.bytes().len() - label.to_end as usize;
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
