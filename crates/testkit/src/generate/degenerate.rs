//! Random programs full of tests that decide nothing, which the kernel accepts and compilers seldom emit.
//!
//! Branches with equal targets, tests of constants, tests whose result an earlier test implies, masks without bits,
//! divisions by zero, and instructions behind all of these that no call executes. Few words and few constants occur, so
//! that most tests depend on others.

use tamis_abi::{Arch, Endian};
use tamis_bpf::{AluOp, Insn, Op, Operand, Program, Test};

use crate::rng::Rng;

const TESTS: [Test; 4] = [Test::Eq, Test::Gt, Test::Ge, Test::Set];
/// The number, the architecture, both halves of the first argument.
const OFFSETS: [u32; 4] = [0, 4, 16, 20];
const RETURNS: [u32; 3] = [0x7fff_0000, 0x0005_0001, 0];

/// A program of `body_insns` instructions that decide little, and returns.
///
/// # Panics
/// Never: jumps stay within the program, and scratch memory is not read.
pub fn program(rng: &mut Rng, body_insns: usize) -> Program {
    let mut insns = vec![Insn::from(Op::LoadData(*rng.choose(&OFFSETS)))];
    let len_insns = body_insns + 1 + RETURNS.len();
    while insns.len() < len_insns - RETURNS.len() {
        let behind = len_insns - insns.len() - 1;
        insns.push(op(rng, behind).into());
    }
    insns.extend(RETURNS.map(|ret| Insn::from(Op::RetImm(ret))));
    Program::new(insns, Endian::Little).expect("a valid program")
}

fn op(rng: &mut Rng, behind: usize) -> Op {
    match rng.range(0..=19) {
        0..=9 => branch(rng, behind),
        10..=12 => Op::LoadData(*rng.choose(&OFFSETS)),
        13 => Op::LoadImm(constant(rng)),
        14 => Op::LoadXImm(*rng.choose(&[0, 1, 5])),
        15 => Op::Alu(AluOp::And, Operand::K(constant(rng))),
        16 => Op::Alu(
            *rng.choose(&[AluOp::Sub, AluOp::Xor, AluOp::Div]),
            Operand::X,
        ),
        17 => *rng.choose(&[Op::Tax, Op::Txa]),
        18 => Op::Jump(rng.index(behind.min(4)) as u32),
        _ => Op::RetImm(*rng.choose(&RETURNS)),
    }
}

/// A branch, in one of three cases with equal targets.
fn branch(rng: &mut Rng, behind: usize) -> Op {
    let mut skip = || rng.index(behind.min(6)) as u8;
    let (jt, jf) = (skip(), skip());
    let jf = if rng.chance(1, 3) { jt } else { jf };
    let operand = match rng.chance(1, 8) {
        true => Operand::X,
        false => Operand::K(constant(rng)),
    };
    Op::Branch {
        test: *rng.choose(&TESTS),
        operand,
        jt,
        jf,
    }
}

fn constant(rng: &mut Rng) -> u32 {
    *rng.choose(&[
        0,
        1,
        2,
        5,
        Arch::X86_64.audit(),
        Arch::X32_BIT,
        0xffff_fffe,
        u32::MAX,
    ])
}
