//! Compact storage for the programs of one family.
//!
//! The filters of one policy under different options have many instructions in common, and whole sequences of them. A
//! program is stored as *pieces*, sequences in a pool that all programs share; where that is smaller, the pool
//! contains indices into a dictionary of distinct instructions instead of instructions.
//!
//! Equal sequences may differ only in jump distances: with one call more, all jumps to the returns at the end of the
//! program are longer. A jump to a `ret` is therefore stored with the distance of that `ret` from the end, and with a
//! flag. A program is assembled by a loop over its pieces that converts these distances back. The stored programs
//! have been proved before; [`Shared::program`] returns them unchanged.

use std::collections::HashMap;

use tamis_bpf::Insn;

/// The number of bits of a piece for its count of instructions, less one: a program has at most 4096.
pub const COUNT_BITS: u32 = 12;

/// The bits of a stored instruction's code that mark a skip counted from the end, if the test holds and if it does not.
/// Codes have 8 bits. The skip is the stored value plus the number of following instructions, modulo 256, which needs
/// no branch.
pub const FROM_END_BITS: [u32; 2] = [8, 9];

/// The class of tests and jumps, the class of instructions that end a program, and the mask of either.
const CLASS_JMP: u16 = 5;
const CLASS_RET: u16 = 6;
const CLASS_BITS: u16 = 7;

/// The size of an instruction, of an index into the dictionary, and of a piece, in bytes.
const INSN_BYTES: usize = 8;
const WORD_BYTES: usize = 2;
const PIECE_BYTES: usize = 4;

/// The most places in the pool that are compared with the text to be stored.
const MAX_CANDIDATES: usize = 256;

/// Programs stored together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// The dictionary, or the pool itself.
    pub insns: Vec<Insn>,
    /// The pool as numbers in the dictionary.
    pub words: Option<Vec<u16>>,
    /// Sequences in the pool: the index of the first, shifted by [`COUNT_BITS`], and the count less one.
    pub pieces: Vec<u32>,
    /// For each program the end of its pieces; they begin at the end of the previous program's pieces.
    pub ends: Vec<usize>,
    /// For each program its length.
    pub lengths_insns: Vec<usize>,
}

impl Shared {
    /// Stores programs, none of them empty; `None` if a piece cannot represent its first index because they are too
    /// large.
    pub fn from_programs(programs: &[&[Insn]]) -> Option<Shared> {
        let lengths_insns: Vec<usize> = programs.iter().map(|program| program.len()).collect();
        let stored: Vec<Vec<Insn>> = programs
            .iter()
            .map(|program| counted_from_end(program))
            .collect();
        let (insns, numbered) = dictionary(&stored);
        let plain = Pool::from_programs(&numbered, PIECE_BYTES * 2 / INSN_BYTES + 1);
        let plain = plain.map(|pool| Shared {
            insns: pool
                .items
                .iter()
                .map(|item| insns[*item as usize])
                .collect(),
            words: None,
            pieces: pool.pieces,
            ends: pool.ends,
            lengths_insns: lengths_insns.clone(),
        });
        let pool = Pool::from_programs(&numbered, PIECE_BYTES * 2 / WORD_BYTES + 1);
        let worded = pool.and_then(|pool| {
            let words: Result<Vec<u16>, _> =
                pool.items.iter().map(|item| u16::try_from(*item)).collect();
            Some(Shared {
                insns,
                words: Some(words.ok()?),
                pieces: pool.pieces,
                ends: pool.ends,
                lengths_insns,
            })
        });
        [plain, worded]
            .into_iter()
            .flatten()
            .min_by_key(Shared::bytes)
    }

    /// The size of the tables in bytes.
    pub fn bytes(&self) -> usize {
        let words = self
            .words
            .as_ref()
            .map_or(0, |words| words.len() * WORD_BYTES);
        self.insns.len() * INSN_BYTES + words + self.pieces.len() * PIECE_BYTES
    }

    /// A stored program.
    pub fn program(&self, index: usize) -> Vec<Insn> {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let mut program = Vec::new();
        for piece in &self.pieces[start..self.ends[index]] {
            let first = (piece >> COUNT_BITS) as usize;
            let count = (piece & ((1 << COUNT_BITS) - 1)) as usize + 1;
            for place in first..first + count {
                let stored = match &self.words {
                    Some(words) => self.insns[usize::from(words[place])],
                    None => self.insns[place],
                };
                let behind = self.lengths_insns[index] - program.len() - 1;
                program.push(counted_from_here(stored, behind));
            }
        }
        program
    }
}

/// A program with jumps to a `ret` stored as distances from the end.
fn counted_from_end(program: &[Insn]) -> Vec<Insn> {
    let from_end = |skip: u8, pc: usize| {
        let target = pc + 1 + usize::from(skip);
        let ends = program.get(target)?.code & CLASS_BITS == CLASS_RET;
        let distance = u8::try_from(program.len() - target).ok()?;
        ends.then_some(distance.wrapping_neg())
    };
    let stored = program.iter().enumerate().map(|(pc, insn)| {
        let mut stored = *insn;
        // The first opcode of the class always jumps, by a 32-bit constant.
        if insn.code & CLASS_BITS != CLASS_JMP || insn.code == CLASS_JMP {
            return stored;
        }
        if let Some(skip) = from_end(insn.jt, pc) {
            stored.jt = skip;
            stored.code |= 1 << FROM_END_BITS[0];
        }
        if let Some(skip) = from_end(insn.jf, pc) {
            stored.jf = skip;
            stored.code |= 1 << FROM_END_BITS[1];
        }
        stored
    });
    stored.collect()
}

