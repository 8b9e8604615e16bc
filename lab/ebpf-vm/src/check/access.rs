//! The memory accesses of instructions, recorded while all paths are followed, for machine code.

use super::state::Region;
use crate::insn::Size;
use crate::program::Pc;

/// The memory access of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The instruction is never executed.
    Unreached,
    /// No memory.
    Nothing,
    /// The context at this offset, on every way.
    Context(usize),
    /// The stack.
    Stack,
    /// The context or the stack, or the context at several offsets.
    Varying,
}

/// The memory accesses of all instructions of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accesses {
    by_place: Vec<Access>,
    frames: usize,
    is_stack_used: bool,
    context_bytes: usize,
    is_context_written: bool,
}

impl Accesses {
    /// Of a program of this length without executed instructions.
    pub(super) fn none(len_insns: usize) -> Accesses {
        Accesses {
            by_place: vec![Access::Unreached; len_insns],
            frames: 1,
            is_stack_used: false,
            context_bytes: 0,
            is_context_written: false,
        }
    }

    /// Notes that an instruction is executed with so many frames.
    pub(super) fn reach(&mut self, pc: Pc, frames: usize) {
        self.frames = self.frames.max(frames);
        let access = &mut self.by_place[pc.0];
        if *access == Access::Unreached {
            *access = Access::Nothing;
        }
    }

    /// Notes a call of a helper, which may use the stack.
    pub(super) fn note_helper(&mut self) {
        self.is_stack_used = true;
    }

    /// Notes an access at an offset that is known for the context.
    pub(super) fn note(&mut self, pc: Pc, region: Region, offset: i64, size: Size, is_write: bool) {
        let access = match (region, usize::try_from(offset)) {
            (Region::Frame(_), _) => {
                self.is_stack_used = true;
                Access::Stack
            }
            (Region::Context, Ok(offset)) => {
                self.context_bytes = self.context_bytes.max(offset + size.bytes());
                self.is_context_written |= is_write;
                Access::Context(offset)
            }
            (Region::Context, Err(_)) => Access::Varying,
        };
        let known = &mut self.by_place[pc.0];
        *known = match *known {
            Access::Unreached | Access::Nothing => access,
            same if same == access => access,
            _ => Access::Varying,
        };
    }

    /// The memory access of the instruction at a place.
    ///
    /// # Panics
    /// If the place is outside of the program.
    pub fn at(&self, pc: Pc) -> Access {
        self.by_place[pc.0]
    }

    /// How many frames there are at most, 1 to 8.
    pub const fn frames(&self) -> usize {
        self.frames
    }

    /// Whether an instruction accesses the stack, or a helper may.
    pub const fn is_stack_used(&self) -> bool {
        self.is_stack_used
    }

    /// The bytes from the start of the context to the last one that is accessed.
    pub const fn context_bytes(&self) -> usize {
        self.context_bytes
    }

    /// Whether the context is written.
    pub const fn is_context_written(&self) -> bool {
        self.is_context_written
    }
}
