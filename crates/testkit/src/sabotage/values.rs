//! Errors about the contents of registers and scratch memory.

use tamis_bpf::{AluOp, Op, Operand};

use super::{NOTHING, Sabotage, with, with_inserted};

const X32_BIT: u32 = 1 << 30;

pub(super) const ALL: [Sabotage; 12] = [
    Sabotage {
        name: "halves-swapped",
        change: |ops, pc| load(ops, pc, |offset| (offset >= 8).then_some(offset ^ 4)),
    },
    Sabotage {
        name: "neighbouring-argument",
        change: |ops, pc| load(ops, pc, |offset| (offset >= 16).then_some(offset + 8)),
    },
    Sabotage {
        name: "architecture-for-number",
        change: |ops, pc| load(ops, pc, |offset| (offset == 0).then_some(4)),
    },
    Sabotage {
        name: "number-without-x32-bit",
        change: |ops, pc| match ops[pc] {
            Op::LoadData(0) => {
                let mask = Op::Alu(AluOp::And, Operand::K(!X32_BIT));
                with_inserted(ops, pc + 1, mask)
            }
            _ => None,
        },
    },
    Sabotage {
        name: "reload-of-data-left-out",
        change: |ops, pc| match ops[pc] {
            Op::LoadData(_) if pc > 0 => with(ops, pc, NOTHING),
            _ => None,
        },
    },
    Sabotage {
        name: "reload-left-out-across-a-change",
        change: |ops, pc| match ops[pc] {
            Op::LoadMem(_) => with(ops, pc, NOTHING),
            _ => None,
        },
    },
    Sabotage {
        name: "x-not-reloaded",
        change: |ops, pc| match ops[pc] {
            Op::LoadXMem(_) | Op::LoadXImm(_) => with(ops, pc, NOTHING),
            _ => None,
        },
    },
    Sabotage {
        name: "wrong-slot-loaded",
        change: |ops, pc| match ops[pc] {
            Op::LoadMem(slot) => with(ops, pc, Op::LoadMem(slot ^ 1)),
            _ => None,
        },
    },
    Sabotage {
        name: "wrong-register-stored",
        change: |ops, pc| match ops[pc] {
            Op::Store(slot) => with(ops, pc, Op::StoreX(slot)),
            _ => None,
        },
    },
    Sabotage {
        name: "tax-for-txa",
        change: |ops, pc| match ops[pc] {
            Op::Txa => with(ops, pc, Op::Tax),
            _ => None,
        },
    },
    Sabotage {
        name: "txa-for-tax",
        change: |ops, pc| match ops[pc] {
            Op::Tax => with(ops, pc, Op::Txa),
            _ => None,
        },
    },
    Sabotage {
        name: "length-taken-for-zero",
        change: |ops, pc| match ops[pc] {
            Op::LoadLen => with(ops, pc, Op::LoadImm(0)),
            _ => None,
        },
    },
];

fn load(ops: &[Op], pc: usize, change: impl Fn(u32) -> Option<u32>) -> Option<Vec<Op>> {
    match ops[pc] {
        Op::LoadData(offset) => with(ops, pc, Op::LoadData(change(offset)?)),
        _ => None,
    }
}
