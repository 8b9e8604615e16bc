//! Liveness: the parts of the machine's state that an instruction may still use: A, X and the scratch slots.
//!
//! The state before an instruction follows from that before its successors, so one pass from the last to the first
//! computes it.

use crate::insn::{AluOp, Operand, Operation};

/// A set of registers and slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live(u32);

impl Live {
    /// Nothing.
    pub const NONE: Live = Live(0);
    /// The register A.
    pub const A: Live = Live(1 << 16);
    /// The register X.
    pub const X: Live = Live(1 << 17);

    /// A scratch slot.
    pub const fn slot(slot: u32) -> Live {
        Live(1 << slot)
    }

    /// The members of either.
    #[must_use]
    pub const fn or(self, other: Live) -> Live {
        Live(self.0 | other.0)
    }

    /// Whether there is a common member.
    pub const fn meets(self, other: Live) -> bool {
        self.0 & other.0 != 0
    }

    /// The members of `self` that aren't in the other set.
    #[must_use]
    pub const fn without(self, other: Live) -> Live {
        Live(self.0 & !other.0)
    }

    /// The state that is live before an instruction if `self` is live after it. The instruction is one that both
    /// machines have and loads nothing from the input. `None` if it only writes unused state.
    #[inline]
    pub fn before<L: Copy, E: Copy>(self, op: Operation<L, E>) -> Option<Live> {
        let (uses, writes) = match op {
            Operation::LoadImm(_) | Operation::LoadLen => (Live::NONE, Live::A),
            Operation::LoadMem(slot) => (Live::slot(slot), Live::A),
            Operation::LoadXImm(_) | Operation::LoadXLen => (Live::NONE, Live::X),
            Operation::LoadXMem(slot) => (Live::slot(slot), Live::X),
            Operation::Store(slot) => (Live::A, Live::slot(slot)),
            Operation::StoreX(slot) => (Live::X, Live::slot(slot)),
            // May end the program.
            Operation::Alu(AluOp::Div, Operand::X) => return Some(self.or(Live::A).or(Live::X)),
            Operation::Alu(_, operand) => (Live::A.or(Live::from_operand(operand)), Live::A),
            Operation::Neg => (Live::A, Live::A),
            Operation::Tax => (Live::A, Live::X),
            Operation::Txa => (Live::X, Live::A),
            Operation::Branch { operand, .. } => {
                return Some(self.or(Live::A).or(Live::from_operand(operand)));
            }
            Operation::RetImm(_) => return Some(Live::NONE),
            Operation::RetA => return Some(Live::A),
            Operation::Jump(_) | Operation::LoadData(_) | Operation::Extra(_) => {
                return Some(self);
            }
        };
        self.meets(writes).then_some(self.without(writes).or(uses))
    }

    /// The state that an operand uses.
    pub const fn from_operand(operand: Operand) -> Live {
        match operand {
            Operand::X => Live::X,
            _ => Live::NONE,
        }
    }
}
