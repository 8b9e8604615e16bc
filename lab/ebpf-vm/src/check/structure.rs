//! Properties of a program that don't depend on values: its functions, unreachable code, the places where paths meet,
//! and live registers.

use super::{Options, Refusal, Rule};
use crate::insn::{Atomic, Op, Place, Reg, Source};
use crate::program::{Pc, Program, target};

/// The structure of a program.
#[derive(Debug)]
pub(super) struct Structure {
    /// Per place, whether something jumps or returns there.
    pub(super) is_meeting: Vec<bool>,
    /// Per place, the registers that are read before they are written, a bit each.
    pub(super) live: Vec<u16>,
}

/// Finds the structure.
///
/// # Errors
/// [`Rule::Unreachable`], [`Rule::LeavesFunction`].
pub(super) fn find(program: &Program, options: &Options) -> Result<Structure, Refusal> {
    let mut starts = vec![0];
    let mut is_meeting = vec![false; program.len()];
    for (pc, op) in program.ops() {
        if let Op::CallLocal(skip) = op {
            starts.push(target(pc, skip).0);
        }
        if let Some(skip) = op.skip() {
            is_meeting[target(pc, skip).0] = true;
        }
    }
    starts.sort_unstable();
    starts.dedup();
    for start in &starts {
        is_meeting[*start] = true;
    }
    let function = |pc: Pc| starts.partition_point(|start| *start <= pc.0);
    for (pc, op) in program.ops() {
        let next = op.falls_through().then_some(Pc(pc.0 + op.places()));
        let jump = op.skip().map(|skip| target(pc, skip));
        let mut leads_to = next.into_iter().chain(jump);
        if leads_to.any(|to| function(to) != function(pc)) {
            return Err(Refusal::at(pc, Rule::LeavesFunction));
        }
    }
    if !options.permits_unreachable {
        reachable(program)?;
    }
    Ok(Structure {
        is_meeting,
        live: live(program),
    })
}

/// Where an instruction may lead inside its function.
fn successors(pc: Pc, op: Op) -> impl Iterator<Item = Pc> {
    let next = op.falls_through().then_some(Pc(pc.0 + op.places()));
    let jump = op.skip().map(|skip| target(pc, skip));
    next.into_iter().chain(jump)
}

fn reachable(program: &Program) -> Result<(), Refusal> {
    let mut is_reached = vec![false; program.len()];
    let mut pending = vec![Pc(0)];
    while let Some(pc) = pending.pop() {
        if std::mem::replace(&mut is_reached[pc.0], true) {
            continue;
        }
        let Some(op) = program.op(pc) else {
            continue;
        };
        pending.extend(successors(pc, op));
        if let Op::CallLocal(skip) = op {
            pending.push(target(pc, skip));
        }
    }
    match program.ops().find(|(pc, _)| !is_reached[pc.0]) {
        Some((pc, _)) => Err(Refusal::at(pc, Rule::Unreachable)),
        None => Ok(()),
    }
}

/// Goes backwards through the program; instructions before a changed one are processed again. A register can only
/// become live, so this happens at most once for each register of a jump target.
fn live(program: &Program) -> Vec<u16> {
    let ops: Vec<(Pc, Op)> = program.ops().collect();
    let mut before_jumps: Vec<Vec<usize>> = vec![Vec::new(); program.len()];
    for (index, (pc, op)) in ops.iter().enumerate() {
        for to in successors(*pc, *op) {
            before_jumps[to.0].push(index);
        }
    }
    let mut live = vec![0; program.len()];
    let mut open: Vec<usize> = (0..ops.len()).collect();
    while let Some(index) = open.pop() {
        let (pc, op) = ops[index];
        let after = successors(pc, op).fold(0, |after, to| after | live[to.0]);
        let (reads, writes) = accesses(op);
        let before = after & !writes | reads;
        if before != live[pc.0] {
            live[pc.0] = before;
            open.extend(&before_jumps[pc.0]);
        }
    }
    live
}

pub(crate) const fn bit(reg: Reg) -> u16 {
    1 << reg.number()
}

/// The registers of arguments, r1 to r5.
const ARGUMENTS: u16 = 0b11_1110;

/// The registers that an instruction may read, and those that it always writes.
pub(crate) fn accesses(op: Op) -> (u16, u16) {
    let of_source = |source| match source {
        Source::Imm(_) => 0,
        Source::Reg(reg) => bit(reg),
    };
    let result = bit(Reg::R0);
    match op {
        Op::Alu(_, crate::AluOp::Mov, dst, source) => (of_source(source), bit(dst)),
        Op::Alu(_, _, dst, source) => (bit(dst) | of_source(source), bit(dst)),
        Op::Neg(_, dst) | Op::Swap(_, _, dst) => (bit(dst), bit(dst)),
        Op::MoveSigned(_, _, dst, src) => (bit(src), bit(dst)),
        Op::Load(_, dst, at) | Op::LoadSigned(_, dst, at) => (bit(at.base), bit(dst)),
        Op::LoadPacket(_, place) => {
            let index = match place {
                Place::Absolute(_) => 0,
                Place::Indirect(reg, _) => bit(reg),
            };
            (bit(Reg::R6) | index, result | ARGUMENTS)
        }
        Op::StoreImm(_, at, _) => (bit(at.base), 0),
        Op::Store(_, at, src) => (bit(at.base) | bit(src), 0),
        Op::Atomic(_, Atomic::CompareExchange, at, src) => {
            (bit(at.base) | bit(src) | result, result)
        }
        Op::Atomic(_, _, at, src) => (bit(at.base) | bit(src), 0),
        Op::LoadImm64(dst, _) => (0, bit(dst)),
        Op::Jump(_) | Op::JumpFar(_) => (0, 0),
        Op::Branch(_, _, dst, source, _) => (bit(dst) | of_source(source), 0),
        Op::CallHelper(_) | Op::CallLocal(_) => (ARGUMENTS, result | ARGUMENTS),
        Op::Exit => (result, 0),
    }
}
