//! Errors about facts from the tests passed so far, and about liveness.

use tamis_bpf::Op;

use super::{NOTHING, Sabotage, with};

pub(super) const ALL: [Sabotage; 4] = [
    Sabotage {
        name: "answer-of-the-last-test-kept",
        change: |ops, pc| behind_a_failed_test(ops, pc, false),
    },
    Sabotage {
        name: "answer-implied-the-wrong-way",
        change: |ops, pc| behind_a_failed_test(ops, pc, true),
    },
    Sabotage {
        name: "jump-threaded-past-a-load",
        change: |ops, pc| match ops[pc] {
            Op::Branch {
                test,
                operand,
                jt,
                jf,
            } if is_load(ops, pc + 1 + usize::from(jt)) => {
                let jt = jt.checked_add(1)?;
                let threaded = Op::Branch {
                    test,
                    operand,
                    jt,
                    jf,
                };
                with(ops, pc, threaded)
            }
            _ => None,
        },
    },
    Sabotage {
        name: "result-taken-for-unused",
        change: |ops, pc| match ops[pc] {
            Op::Alu(..) | Op::Neg => with(ops, pc, NOTHING),
            _ => None,
        },
    },
];

/// The test at `pc`, into which another one falls when it fails, always has this outcome.
fn behind_a_failed_test(ops: &[Op], pc: usize, answer: bool) -> Option<Vec<Op>> {
    let Op::Branch {
        test,
        operand,
        jt,
        jf,
    } = ops[pc]
    else {
        return None;
    };
    let Some(Op::Branch { jf: 0, .. }) = ops[..pc].last() else {
        return None;
    };
    let target = if answer { jt } else { jf };
    let decided = Op::Branch {
        test,
        operand,
        jt: target,
        jf: target,
    };
    with(ops, pc, decided)
}

fn is_load(ops: &[Op], pc: usize) -> bool {
    matches!(ops.get(pc), Some(Op::LoadData(_)))
}
