//! Errors in returns.

use tamis_abi::{Action, ActionKind};
use tamis_bpf::Op;

use super::{Sabotage, with};

pub(super) const ALL: [Sabotage; 7] = [
    Sabotage {
        name: "return-data-lost",
        change: |ops, pc| returned(ops, pc, |ret| ret & 0xffff_0000),
    },
    Sabotage {
        name: "return-data-one-too-high",
        change: |ops, pc| {
            returned(ops, pc, |ret| {
                ret ^ ret & 0xffff | ret.wrapping_add(1) & 0xffff
            })
        },
    },
    Sabotage {
        name: "thread-killed-for-process",
        change: |ops, pc| action(ops, pc, ActionKind::KillProcess, ActionKind::KillThread),
    },
    Sabotage {
        name: "logged-calls-allowed-silently",
        change: |ops, pc| action(ops, pc, ActionKind::Log, ActionKind::Allow),
    },
    Sabotage {
        name: "denied-calls-allowed",
        change: |ops, pc| action(ops, pc, ActionKind::Errno, ActionKind::Allow),
    },
    Sabotage {
        name: "returns-merged",
        change: |ops, pc| match (ops[pc], ops.get(pc + 1)?) {
            (Op::RetImm(_), Op::RetImm(next)) => with(ops, pc, Op::RetImm(*next)),
            _ => None,
        },
    },
    Sabotage {
        name: "computed-return-taken-for-constant",
        change: |ops, pc| match ops[pc] {
            Op::RetA => with(ops, pc, Op::RetImm(Action::errno(0).ret())),
            _ => None,
        },
    },
];

fn returned(ops: &[Op], pc: usize, change: impl Fn(u32) -> u32) -> Option<Vec<Op>> {
    match ops[pc] {
        Op::RetImm(ret) => with(ops, pc, Op::RetImm(change(ret))),
        _ => None,
    }
}

fn action(ops: &[Op], pc: usize, from: ActionKind, to: ActionKind) -> Option<Vec<Op>> {
    returned(ops, pc, |ret| match Action::from_ret(ret) {
        Action { kind, data } if kind == from => Action::new(to, data).ret(),
        _ => ret,
    })
}
