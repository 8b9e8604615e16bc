//! Inputs that distinguish a program from a ruleset: one for every combination of outcomes of their tests.
//!
//! Both read a call by tests of single 32-bit words against constants, with or without a mask; a 64-bit comparison of
//! a ruleset is a combination of such tests on its two halves. For one word the constants divide the numbers into
//! classes whose elements no test distinguishes:
//!
//! - plain comparisons form intervals: each constant, its neighbours, 0 and the largest number include an element of
//!   every interval;
//! - tests under one mask form one class for each tested value, and one for all other values of the masked bits: the
//!   values with one bit flipped include an element of it, unless it is empty.
//!
//! So if no word has both kinds or two masks - [`Tests::is_exhaustive`] - one element of each class per word, in all
//! combinations, is equivalent to all inputs. Otherwise the inputs are only directed ones.
//!
//! The tests of a program are found by evaluating it from its start with some words fixed, and following both sides
//! of every branch on another word.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::{Endian, SeccompData, Word};
use tamis_bpf::insn::{AluOp, Operand as Source};
use tamis_bpf::{Op, Pc, Program};
use tamis_rules::{Operand, Part, Section, Test};

use crate::rng::Rng;

/// The constants that each word is tested against.
#[derive(Clone, Debug, Default)]
pub struct Tests {
    /// The constants of plain comparisons.
    plain: BTreeMap<Word, BTreeSet<u32>>,
    /// The masks, with the tested values.
    masked: BTreeMap<Word, BTreeSet<(u32, u32)>>,
}

/// The abstract content of A during the evaluation of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Known(u32),
    Masked { word: Word, mask: u32 },
}

impl Tests {
    /// An empty set of tests.
    pub fn new() -> Tests {
        Tests::default()
    }

    /// Adds the tests of a program on words that are not fixed.
    ///
    /// # Panics
    /// If the program has instructions other than loads of data, masks, jumps, comparisons with constants and returns
    /// of constants; libseccomp's programs have no others.
    pub fn add_program(&mut self, program: &Program, fixed: &[(Word, u32)]) {
        let mut open = vec![(0, Value::Known(0))];
        let mut seen = BTreeSet::new();
        while let Some((pc, a)) = open.pop() {
            if !seen.insert((pc, a)) {
                continue;
            }
            match program.op(Pc(pc)) {
                Op::LoadData(offset) => {
                    let word = Word::from_offset(offset, Endian::Little).expect("a valid program");
                    let known = fixed.iter().find(|(fixed, _)| *fixed == word);
                    let mask = u32::MAX;
                    let a = known.map_or(Value::Masked { word, mask }, |(_, v)| Value::Known(*v));
                    open.push((pc + 1, a));
                }
                Op::Alu(AluOp::And, Source::K(k)) => {
                    let a = match a {
                        Value::Known(value) => Value::Known(value & k),
                        Value::Masked { word, mask } => Value::Masked {
                            word,
                            mask: mask & k,
                        },
                    };
                    open.push((pc + 1, a));
                }
                Op::Jump(skip) => open.push((pc + 1 + skip as usize, a)),
                Op::Branch {
                    test,
                    operand: Source::K(k),
                    jt,
                    jf,
                } => {
                    let (yes, no) = (pc + 1 + usize::from(jt), pc + 1 + usize::from(jf));
                    match a {
                        Value::Known(value) => {
                            open.push((if test.holds(value, k) { yes } else { no }, a));
                        }
                        Value::Masked { word, mask } => {
                            self.add(word, mask, k);
                            open.extend([(yes, a), (no, a)]);
                        }
                    }
                }
                Op::RetImm(_) => {}
                other => panic!("libseccomp never emits {other:?}"),
            }
        }
    }

    /// Adds the tests of the rules of a section on the arguments of a number.
    pub fn add_section(&mut self, section: &Section, nr: u32) {
        let rules = section.rules.iter();
        for rule in rules.filter(|rule| rule.syscalls.contains(nr)) {
            rule.when.tests().for_each(|test| self.add_test(test));
        }
    }

