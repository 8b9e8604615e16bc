//! Reduction of programs: removes instructions and adapts jumps, replaces branches by jumps, and reduces constants.

use std::ops::Range;

use tamis_bpf::insn::Operand;
use tamis_bpf::{Insn, Op, Program};

use super::leave_out;

/// The smallest program found for which `fails` holds, as it does for the given one. Each candidate has fewer
/// instructions, or fewer branches, or fewer bits in its constants.
pub fn program(given: &Program, fails: &mut impl FnMut(&Program) -> bool) -> Program {
    let mut current = given.clone();
    loop {
        let mut is_changed = leave_out(&mut current, Program::len, |program, gone| {
            let candidate = without(program, gone);
            try_insns(program, candidate, fails)
        });
        for pc in 0..current.len() {
            for candidate in simpler(&current, pc) {
                is_changed |= try_insns(&mut current, candidate, fails);
            }
        }
        if !is_changed {
            return current;
        }
    }
}

/// The size of a program.
fn measure(insns: &[Insn]) -> (usize, usize, u32) {
    let is_branch = |insn: &&Insn| matches!(insn.op(), Some(Op::Branch { .. }));
    let is_jump = |insn: &Insn| matches!(insn.op(), Some(Op::Jump(_)));
    // The distance of a jump does not count as a constant.
    let constants = insns.iter().filter(|insn| !is_jump(insn));
    let bits = constants.map(|insn| insn.k.count_ones()).sum();
    (insns.len(), insns.iter().filter(is_branch).count(), bits)
}

/// Accepts smaller instructions if they are a valid program that still fails.
fn try_insns(
    current: &mut Program,
    insns: Vec<Insn>,
    fails: &mut impl FnMut(&Program) -> bool,
) -> bool {
    if measure(&insns) >= measure(current.insns()) {
        return false;
    }
    let Ok(candidate) = Program::new(insns, current.endian()) else {
        return false;
    };
    let takes = fails(&candidate);
    if takes {
        *current = candidate;
    }
    takes
}

/// The instructions without some of them: a jump to a removed one leads to the next remaining one.
fn without(program: &Program, gone: Range<usize>) -> Vec<Insn> {
    let kept = |from: usize, to: usize| {
        let from_gone = from.clamp(gone.start, gone.end);
        let to_gone = to.clamp(gone.start, gone.end);
        to - from - (to_gone - from_gone)
    };
    let ops = program.ops().enumerate();
    ops.filter(|(pc, _)| !gone.contains(pc))
        .map(|(pc, op)| Insn::from(op.with_skips(|skip| kept(pc + 1, pc + 1 + skip))))
        .collect()
}

/// The program with one instruction simplified, in all ways.
fn simpler(program: &Program, pc: usize) -> Vec<Vec<Insn>> {
    let insn = program.insns()[pc];
    let op = Insn::from(program.op(tamis_bpf::Pc(pc)));
    let with_k = |k| Insn { k, ..insn };
    let changed: Vec<Insn> = match program.op(tamis_bpf::Pc(pc)) {
        Op::Branch {
            operand, jt, jf, ..
        } => {
            let jumps = [jt, jf].map(|skip| Insn::from(Op::Jump(u32::from(skip))));
            let small = match operand {
                Operand::K(_) => vec![with_k(0), with_k(1)],
                Operand::X | Operand::Variable(_) => Vec::new(),
            };
            jumps.into_iter().chain(small).collect()
        }
        Op::Jump(_) => Vec::new(),
        // Unused fields are cleared too.
        _ => vec![with_k(0), with_k(1), op],
    };
    let with = |insn: Insn| {
        let mut insns = program.insns().to_vec();
        insns[pc] = insn;
        insns
    };
    changed.into_iter().map(with).collect()
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Endian, SeccompData};
    use tamis_bpf::{Test, interp};

    use super::*;

    #[test]
    fn what_remains_is_what_one_call_needs() {
        let ops = [
            Op::LoadData(4),
            Op::branch(Test::Eq, 0xc000_003e, 1, 0),
            Op::RetImm(0x8000_0000),
            Op::LoadData(0),
            Op::branch(Test::Gt, 100, 3, 0),
            Op::branch(Test::Eq, 39, 0, 2),
            Op::LoadData(16),
            Op::branch(Test::Eq, 7, 1, 0),
            Op::RetImm(0x0005_0001),
            Op::RetImm(0x7fff_0000),
        ];
        let program = Program::new(ops.map(Insn::from).to_vec(), Endian::Little).unwrap();
        let call = |arg0| SeccompData {
            nr: 39,
            arch: 0xc000_003e,
            ip: 0,
            args: [arg0, 0, 0, 0, 0, 0],
        };
        let tells_apart = |program: &Program| {
            let answers = [7, 8].map(|arg0| interp::run(program, &call(arg0)).ret);
            answers == [0x7fff_0000, 0x0005_0001]
        };
        assert!(tells_apart(&program));
        let small = super::program(&program, &mut |program| tells_apart(program));
        let expected = [
            Op::LoadData(16),
            Op::branch(Test::Eq, 7, 1, 0),
            Op::RetImm(0x0005_0001),
            Op::RetImm(0x7fff_0000),
        ];
        assert_eq!(small.insns(), expected.map(Insn::from));
    }
}
