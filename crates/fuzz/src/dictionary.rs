//! The values of which inputs are made: the constants with which programs compare each word, and values near them.
//!
//! One pass over the program computes the words from which A may be derived at each instruction, so every constant is
//! assigned to the words with which it can be compared. Near a constant are its neighbours, its complement, its
//! lowest bit and the remaining bits; of a mask each single bit. In addition, every word has its extremes, and
//! numbers and architectures have values that filters often forget: the x32 bit, -1, the other architectures of the
//! machine.

use std::collections::BTreeSet;

use tamis_abi::{Arch, SeccompData, Word};
use tamis_bpf::insn::{AluOp, Operand};
use tamis_bpf::{Op, Program, Test};

use crate::rng::Rng;

/// Per word, the values worth trying.
#[derive(Clone, Debug)]
pub struct Dictionary {
    /// Ascending, without duplicates; never empty.
    values: [Vec<u32>; Word::COUNT],
    /// The architectures that programs compare with, by audit value, and the native one.
    arches: Vec<u32>,
}

/// The constants that programs use with one word.
#[derive(Default)]
struct Constants {
    /// Constants of comparisons and masks.
    all: BTreeSet<u32>,
    /// The masks among them.
    masks: BTreeSet<u32>,
}

/// A set of words, one bit each.
type Words = u16;

impl Dictionary {
    /// The dictionary of some programs.
    ///
    /// ```
    /// use tamis_abi::{Endian, Word};
    /// use tamis_bpf::{Op, Operand, Program, Test};
    /// use tamis_fuzz::Dictionary;
    /// let is_39 = Op::branch(Test::Eq, 39, 0, 1);
    /// let ops = [Op::LoadData(0), is_39, Op::RetImm(0), Op::RetImm(1)];
    /// let program = Program::new(ops.map(Into::into).to_vec(), Endian::Little).unwrap();
    /// let dictionary = Dictionary::from_programs([&program]);
    /// let numbers = dictionary.values(Word::NR);
    /// assert!([38, 39, 40].iter().all(|near| numbers.contains(near)));
    /// ```
    pub fn from_programs<'p>(programs: impl IntoIterator<Item = &'p Program>) -> Dictionary {
        let mut constants: [Constants; Word::COUNT] = Default::default();
        for program in programs {
            collect(program, &mut constants);
        }
        let mut sets: [BTreeSet<u32>; Word::COUNT] = Default::default();
        for (word, set) in Word::all().zip(&mut sets) {
            set.extend([0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX]);
            let Constants { all, masks } = &constants[word.index()];
            for k in all {
                set.extend([*k, k.wrapping_add(1), k.wrapping_sub(1), !k]);
                set.extend([k & k.wrapping_neg(), k & (k.wrapping_sub(1))]);
            }
            for mask in masks {
                let bits = (0..u32::BITS).map(|bit| 1 << bit);
                set.extend(bits.filter(|bit| mask & bit != 0));
            }
            match word {
                Word::NR => {
                    set.extend(all.iter().map(|k| k ^ Arch::X32_BIT));
                    set.insert(Arch::X32_BIT);
                }
                Word::ARCH => set.extend(Arch::all().map(Arch::audit)),
                _ => {}
            }
        }
        let mut arches: Vec<u32> = Arch::all().map(Arch::audit).collect();
        arches.retain(|audit| constants[Word::ARCH.index()].all.contains(audit));
        arches.push(Arch::X86_64.audit());
        arches.sort_unstable();
        arches.dedup();
        Dictionary {
            arches,
            values: sets.map(|set| set.into_iter().collect()),
        }
    }

    /// The values for a word, ascending; at least one.
    pub fn values(&self, word: Word) -> &[u32] {
        &self.values[word.index()]
    }

    /// The audit values of the architectures in the programs, and that of x86_64; ascending.
    pub fn arches(&self) -> &[u32] {
        &self.arches
    }

    /// The values for the word with this index.
    pub(crate) fn values_at(&self, word: usize) -> &[u32] {
        &self.values[word]
    }

    /// A random input whose words are drawn from the dictionary, and occasionally from all values.
    pub fn draw(&self, rng: &mut Rng) -> SeccompData {
        let mut data = SeccompData::default();
        for word in Word::all() {
            data = data.with_word(word, self.draw_word(rng, word));
        }
        data
    }

    /// A random value for a word.
    pub fn draw_word(&self, rng: &mut Rng, word: Word) -> u32 {
        match rng.range(0..=15) {
            0 => rng.interesting_u64() as u32,
            _ => *rng.choose(self.values(word)),
        }
    }
}

