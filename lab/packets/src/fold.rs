//! Constant folding: constants replace computed values, redundant loads and stores are removed, and branches with a
//! certain outcome become jumps.

use tamis_bpf::insn::{AluOp, Operand};
use tamis_bpf::packet::{Extra, Load, Op};

use super::graph::{End, Graph};
use super::values::{A, State, Values, X, effect};

/// Simplifies each instruction by the facts that hold before it.
pub(super) fn fold(graph: &mut Graph) {
    let mut values = Values::default();
    let entries = values.entries(graph);
    for (block, entry) in graph.blocks.iter_mut().zip(entries) {
        let Some(mut state) = entry else {
            continue;
        };
        let mut kept = Vec::with_capacity(block.ops.len());
        for op in &block.ops {
            let before = state.clone();
            let may_end = values.step(&mut state, *op);
            kept.extend(simpler(*op, &before, &state, may_end, &values));
        }
        block.ops = kept;
        block.end = end(block.end, &state, &mut values);
    }
}

/// The replacement of an instruction; `None` if it changes nothing.
fn simpler(op: Op, before: &State, after: &State, may_end: bool, values: &Values) -> Option<Op> {
    let by_constant = with_constant(op, values.constant(before, before.places[X]));
    let (_, Some(place)) = effect(op) else {
        return Some(op);
    };
    if may_end {
        return Some(by_constant);
    }
    let value = after.places[place];
    if value == before.places[place] {
        return None;
    }
    let constant = values.constant(after, value);
    Some(match (place, constant) {
        (A, Some(k)) => Op::LoadImm(k),
        (X, Some(k)) => Op::LoadXImm(k),
        (A, None) if value == before.places[X] => Op::Txa,
        (X, None) if value == before.places[A] => Op::Tax,
        _ => by_constant,
    })
}

/// An instruction that reads X, given X's constant value.
fn with_constant(op: Op, x: Option<u32>) -> Op {
    match (op, x) {
        (Op::Alu(alu, Operand::X), Some(k)) => match alu {
            AluOp::Lsh | AluOp::Rsh => Op::Alu(alu, Operand::K(k & 31)),
            // The kernel rejects this as a constant.
            AluOp::Div if k == 0 => op,
            _ => Op::Alu(alu, Operand::K(k)),
        },
        (Op::Extra(Extra::Mod(Operand::X)), Some(k @ 1..)) => Op::Extra(Extra::Mod(Operand::K(k))),
        (Op::LoadData(Load::Indexed(size, k)), Some(x)) => match x.checked_add(k) {
            Some(k @ ..0x8000_0000) => Op::LoadData(Load::Absolute(size, k)),
            _ => op,
        },
        _ => op,
    }
}

fn end(end: End, state: &State, values: &mut Values) -> End {
    let [a, x, ..] = state.places;
    match end {
        End::Branch {
            test,
            operand,
            holds,
            fails,
        } => match values.outcome(state, test, operand) {
            Some(true) => End::Goto(holds),
            Some(false) => End::Goto(fails),
            None => End::Branch {
                test,
                operand: match (operand, values.constant(state, x)) {
                    (Operand::X, Some(k)) => Operand::K(k),
                    _ => operand,
                },
                holds,
                fails,
            },
        },
        End::RetA => values.constant(state, a).map_or(end, End::RetImm),
        End::Goto(_) | End::RetImm(_) => end,
    }
}
