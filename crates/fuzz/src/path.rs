//! The path of one input through one program: the branches on it, and how to reverse one.
//!
//! A branch that compares some bits of an input word with a constant determines the values that may reverse it: the
//! constant, its neighbours, its bits. If earlier branches on the path test the same word, values that keep their
//! outcomes are preferred. So conditions that random values would never satisfy are satisfied one after the other,
//! each starting from an input that satisfies the previous ones.

use std::cell::Cell;
use std::collections::BTreeSet;

use tamis_abi::Word;
use tamis_bpf::insn::{AluOp, Operand};
use tamis_bpf::{Op, Pc, Program, Test, interp};

use crate::side::{Words, data};

/// The most earlier forks that are considered when a fork is reversed: long lists test the same word thousands of
/// times.
const MAX_EARLIER: usize = 256;

/// Bits of a word of the input, as the content of A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bits {
    word: Word,
    mask: u32,
}

/// A test on the path of an input, of bits of a word against a constant.
#[derive(Clone, Copy, Debug)]
struct Question {
    bits: Bits,
    test: Test,
    k: u32,
}

/// A branch with two targets on the path of an input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fork {
    pub(crate) pc: Pc,
    pub(crate) outcome: bool,
    question: Option<Question>,
}

/// The path of an input through a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    pub(crate) executed: Vec<Pc>,
    pub(crate) forks: Vec<Fork>,
    /// The words that were loaded.
    pub(crate) words: BTreeSet<Word>,
}

impl Fork {
    /// The word of the input that is compared, if any.
    pub(crate) fn word(&self) -> Option<Word> {
        self.question.map(|question| question.bits.word)
    }
}

impl Question {
    fn answer(self, value: u32) -> bool {
        self.test.holds(value & self.bits.mask, self.k)
    }

    /// Values near which the outcome changes, with the bits outside the mask as in `value`.
    fn candidates(self, value: u32) -> impl Iterator<Item = u32> {
        let Question { bits, k, .. } = self;
        let rest = value & !bits.mask;
        let lowest = k & k.wrapping_neg();
        let near = [
            k,
            k.wrapping_add(1),
            k.wrapping_sub(1),
            !k,
            lowest,
            value & !k,
            value | k,
            0,
            u32::MAX,
        ];
        near.into_iter()
            .map(move |near| near & bits.mask | rest)
            .chain((0..32).map(move |bit| value ^ 1 << bit))
    }
}

impl Path {
    /// Runs a program on an input, given as words by meaning.
    pub(crate) fn trace(program: &Program, words: &Words) -> Path {
        let mut path = Path::default();
        interp::run_traced(program, &data(words), &mut |pc| path.executed.push(pc));
        let (mut a, mut x): (Option<Bits>, Option<Bits>) = (None, None);
        for (index, pc) in path.executed.iter().enumerate() {
            match program.op(*pc) {
                Op::LoadData(offset) => {
                    let word = Word::from_offset(offset, program.endian());
                    path.words.extend(word);
                    a = word.map(|word| Bits {
                        word,
                        mask: u32::MAX,
                    });
                }
                Op::Alu(AluOp::And, Operand::K(k)) => {
                    a = a.map(|Bits { word, mask }| Bits {
                        word,
                        mask: mask & k,
                    });
                }
                Op::Tax => x = a,
                Op::Txa => a = x,
                Op::Alu(..) | Op::Neg | Op::LoadImm(_) | Op::LoadMem(_) | Op::LoadLen => a = None,
                Op::LoadXImm(_) | Op::LoadXMem(_) | Op::LoadXLen => x = None,
                Op::Branch {
                    test,
                    operand,
                    jt,
                    jf,
                } => {
                    let next = path.executed.get(index + 1).map_or(0, |next| next.0);
                    let question = match operand {
                        Operand::K(k) => a.map(|bits| Question { bits, test, k }),
                        Operand::X | Operand::Variable(_) => None,
                    };
                    if jt != jf {
                        path.forks.push(Fork {
                            pc: *pc,
                            outcome: next == pc.0 + 1 + usize::from(jt),
                            question,
                        });
                    }
                }
                Op::Store(_) | Op::StoreX(_) | Op::Jump(_) | Op::RetImm(_) | Op::RetA => {}
            }
        }
        path
    }

    /// Per word, the bits that are tested for being set.
    pub(crate) fn asked_bits(&self) -> impl Iterator<Item = (Word, u32)> {
        let questions = self.forks.iter().filter_map(|fork| fork.question);
        let for_bits = questions.filter(|question| question.test == Test::Set);
        for_bits.map(|Question { bits, k, .. }| (bits.word, bits.mask & k))
    }

    /// The input with one word changed so that a fork of its path is reversed: preferably with all earlier forks on
    /// that word unchanged. `None` if the fork does not test a word, or no candidate reverses it. Also the number of
    /// questions that were evaluated.
    pub(crate) fn turned(&self, fork: usize, words: &Words) -> (Option<Words>, u64) {
        let Some(wanted) = self.forks[fork].question else {
            return (None, 0);
        };
        let tried = Cell::new(0);
        let word = wanted.bits.word;
        let value = words[word.index()];
        let near = self.forks[..fork].iter().rev().take(MAX_EARLIER);
        let questions = near.filter_map(|fork| fork.question);
        let earlier: Vec<Question> = questions
            .filter(|question| question.bits.word == word)
            .collect();
        let turns = |candidate: &u32| {
            tried.set(tried.get() + 1);
            wanted.answer(*candidate) != self.forks[fork].outcome
        };
        let keeps = |candidate: &u32| {
            let same = |question: &Question| {
                tried.set(tried.get() + 1);
                question.answer(*candidate) == question.answer(value)
            };
            earlier.iter().all(same)
        };
        let all = || {
            let near_earlier = earlier.iter().flat_map(|earlier| earlier.candidates(value));
            wanted.candidates(value).chain(near_earlier)
        };
        let found = all().find(|candidate| turns(candidate) && keeps(candidate));
        let found = found.or_else(|| all().find(turns));
        let turned = found.map(|found| {
            let mut turned = *words;
            turned[word.index()] = found;
            turned
        });
        (turned, tried.get())
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::Endian;

    use super::*;

    #[test]
    fn a_fork_is_turned_without_turning_earlier_ones() {
        let ops = [
            Op::LoadData(16),
            Op::branch(Test::Ge, 100, 0, 3),
            Op::branch(Test::Gt, 200, 2, 0),
            Op::branch(Test::Set, 0x13, 0, 1),
            Op::RetImm(1),
            Op::RetImm(2),
        ];
        let insns = ops.map(Into::into).to_vec();
        let program = Program::new(insns, Endian::Little).unwrap();
        let mut words = [0; 16];
        words[4] = 128;
        let path = Path::trace(&program, &words);
        let outcomes: Vec<bool> = path.forks.iter().map(|fork| fork.outcome).collect();
        assert_eq!(outcomes, [true, false, false]);
        for fork in 0..3 {
            let turned = path.turned(fork, &words).0.unwrap();
            let after = Path::trace(&program, &turned);
            assert_eq!(after.forks[fork].outcome, !outcomes[fork]);
            let earlier = after.forks.iter().zip(&outcomes).take(fork);
            for (after, before) in earlier {
                assert_eq!(after.outcome, *before, "{turned:?}");
            }
        }
    }
}
