//! Mutants: programs with one instruction changed, as by a bug in a compiler.

use tamis_bpf::{AluOp, Insn, Op, Operand, Pc, Program, Test};

use crate::rng::Rng;

/// The most attempts to make a valid program.
const TRIES: usize = 100;

/// The program with one random instruction changed. `None` if no legal change was found.
pub fn mutant(rng: &mut Rng, program: &Program) -> Option<Program> {
    (0..TRIES).find_map(|_| {
        let pc = Pc(rng.index(program.len()));
        let mut insns = program.insns().to_vec();
        let changed = Insn::from(change(rng, program.op(pc)));
        if insns[pc.0] == changed {
            return None;
        }
        insns[pc.0] = changed;
        Program::new(insns, program.endian()).ok()
    })
}

fn change(rng: &mut Rng, op: Op) -> Op {
    match op {
        Op::Branch {
            test,
            operand,
            jt,
            jf,
        } => change_branch(rng, test, operand, jt, jf),
        Op::Alu(alu, Operand::K(k)) if rng.chance(1, 2) => {
            Op::Alu(alu, Operand::K(constant(rng, k)))
        }
        Op::Alu(_, operand) => {
            let ops = [AluOp::And, AluOp::Or, AluOp::Xor, AluOp::Add, AluOp::Sub];
            Op::Alu(*rng.choose(&ops), operand)
        }
        Op::LoadData(offset) => *rng.choose(&[
            Op::LoadData(offset ^ 4),
            Op::LoadData(rng.clone().range(0..=15) as u32 * 4),
            Op::LoadImm(0),
        ]),
        Op::LoadImm(k) => Op::LoadImm(constant(rng, k)),
        Op::LoadXImm(k) => Op::LoadXImm(constant(rng, k)),
        Op::LoadMem(slot) => Op::LoadXMem(slot),
        Op::LoadXMem(slot) => Op::LoadMem(slot),
        Op::Store(slot) => Op::StoreX(slot),
        Op::StoreX(slot) => Op::Store(slot),
        Op::Tax => Op::Txa,
        Op::Txa => Op::Tax,
        Op::Jump(skip) => Op::Jump(skip.wrapping_add(*rng.choose(&[1, u32::MAX]))),
        Op::RetImm(ret) => *rng.choose(&[Op::RetImm(ret ^ 1), Op::RetImm(0x7fff_0000), Op::RetA]),
        Op::RetA => Op::RetImm(0),
        Op::LoadLen => Op::LoadXLen,
        Op::LoadXLen => Op::LoadLen,
        Op::Neg => Op::Txa,
    }
}

fn change_branch(rng: &mut Rng, test: Test, operand: Operand, jt: u8, jf: u8) -> Op {
    let (mut test, mut operand, mut jt, mut jf) = (test, operand, jt, jf);
    match rng.range(0..=5) {
        0 => test = *rng.choose(&[Test::Eq, Test::Gt, Test::Ge, Test::Set]),
        1 => std::mem::swap(&mut jt, &mut jf),
        2 => jt = jt.wrapping_add(*rng.choose(&[1, u8::MAX])),
        3 => jf = jf.wrapping_add(*rng.choose(&[1, u8::MAX])),
        4 => operand = Operand::X,
        _ => {
            if let Operand::K(k) = operand {
                operand = Operand::K(constant(rng, k));
            }
        }
    }
    Op::Branch {
        test,
        operand,
        jt,
        jf,
    }
}

fn constant(rng: &mut Rng, k: u32) -> u32 {
    match rng.range(0..=3) {
        0 => k.wrapping_add(1),
        1 => k.wrapping_sub(1),
        2 => !k,
        _ => k ^ 1 << rng.range(0..=31),
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::Endian;

    use super::*;
    use crate::generate::program::program;

    #[test]
    fn a_mutant_differs_in_one_instruction() {
        let mut rng = Rng::new(1);
        for _ in 0..200 {
            let original = program(&mut rng, 10, Endian::Little);
            let mutant = mutant(&mut rng, &original).unwrap();
            let pairs = original.insns().iter().zip(mutant.insns());
            assert_eq!(pairs.filter(|(a, b)| a != b).count(), 1);
        }
    }
}