/// Adds the constants that a program compares words with, or masks them with.
fn collect(program: &Program, constants: &mut [Constants; Word::COUNT]) {
    // Per instruction, the words from which A and X may be derived; one entry for all slots of the memory.
    let mut origins: Vec<(Words, Words)> = vec![(0, 0); program.len() + 1];
    let mut memory: Words = 0;
    for (pc, op) in program.ops().enumerate() {
        let (mut a, mut x) = origins[pc];
        let mut meet = |words: Words, k: u32, is_mask: bool| {
            for word in Word::all().filter(|word| words >> word.index() & 1 == 1) {
                let constants = &mut constants[word.index()];
                constants.all.insert(k);
                if is_mask {
                    constants.masks.insert(k);
                }
            }
        };
        let mut flow = |skip: usize, a: Words, x: Words| {
            let next = &mut origins[(pc + 1 + skip).min(program.len())];
            *next = (next.0 | a, next.1 | x);
        };
        match op {
            Op::LoadData(offset) => {
                let word = Word::from_offset(offset, program.endian());
                a = word.map_or(0, |word| 1 << word.index());
            }
            Op::LoadImm(_) | Op::LoadLen => a = 0,
            Op::LoadXImm(k) => {
                // It may be compared with the content of A at that point.
                meet(a, k, false);
                x = 0;
            }
            Op::LoadXLen => x = 0,
            Op::LoadMem(_) => a = memory,
            Op::LoadXMem(_) => x = memory,
            Op::Store(_) => memory |= a,
            Op::StoreX(_) => memory |= x,
            Op::Alu(alu, operand) => {
                if let Operand::K(k) = operand {
                    meet(a, k, alu == AluOp::And);
                    if alu == AluOp::And {
                        meet(a, !k, false);
                    }
                } else {
                    a |= x;
                }
            }
            Op::Neg => {}
            Op::Tax => x = a,
            Op::Txa => a = x,
            Op::Jump(skip) => {
                flow(skip as usize, a, x);
                continue;
            }
            Op::Branch {
                test,
                operand,
                jt,
                jf,
            } => {
                if let Operand::K(k) = operand {
                    meet(a, k, test == Test::Set);
                }
                flow(usize::from(jt), a, x);
                flow(usize::from(jf), a, x);
                continue;
            }
            Op::RetImm(_) | Op::RetA => continue,
        }
        flow(0, a, x);
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::{ArgIndex, Endian};
    use tamis_bpf::Insn;

    use super::*;

    #[test]
    fn of_a_mask_each_bit_is_drawn_alone() {
        let some = Op::branch(Test::Set, 0x1_0900, 0, 1);
        let ops = [Op::LoadData(0), some, Op::RetImm(0), Op::RetImm(1)];
        let program = Program::new(ops.map(Insn::from).to_vec(), Endian::Little).unwrap();
        let dictionary = Dictionary::from_programs([&program]);
        let has = |word, value| dictionary.values(word).contains(&value);
        assert!(
            [0x100, 0x800, 0x1_0000]
                .iter()
                .all(|bit| has(Word::NR, *bit))
        );
        assert!(!has(Word::NR, 0x200) && !has(Word::arg_low(ArgIndex::ALL[0]), 0x800));
    }
}