    /// Adds the borders of a section's sets of numbers.
    pub fn add_numbers(&mut self, section: &Section) {
        for rule in &section.rules {
            for (first, last) in rule.syscalls.intervals() {
                self.add(Word::NR, u32::MAX, *first);
                self.add(Word::NR, u32::MAX, *last);
            }
        }
    }

    /// Adds one constant with which a word is compared after a mask.
    pub fn add(&mut self, word: Word, mask: u32, constant: u32) {
        match mask {
            0 => {}
            u32::MAX => {
                self.plain.entry(word).or_default().insert(constant);
            }
            _ => {
                self.masked
                    .entry(word)
                    .or_default()
                    .insert((mask, constant));
            }
        }
    }

    fn add_test(&mut self, test: &Test) {
        match test {
            Test::Compare { operand, value, .. } => self.add_wide(*operand, u64::MAX, *value),
            Test::Masked {
                operand,
                mask,
                value,
            } => self.add_wide(*operand, *mask, *value),
            Test::In { operand, set } => {
                for (first, last) in set.intervals() {
                    self.add_wide(*operand, u64::MAX, *first);
                    self.add_wide(*operand, u64::MAX, *last);
                }
            }
            Test::Between { .. } => panic!("no profile compares arguments with each other"),
        }
    }

    fn add_wide(&mut self, operand: Operand, mask: u64, value: u64) {
        let (low, high) = operand.words();
        match operand.part {
            Part::Low => self.add(low, mask as u32, value as u32),
            Part::High => self.add(high, mask as u32, value as u32),
            Part::Full => {
                self.add(low, mask as u32, value as u32);
                self.add(high, (mask >> 32) as u32, (value >> 32) as u32);
            }
        }
    }

    /// Whether [`values`](Self::values) contains an element of every class of a word.
    pub fn is_exhaustive(&self, word: Word) -> bool {
        let masked = self.masked.get(&word).into_iter().flatten();
        let masks: BTreeSet<u32> = masked.map(|(mask, _)| *mask).collect();
        masks.is_empty() || masks.len() == 1 && !self.plain.contains_key(&word)
    }

    /// The words that are tested.
    pub fn words(&self) -> BTreeSet<Word> {
        self.plain
            .keys()
            .chain(self.masked.keys())
            .copied()
            .collect()
    }

    /// Elements of the classes of a word.
    pub fn values(&self, word: Word) -> BTreeSet<u32> {
        let mut values = BTreeSet::from([0, u32::MAX]);
        for constant in self.plain.get(&word).into_iter().flatten() {
            values.extend([
                constant.wrapping_sub(1),
                *constant,
                constant.wrapping_add(1),
            ]);
        }
        for (mask, value) in self.masked.get(&word).into_iter().flatten() {
            values.extend([*value, value | !mask]);
            let bits = (0..32).map(|bit| 1 << bit).filter(|bit| mask & bit != 0);
            values.extend(bits.map(|bit| value ^ bit));
        }
        values
    }

    /// All combinations of the values of all tested words, with other words as in `base`; a random choice of `limit`
    /// of them if there are more.
    pub fn inputs(&self, base: SeccompData, limit: usize, rng: &mut Rng) -> Vec<SeccompData> {
        let axes: Vec<(Word, Vec<u32>)> = self
            .words()
            .into_iter()
            .map(|word| (word, self.values(word).into_iter().collect()))
            .collect();
        let total = axes
            .iter()
            .try_fold(1_usize, |total, (_, values)| {
                total.checked_mul(values.len())
            })
            .unwrap_or(usize::MAX);
        let input = |mut pick: Box<dyn FnMut(usize) -> usize + '_>| {
            axes.iter().fold(base, |data, (word, values)| {
                data.with_word(*word, values[pick(values.len())])
            })
        };
        if total <= limit {
            let all = (0..total).map(|mut index| {
                input(Box::new(move |len| {
                    let digit = index % len;
                    index /= len;
                    digit
                }))
            });
            all.collect()
        } else {
            let some = (0..limit).map(|_| input(Box::new(|len| rng.index(len))));
            some.collect()
        }
    }
}