/// A stored instruction as an instruction of a program, followed by `behind` others.
fn counted_from_here(stored: Insn, behind: usize) -> Insn {
    let skip = |skip: u8, bit: u32| match stored.code >> bit & 1 {
        0 => skip,
        _ => skip.wrapping_add(behind as u8),
    };
    Insn {
        code: stored.code & 0xff,
        jt: skip(stored.jt, FROM_END_BITS[0]),
        jf: skip(stored.jf, FROM_END_BITS[1]),
        k: stored.k,
    }
}

/// The distinct instructions in order of their first use, and the programs as indices of them.
fn dictionary(programs: &[Vec<Insn>]) -> (Vec<Insn>, Vec<Vec<u32>>) {
    let mut insns = Vec::new();
    let mut numbers = HashMap::new();
    let mut number = |insn: &Insn| {
        *numbers.entry(*insn).or_insert_with(|| {
            insns.push(*insn);
            insns.len() as u32 - 1
        })
    };
    let numbered = programs
        .iter()
        .map(|program| program.iter().map(&mut number).collect());
    let numbered = numbered.collect();
    (insns, numbered)
}

/// Sequences of items that the programs consist of.
#[derive(Default)]
struct Pool {
    items: Vec<u32>,
    pieces: Vec<u32>,
    ends: Vec<usize>,
    /// The places of sequences of the shortest length that pays.
    places: HashMap<Vec<u32>, Vec<usize>>,
}

impl Pool {
    /// Stores programs as sequences; sequences of at least `min_items` are shared.
    fn from_programs(programs: &[Vec<u32>], min_items: usize) -> Option<Pool> {
        let mut pool = Pool::default();
        for program in programs {
            pool.add(program, min_items)?;
        }
        Some(pool)
    }

    fn add(&mut self, program: &[u32], min_items: usize) -> Option<()> {
        let first_piece = self.pieces.len();
        let mut at = 0;
        while at < program.len() {
            let (place, count) = match self.longest(&program[at..], min_items) {
                Some(found) => found,
                None => {
                    self.items.push(program[at]);
                    self.enter(min_items);
                    (self.items.len() - 1, 1)
                }
            };
            self.piece(first_piece, place, count)?;
            at += count;
        }
        self.ends.push(self.pieces.len());
        Some(())
    }

    /// The longest sequence of the pool that the rest of a program begins with, the first of several.
    fn longest(&self, rest: &[u32], min_items: usize) -> Option<(usize, usize)> {
        let places = self.places.get(rest.get(..min_items)?)?;
        let common = |place: &usize| {
            let pairs = self.items[*place..].iter().zip(rest);
            (
                *place,
                pairs.take_while(|(own, wanted)| own == wanted).count(),
            )
        };
        let candidates = places.iter().take(MAX_CANDIDATES).map(common);
        candidates.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }

    /// Indexes the last sequence of the shortest length.
    fn enter(&mut self, min_items: usize) {
        if let Some(start) = self.items.len().checked_sub(min_items) {
            self.places
                .entry(self.items[start..].to_vec())
                .or_default()
                .push(start);
        }
    }

    /// Adds a piece, or extends the last one.
    fn piece(&mut self, first_piece: usize, place: usize, count: usize) -> Option<()> {
        let max_count = 1 << COUNT_BITS;
        if let Some(last) = self.pieces[first_piece..].last_mut() {
            let last_count = (*last & (max_count - 1)) + 1;
            let end = (*last >> COUNT_BITS) + last_count;
            if end as usize == place && last_count as usize + count <= max_count as usize {
                *last += count as u32;
                return Some(());
            }
        }
        let first = u32::try_from(place)
            .ok()
            .filter(|place| *place < 1 << (32 - COUNT_BITS))?;
        self.pieces.push(first << COUNT_BITS | (count as u32 - 1));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::Endian;
    use tamis_testkit::generate::program::program;
    use tamis_testkit::rng::Rng;

    use super::*;

    #[test]
    fn programs_come_back_as_they_were() {
        let mut rng = Rng::from_bytes(&[7; 8]);
        for _ in 0..50 {
            let mut programs: Vec<Vec<Insn>> = Vec::new();
            for _ in 0..rng.range(1..=12) {
                let body_insns = rng.range(1..=60) as usize;
                let mut insns = program(&mut rng, body_insns, Endian::Little)
                    .insns()
                    .to_vec();
                if let (true, Some(earlier)) = (rng.chance(1, 2), programs.last()) {
                    insns.extend(earlier.iter().skip(rng.range(0..=5) as usize));
                }
                programs.push(insns);
            }
            let borrowed: Vec<&[Insn]> = programs.iter().map(Vec::as_slice).collect();
            let shared = Shared::from_programs(&borrowed).unwrap();
            for (index, program) in programs.iter().enumerate() {
                assert_eq!(shared.program(index), *program);
            }
        }
    }

    #[test]
    fn what_is_common_is_stored_once() {
        let mut rng = Rng::from_bytes(&[8; 8]);
        let common = program(&mut rng, 200, Endian::Little).insns().to_vec();
        let longer = [&common[..50], &common[..]].concat();
        let plain = (common.len() + longer.len()) * INSN_BYTES;
        let shared = Shared::from_programs(&[&common, &longer]).unwrap();
        assert!(
            shared.bytes() < plain * 6 / 10,
            "{} of {plain}",
            shared.bytes()
        );
        assert_eq!(shared.program(1), longer);
    }

    /// A dictionary and pieces have a cost, and a single program has few repetitions.
    #[test]
    fn a_program_alone_grows_by_no_more_than_a_piece() {
        let insns = program(&mut Rng::from_bytes(&[9; 8]), 3, Endian::Little)
            .insns()
            .to_vec();
        let shared = Shared::from_programs(&[&insns]).unwrap();
        assert!(shared.bytes() <= insns.len() * INSN_BYTES + PIECE_BYTES);
    }
}
