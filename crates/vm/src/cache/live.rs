//! What matters at an instruction: the registers and slots that may be read before they are written.

use tamis_bpf::{AluOp, Op, Operand};

/// A set of registers and slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Live {
    /// Whether A matters.
    pub(super) a: bool,
    /// Whether X matters.
    pub(super) x: bool,
    /// A bit for each slot that matters.
    pub(super) slots: u16,
}

/// What matters before each instruction of a valid program. Linear: jumps go forward.
pub(super) fn live(ops: &[Op]) -> Vec<Live> {
    let mut before = vec![Live::default(); ops.len() + 1];
    for (pc, op) in ops.iter().enumerate().rev() {
        let behind = before[pc + 1];
        let after = match *op {
            Op::RetImm(_) | Op::RetA => Live::default(),
            Op::Jump(skip) => before[pc + 1 + skip as usize],
            Op::Branch { jt, jf, .. } => {
                let [yes, no] = [jt, jf].map(|skip| before[pc + 1 + usize::from(skip)]);
                Live {
                    a: yes.a || no.a,
                    x: yes.x || no.x,
                    slots: yes.slots | no.slots,
                }
            }
            _ => behind,
        };
        before[pc] = before_op(*op, after);
    }
    before.truncate(ops.len());
    before
}

fn before_op(op: Op, after: Live) -> Live {
    let bit = |slot: u32| 1u16 << (slot & 15);
    let reads_x = |operand: Operand| operand == Operand::X;
    match op {
        Op::LoadData(_) | Op::LoadImm(_) | Op::LoadLen => Live { a: false, ..after },
        Op::LoadMem(slot) => Live {
            a: false,
            slots: after.slots | bit(slot),
            ..after
        },
        Op::LoadXImm(_) | Op::LoadXLen => Live { x: false, ..after },
        Op::LoadXMem(slot) => Live {
            x: false,
            slots: after.slots | bit(slot),
            ..after
        },
        Op::Store(slot) => Live {
            a: true,
            slots: after.slots & !bit(slot),
            ..after
        },
        Op::StoreX(slot) => Live {
            x: true,
            slots: after.slots & !bit(slot),
            ..after
        },
        // By zero it ends the program, whether or not the quotient matters.
        Op::Alu(AluOp::Div, operand) => Live {
            a: true,
            x: after.x || reads_x(operand),
            ..after
        },
        Op::Alu(_, operand) => Live {
            x: after.x || (after.a && reads_x(operand)),
            ..after
        },
        Op::Branch { operand, .. } => Live {
            a: true,
            x: after.x || reads_x(operand),
            ..after
        },
        Op::Neg | Op::Jump(_) | Op::RetImm(_) => after,
        Op::RetA => Live { a: true, ..after },
        Op::Tax => Live {
            a: after.a || after.x,
            x: false,
            ..after
        },
        Op::Txa => Live {
            a: false,
            x: after.x || after.a,
            ..after
        },
    }
}
