//! What of the machine's state an instruction may still use: A, X and the scratch slots.
//!
//! Known for an instruction as soon as it is known for those where it goes on, so one pass from the last to the first
//! computes it.

use tamis_bpf::{AluOp, Op, Operand};

/// A set of registers and slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live(u32);

impl Live {
    /// Nothing.
    pub(crate) const NONE: Live = Live(0);
    /// The register A.
    pub(crate) const A: Live = Live(1 << 16);
    /// The register X.
    pub(crate) const X: Live = Live(1 << 17);

    /// A scratch slot.
    pub(crate) const fn slot(slot: u32) -> Live {
        Live(1 << slot)
    }

    /// The members of either.
    #[must_use]
    pub(crate) const fn or(self, other: Live) -> Live {
        Live(self.0 | other.0)
    }

    /// Whether there is a common member.
    pub(crate) const fn meets(self, other: Live) -> bool {
        self.0 & other.0 != 0
    }

    /// What is used before an instruction, where `self` is used after it. `None` if the instruction has no effect but
    /// to write what nobody uses.
    #[inline]
    pub(crate) fn before(self, op: Op) -> Option<Live> {
        let (uses, writes) = match op {
            Op::LoadData(_) | Op::LoadImm(_) | Op::LoadLen => (Live::NONE, Live::A),
            Op::LoadMem(slot) => (Live::slot(slot), Live::A),
            Op::LoadXImm(_) | Op::LoadXLen => (Live::NONE, Live::X),
            Op::LoadXMem(slot) => (Live::slot(slot), Live::X),
            Op::Store(slot) => (Live::A, Live::slot(slot)),
            Op::StoreX(slot) => (Live::X, Live::slot(slot)),
            // May end the program.
            Op::Alu(AluOp::Div, Operand::X) => return Some(self.or(Live::A).or(Live::X)),
            Op::Alu(_, operand) => (Live::A.or(used(operand)), Live::A),
            Op::Neg => (Live::A, Live::A),
            Op::Tax => (Live::A, Live::X),
            Op::Txa => (Live::X, Live::A),
            Op::Jump(_) => return Some(self),
            Op::Branch { operand, .. } => return Some(self.or(Live::A).or(used(operand))),
            Op::RetImm(_) => return Some(Live::NONE),
            Op::RetA => return Some(Live::A),
        };
        self.meets(writes)
            .then_some(Live(self.0 & !writes.0).or(uses))
    }
}

fn used(operand: Operand) -> Live {
    match operand {
        Operand::X => Live::X,
        _ => Live::NONE,
    }
}
