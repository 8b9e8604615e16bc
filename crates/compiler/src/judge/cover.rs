//! Calls that take the branches of a program each way, quickly and without asking anybody.
//!
//! Every branch that a call reaches for the first time says itself which calls come next: those on both sides of
//! its constant, or of the word that it compares with. That reaches all that compiled programs do, but for
//! what earlier branches rule out; programs that compute are what the agreement of two filters in `tamis-fuzz` is for.

use std::collections::VecDeque;

use tamis_abi::{Endian, SeccompData, Word};
use tamis_bpf::insn::{AluOp, Operand};
use tamis_bpf::interp::Decoded;
use tamis_bpf::{Op, Pc, Program, Test};

/// The bits of a word of the input, as a register may hold them.
#[derive(Clone, Copy)]
struct Bits {
    word: Word,
    mask: u32,
}

/// What a register holds, where that is known.
#[derive(Clone, Copy)]
enum Held {
    Bits(Bits),
    Constant(u32),
    Other,
}

/// What A and X hold.
#[derive(Clone, Copy)]
struct Registers {
    a: Held,
    x: Held,
}

/// Runs calls on a program that take its branches each way, and shows each with what the reference
/// interpreter returns, until `see` wants no more.
pub(super) fn cover(program: &Program, see: &mut impl FnMut(&SeccompData, u32) -> bool) {
    let endian = program.endian();
    let program = Decoded::new(program);
    let ops = program.ops();
    // The branches that no call has reached yet.
    let is_branch = |op: &Op| matches!(op, Op::Branch { .. });
    let mut is_new: Vec<bool> = ops.iter().map(is_branch).collect();
    // As many as there are commonly.
    let mut waiting = VecDeque::with_capacity(4 * ops.len());
    waiting.push_back(SeccompData::default());
    let mut path = Vec::with_capacity(ops.len());
    while let Some(call) = waiting.pop_front() {
        path.clear();
        let mut is_any_new = false;
        let run = program.run_traced(&call, &mut |Pc(pc)| {
            path.push(pc);
            is_any_new |= is_new[pc];
        });
        if !see(&call, run.ret) {
            return;
        }
        if !is_any_new {
            continue;
        }
        let mut registers = Registers {
            a: Held::Constant(0),
            x: Held::Constant(0),
        };
        for pc in &path {
            if let Op::Branch { test, operand, .. } = ops[*pc]
                && is_new[*pc]
            {
                is_new[*pc] = false;
                near(&call, registers, test, operand, &mut waiting);
            }
            registers.step(ops[*pc], endian);
        }
    }
}

impl Registers {
    fn step(&mut self, op: Op, endian: Endian) {
        match op {
            Op::LoadData(offset) => {
                let mask = u32::MAX;
                let word = Word::from_offset(offset, endian);
                self.a = word.map_or(Held::Other, |word| Held::Bits(Bits { word, mask }));
            }
            Op::Alu(AluOp::And, Operand::K(k)) => {
                self.a = match self.a {
                    Held::Bits(Bits { word, mask }) => Held::Bits(Bits {
                        word,
                        mask: mask & k,
                    }),
                    Held::Constant(value) => Held::Constant(value & k),
                    Held::Other => Held::Other,
                };
            }
            Op::Tax => self.x = self.a,
            Op::Txa => self.a = self.x,
            Op::LoadImm(k) => self.a = Held::Constant(k),
            Op::LoadXImm(k) => self.x = Held::Constant(k),
            Op::Alu(..) | Op::Neg | Op::LoadMem(_) | Op::LoadLen => self.a = Held::Other,
            Op::LoadXMem(_) | Op::LoadXLen => self.x = Held::Other,
            Op::Branch { .. } | Op::Jump(_) | Op::RetImm(_) | Op::RetA => {}
            Op::Store(_) | Op::StoreX(_) => {}
        }
    }
}

/// Adds calls on both sides of a branch, where it compares bits of a word.
fn near(
    call: &SeccompData,
    registers: Registers,
    test: Test,
    operand: Operand,
    calls: &mut VecDeque<SeccompData>,
) {
    let Held::Bits(Bits { word, mask }) = registers.a else {
        return;
    };
    let k = match (operand, registers.x) {
        (Operand::K(k), _) => k,
        (Operand::X, Held::Bits(right)) => call.word(right.word) & right.mask,
        (Operand::X, Held::Constant(k)) => k,
        (Operand::X, Held::Other) | (Operand::Variable(_), _) => return,
    };
    let held = call.word(word);
    let with = |value: u32| call.with_word(word, value & mask | held & !mask);
    let mut add = |value: u32| {
        // The call itself has been run.
        if value & mask != held & mask {
            calls.push_back(with(value));
        }
    };
    match test {
        Test::Ge => [k, k.wrapping_sub(1)].into_iter().for_each(add),
        Test::Gt => [k, k.wrapping_add(1)].into_iter().for_each(add),
        Test::Eq if mask == u32::MAX => [k, k.wrapping_add(1)].into_iter().for_each(add),
        Test::Eq | Test::Set => {
            add(k);
            add(!k);
            let of_bits = if test == Test::Set { k } else { mask };
            let bits = (0..u32::BITS).map(|bit| 1 << bit);
            for bit in bits.filter(|bit| of_bits & bit != 0) {
                add(if test == Test::Set { bit } else { k ^ bit });
            }
        }
    }
    // A half of an argument may have been forgotten: the same with something in the other.
    if word.index() > Word::ARCH.index() && test == Test::Eq {
        let near = with(k);
        if let Some(other) = Word::from_index(word.index() ^ 1) {
            calls.push_back(near.with_word(other, near.word(other) ^ 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_taken_each_way() {
        let is_39 = Op::Branch {
            test: Test::Eq,
            operand: Operand::K(39),
            jt: 0,
            jf: 1,
        };
        let ops = [Op::LoadData(0), is_39, Op::RetImm(1), Op::RetImm(2)];
        let program = Program::new(ops.map(Into::into).to_vec(), Endian::Little).unwrap();
        let mut seen = Vec::new();
        cover(&program, &mut |call, ret| {
            seen.push((call.nr, ret));
            true
        });
        assert!(seen.contains(&(39, 1)) && seen.contains(&(40, 2)));
    }
}
