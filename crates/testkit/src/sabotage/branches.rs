//! Errors in jumps and tests.

use tamis_bpf::{AluOp, Op, Operand, Test};

use super::{Sabotage, with, with_inserted};

const SIGN_BIT: u32 = 1 << 31;
const X32_BIT: u32 = 1 << 30;

pub(super) const ALL: [Sabotage; 18] = [
    Sabotage {
        name: "jump-one-too-far",
        change: |ops, pc| match ops[pc] {
            Op::Jump(skip) => with(ops, pc, Op::Jump(skip + 1)),
            _ => None,
        },
    },
    Sabotage {
        name: "branch-one-too-far",
        change: |ops, pc| branch(ops, pc, |b| b.jt = b.jt.wrapping_add(1)),
    },
    Sabotage {
        name: "branch-one-too-short",
        change: |ops, pc| branch(ops, pc, |b| b.jt = b.jt.wrapping_sub(1)),
    },
    Sabotage {
        name: "false-branch-one-too-far",
        change: |ops, pc| branch(ops, pc, |b| b.jf = b.jf.wrapping_add(1)),
    },
    Sabotage {
        name: "false-branch-one-too-short",
        change: |ops, pc| branch(ops, pc, |b| b.jf = b.jf.wrapping_sub(1)),
    },
    Sabotage {
        name: "branch-sides-swapped",
        change: |ops, pc| branch(ops, pc, |b| std::mem::swap(&mut b.jt, &mut b.jf)),
    },
    Sabotage {
        name: "jge-for-jgt",
        change: |ops, pc| retest(ops, pc, Test::Gt, Test::Ge),
    },
    Sabotage {
        name: "jgt-for-jge",
        change: |ops, pc| retest(ops, pc, Test::Ge, Test::Gt),
    },
    Sabotage {
        name: "jset-for-jeq",
        change: |ops, pc| retest(ops, pc, Test::Eq, Test::Set),
    },
    Sabotage {
        name: "jeq-for-jset",
        change: |ops, pc| retest(ops, pc, Test::Set, Test::Eq),
    },
    Sabotage {
        name: "range-border-one-too-high",
        change: |ops, pc| constant(ops, pc, |k| k.wrapping_add(1)),
    },
    Sabotage {
        name: "range-border-one-too-low",
        change: |ops, pc| constant(ops, pc, |k| k.wrapping_sub(1)),
    },
    Sabotage {
        name: "signed-for-unsigned-compare",
        change: |ops, pc| match parts(ops[pc])? {
            Branch {
                test: Test::Gt | Test::Ge,
                operand: Operand::K(_),
                ..
            } => {
                let signed = constant(ops, pc, |k| k ^ SIGN_BIT)?;
                with_inserted(&signed, pc, Op::Alu(AluOp::Xor, Operand::K(SIGN_BIT)))
            }
            _ => None,
        },
    },
    Sabotage {
        name: "set-test-complemented",
        change: |ops, pc| match parts(ops[pc])?.test {
            Test::Set => constant(ops, pc, |k| !k),
            Test::Eq | Test::Gt | Test::Ge => None,
        },
    },
    Sabotage {
        name: "high-half-ignored",
        change: |ops, pc| match ops[..pc].last()? {
            Op::LoadData(offset) if *offset >= 16 && offset % 8 == 4 => always(ops, pc),
            _ => None,
        },
    },
    Sabotage {
        name: "arch-check-lost",
        change: |ops, pc| match ops[..pc].last()? {
            Op::LoadData(4) => always(ops, pc),
            _ => None,
        },
    },
    Sabotage {
        name: "x32-bit-ignored",
        change: |ops, pc| match parts(ops[pc])? {
            Branch {
                operand: Operand::K(X32_BIT),
                ..
            } => branch(ops, pc, |b| b.jt = b.jf),
            _ => None,
        },
    },
    Sabotage {
        name: "x-for-constant",
        change: |ops, pc| branch(ops, pc, |b| b.operand = Operand::X),
    },
];

/// The parts of a branch.
struct Branch {
    test: Test,
    operand: Operand,
    jt: u8,
    jf: u8,
}

fn parts(op: Op) -> Option<Branch> {
    match op {
        Op::Branch {
            test,
            operand,
            jt,
            jf,
        } => Some(Branch {
            test,
            operand,
            jt,
            jf,
        }),
        _ => None,
    }
}

fn branch(ops: &[Op], pc: usize, change: impl Fn(&mut Branch)) -> Option<Vec<Op>> {
    let mut parts = parts(ops[pc])?;
    change(&mut parts);
    let changed = Op::Branch {
        test: parts.test,
        operand: parts.operand,
        jt: parts.jt,
        jf: parts.jf,
    };
    with(ops, pc, changed)
}

/// The branch always goes where it goes if the test holds.
fn always(ops: &[Op], pc: usize) -> Option<Vec<Op>> {
    branch(ops, pc, |b| b.jf = b.jt)
}

fn retest(ops: &[Op], pc: usize, from: Test, to: Test) -> Option<Vec<Op>> {
    (parts(ops[pc])?.test == from).then(|| branch(ops, pc, |b| b.test = to))?
}

fn constant(ops: &[Op], pc: usize, change: impl Fn(u32) -> u32) -> Option<Vec<Op>> {
    branch(ops, pc, |b| {
        if let Operand::K(k) = &mut b.operand {
            *k = change(*k);
        }
    })
}
