//! Replace values known to be constant by constants.
//!
//! # Effect
//! A calculation, copy or load from scratch memory with a known constant as its result becomes a load of the
//! constant; a right operand X with a known value becomes a constant; `ret a` with a known A returns the constant. A
//! value is known if it is computed from constants, or if the tests on all paths leave only one.
//!
//! # Before/After
//! ```text
//! ldx #5                  ldx #5
//! jeq x, a, b     ->      jeq #5, a, b
//! ```
//!
//! # Why it is sound
//! The constant equals the result of the instruction.
//!
//! # Limits
//! It does not change loads from `seccomp_data` and `and #k`, because the kernel's action cache emulates these, but
//! not loads of constants. It never divides by a constant zero, which the kernel rejects.
//!
//! # Cost
//! Linear.
//!
//! # Prior art
//! Conditional constant propagation (Wegman and Zadeck); libpcap's `fold_op`.

use tamis_bpf::cfg::{Block, Cfg, End};
use tamis_bpf::{AluOp, Op, Operand};

use crate::dataflow::state::State;
use crate::dataflow::value::{Place, Values};

use crate::passes::{Changed, Claim, PassCx, PassInfo, Stage};

/// About this pass.
pub(in crate::passes) const INFO: PassInfo = PassInfo {
    name: "fold-constants",
    summary: "put constants in place of results, operands and returns that are known",
    stage: Stage::Bytecode,
    claim: Claim {
        never_longer: true,
        never_slower: true,
    },
};

pub(in crate::passes) fn run(graph: &mut Cfg, cx: &mut PassCx) -> Changed {
    let mut flow = cx.flow(graph);
    let mut changed = false;
    for id in cx.order(graph).iter().copied() {
        if !can_fold(graph.block(id)) {
            continue;
        }
        let Some(mut state) = flow.entry(id) else {
            continue;
        };
        let values = &mut flow.values;
        let block = graph.block_mut(id);
        for op in &mut block.ops {
            let folded = folded(*op, &state, values);
            if folded != *op && cx.apply(0, || format!("{op:?} in block {}", id.0)) {
                *op = folded;
                changed = true;
            }
            state.step(*op, values);
        }
        let end = folded_end(block.end, &state, values);
        if end != block.end && cx.apply(0, || format!("the end of block {}", id.0)) {
            block.end = end;
            changed = true;
        }
    }
    cx.keep_flow(flow);
    Changed::when(changed)
}

/// Whether a block contains anything that could become a constant.
fn can_fold(block: &Block) -> bool {
    let at_end = match block.end {
        End::RetA => true,
        End::Branch { operand, .. } => operand == Operand::X,
        End::Ret(_) | End::Goto(_) => false,
    };
    let loads = |op: &Op| matches!(op, Op::LoadData(_) | Op::LoadImm(_) | Op::LoadXImm(_));
    at_end || !block.ops.iter().all(loads)
}

fn folded(op: Op, state: &State, values: &mut Values) -> Op {
    let result = state.result(op, values);
    let known = state.constant(result, values);
    match (op, known) {
        (Op::LoadMem(_) | Op::LoadLen | Op::Txa | Op::Neg, Some(k)) => Op::LoadImm(k),
        (Op::LoadXMem(_) | Op::LoadXLen | Op::Tax, Some(k)) => Op::LoadXImm(k),
        (Op::Alu(alu, operand), _) => folded_alu(alu, operand, known, state, values),
        _ => op,
    }
}

fn folded_alu(
    alu: AluOp,
    operand: Operand,
    result: Option<u32>,
    state: &State,
    values: &Values,
) -> Op {
    let right = match operand {
        Operand::K(k) => Some(k),
        Operand::X => state.constant(state.get(Place::X, values), values),
        Operand::Variable(_) => None,
    };
    let right = match (alu, right) {
        (AluOp::Lsh | AluOp::Rsh, Some(k)) => Some(k & 31),
        (AluOp::Div, Some(0)) => None,
        (_, right) => right,
    };
    match (alu, right, result) {
        (AluOp::And, Some(k), _) => Op::Alu(alu, Operand::K(k)),
        (AluOp::Div, None, _) | (_, None, None) => Op::Alu(alu, operand),
        (_, _, Some(result)) => Op::LoadImm(result),
        (_, Some(k), None) => Op::Alu(alu, Operand::K(k)),
    }
}

fn folded_end(end: End, state: &State, values: &Values) -> End {
    match end {
        End::RetA => match state.constant(state.get(Place::A, values), values) {
            Some(k) => End::Ret(k),
            None => end,
        },
        End::Branch {
            test,
            operand: Operand::X,
            yes,
            no,
        } => match state.constant(state.get(Place::X, values), values) {
            Some(k) => End::Branch {
                test,
                operand: Operand::K(k),
                yes,
                no,
            },
            None => end,
        },
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::INFO;
    use crate::passes::support::testing::check_bytecode;

    #[test]
    fn what_a_test_found_is_a_constant_from_there_on() {
        check_bytecode(
            &INFO,
            "ld [16]\n\
             jeq #5, a, no\n\
             a: tax\n\
             ld [24]\n\
             jeq x, yes, no\n\
             no: ret #errno(1)\n\
             yes: ret #allow",
            "ld [16]\n\
             jne #5, no\n\
             ldx #5\n\
             ld [24]\n\
             jeq #5, yes\n\
             no: ret #errno(1)\n\
             yes: ret #allow",
        );
    }
}
