//! What of the machine's state an instruction may still use: A, X and the scratch slots.
//!
//! Known for an instruction as soon as it is known for those where it goes on, so one pass from the last to the first
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

    /// What is used before an instruction that both machines have and that loads nothing from the input, where `self`
    /// is used after it. `None` if the instruction has no effect but to write what nobody uses.
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
            Operation::Alu(_, operand) => (Live::A.or(Live::of(operand)), Live::A),
            Operation::Neg => (Live::A, Live::A),
            Operation::Tax => (Live::A, Live::X),
            Operation::Txa => (Live::X, Live::A),
            Operation::Branch { operand, .. } => {
                return Some(self.or(Live::A).or(Live::of(operand)));
            }
            Operation::RetImm(_) => return Some(Live::NONE),
            Operation::RetA => return Some(Live::A),
            Operation::Jump(_) | Operation::LoadData(_) | Operation::Extra(_) => {
                return Some(self);
            }
        };
        self.meets(writes).then_some(self.without(writes).or(uses))
    }

    /// What an operand uses.
    pub const fn of(operand: Operand) -> Live {
        match operand {
            Operand::X => Live::X,
            _ => Live::NONE,
        }
    }
}
