//! Errors in arithmetic and masks.

use tamis_bpf::{AluOp, Op, Operand};

use super::{NOTHING, Sabotage, with};

pub(super) const ALL: [Sabotage; 11] = [
    Sabotage {
        name: "mask-complemented",
        change: |ops, pc| on_constant(ops, pc, AluOp::And, |k| !k),
    },
    Sabotage {
        name: "mask-loses-its-lowest-bit",
        change: |ops, pc| on_constant(ops, pc, AluOp::And, |k| k & k.wrapping_sub(1)),
    },
    Sabotage {
        name: "mask-left-out",
        change: |ops, pc| on_constant(ops, pc, AluOp::And, |_| u32::MAX),
    },
    Sabotage {
        name: "or-for-and",
        change: |ops, pc| replace(ops, pc, AluOp::And, AluOp::Or),
    },
    Sabotage {
        name: "sub-for-add",
        change: |ops, pc| replace(ops, pc, AluOp::Add, AluOp::Sub),
    },
    Sabotage {
        name: "add-for-sub",
        change: |ops, pc| replace(ops, pc, AluOp::Sub, AluOp::Add),
    },
    Sabotage {
        name: "shift-in-the-wrong-direction",
        change: |ops, pc| replace(ops, pc, AluOp::Lsh, AluOp::Rsh),
    },
    Sabotage {
        name: "shift-one-too-far",
        change: |ops, pc| on_constant(ops, pc, AluOp::Rsh, |k| (k + 1) & 31),
    },
    Sabotage {
        name: "product-strength-reduced-wrongly",
        change: |ops, pc| match ops[pc] {
            Op::Alu(AluOp::Mul, Operand::K(k)) => {
                with(ops, pc, Op::Alu(AluOp::Lsh, Operand::K(k.ilog2())))
            }
            _ => None,
        },
    },
    Sabotage {
        name: "quotient-rounded-to-a-power",
        change: |ops, pc| match ops[pc] {
            Op::Alu(AluOp::Div, Operand::K(k)) => {
                with(ops, pc, Op::Alu(AluOp::Rsh, Operand::K(k.ilog2())))
            }
            _ => None,
        },
    },
    Sabotage {
        name: "negation-left-out",
        change: |ops, pc| match ops[pc] {
            Op::Neg => with(ops, pc, NOTHING),
            _ => None,
        },
    },
];

fn replace(ops: &[Op], pc: usize, from: AluOp, to: AluOp) -> Option<Vec<Op>> {
    match ops[pc] {
        Op::Alu(op, operand) if op == from => with(ops, pc, Op::Alu(to, operand)),
        _ => None,
    }
}

fn on_constant(
    ops: &[Op],
    pc: usize,
    wanted: AluOp,
    change: impl Fn(u32) -> u32,
) -> Option<Vec<Op>> {
    match ops[pc] {
        Op::Alu(op, Operand::K(k)) if op == wanted => {
            with(ops, pc, Op::Alu(op, Operand::K(change(k))))
        }
        _ => None,
    }
}
