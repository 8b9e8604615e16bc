//! Liveness: the places that may be read before they are written again.

use tamis_bpf::cfg::{Block, BlockId, End};
use tamis_bpf::{AluOp, Op, Operand};

use super::value::Place;

/// A set of places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live(u32);

impl Live {
    /// Whether the place is in the set.
    pub fn contains(self, place: Place) -> bool {
        self.0 & bit(place) != 0
    }

    /// The places of the set.
    pub fn places(self) -> impl Iterator<Item = Place> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let index = (rest != 0).then(|| rest.trailing_zeros())?;
            rest &= rest - 1;
            Some(match index {
                0 => Place::A,
                1 => Place::X,
                _ => Place::Memory(index - 2),
            })
        })
    }

    /// The places read from the end of a block on, given those read on entry to each block.
    pub fn at_end(end: End, entries: &[Live]) -> Live {
        let entry = |id: BlockId| entries[id.index()].0;
        Live(match end {
            End::Ret(_) => 0,
            End::RetA => bit(Place::A),
            End::Goto(next) => entry(next),
            End::Branch {
                operand, yes, no, ..
            } => bit(Place::A) | read_by(operand) | entry(yes) | entry(no),
        })
    }

    /// The places read from an instruction on, given those read after it.
    pub fn before(self, op: Op) -> Live {
        Live(self.0 & !bit(written_by(op)) | reads(op))
    }

    /// The places read before a list of instructions, given those read after it.
    pub fn before_all(self, ops: &[Op]) -> Live {
        ops.iter().rev().fold(self, |live, op| live.before(*op))
    }

    /// The places of both sets.
    pub const fn with(self, other: Live) -> Live {
        Live(self.0 | other.0)
    }

    /// Records the places read on entry to a block whose successors have been recorded.
    pub fn note(entries: &mut [Live], id: BlockId, block: &Block) {
        entries[id.index()] = Live::at_end(block.end, entries).before_all(&block.ops);
    }
}

/// The place that an instruction writes; every instruction of a block writes one.
pub fn written_by(op: Op) -> Place {
    match op {
        Op::LoadXImm(_) | Op::LoadXMem(_) | Op::LoadXLen | Op::Tax => Place::X,
        Op::Store(slot) | Op::StoreX(slot) => Place::Memory(slot),
        _ => Place::A,
    }
}

/// Whether the instruction may end the program, by a division by zero.
pub fn may_end(op: Op) -> bool {
    matches!(op, Op::Alu(AluOp::Div, Operand::X))
}

fn reads(op: Op) -> u32 {
    match op {
        Op::LoadMem(slot) | Op::LoadXMem(slot) => bit(Place::Memory(slot)),
        Op::Store(_) | Op::Neg | Op::Tax => bit(Place::A),
        Op::StoreX(_) | Op::Txa => bit(Place::X),
        Op::Alu(_, operand) => bit(Place::A) | read_by(operand),
        _ => 0,
    }
}

fn read_by(operand: Operand) -> u32 {
    match operand {
        Operand::K(_) | Operand::Variable(_) => 0,
        Operand::X => bit(Place::X),
    }
}

fn bit(place: Place) -> u32 {
    match place {
        Place::A => 1,
        Place::X => 2,
        // Scratch memory has sixteen words.
        Place::Memory(slot) => 4 << (slot & 15),
    }
}
