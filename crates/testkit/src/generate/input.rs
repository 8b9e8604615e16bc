//! Inputs near the constants of programs, with any architecture and number.
//!
//! Every word is drawn from the constants with which the programs compare *that* word - judged by the last load
//! before the comparison - and their neighbours; occasionally from all values.

use std::collections::BTreeMap;

use tamis_abi::{SeccompData, Word};
use tamis_bpf::{Op, Operand, Program};

use crate::rng::Rng;

/// The constants with which some programs compare each word.
#[derive(Clone, Debug, Default)]
pub struct Neighbourhood {
    by_word: BTreeMap<Word, Vec<u32>>,
    anywhere: Vec<u32>,
}

impl Neighbourhood {
    /// The constants of these programs.
    pub fn from_programs(programs: &[&Program]) -> Neighbourhood {
        let mut found = Neighbourhood::default();
        for program in programs {
            let mut word = None;
            for op in program.ops() {
                let constant = match op {
                    Op::LoadData(offset) => {
                        word = Word::from_offset(offset, program.endian());
                        continue;
                    }
                    Op::Branch {
                        operand: Operand::K(k),
                        ..
                    }
                    | Op::Alu(_, Operand::K(k))
                    | Op::LoadImm(k)
                    | Op::LoadXImm(k) => k,
                    _ => continue,
                };
                found.anywhere.push(constant);
                if let Some(word) = word {
                    found.by_word.entry(word).or_default().push(constant);
                }
            }
        }
        found
    }

    /// An input whose words are near the constants.
    pub fn draw(&self, rng: &mut Rng) -> SeccompData {
        let mut data = SeccompData::default();
        for word in Word::all() {
            let own = self.by_word.get(&word).map_or(&[][..], Vec::as_slice);
            let value = match rng.range(0..=19) {
                0 => rng.interesting_u64() as u32,
                1 if !self.anywhere.is_empty() => nearby(rng, *rng.clone().choose(&self.anywhere)),
                2 => 0,
                _ if own.is_empty() => *rng.choose(&[0, 1, u32::MAX]),
                _ => nearby(rng, *rng.clone().choose(own)),
            };
            data = data.with_word(word, value);
        }
        if rng.chance(1, 4) {
            // Equal arguments, for comparisons between arguments.
            data.args[rng.index(6)] = data.args[rng.index(6)];
        }
        data
    }
}

fn nearby(rng: &mut Rng, value: u32) -> u32 {
    match rng.range(0..=9) {
        0 => value.wrapping_add(1),
        1 => value.wrapping_sub(1),
        2 => value ^ 1 << rng.range(0..=31),
        3 => !value,
        _ => value,
    }
}
