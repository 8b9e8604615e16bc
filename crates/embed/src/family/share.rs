//! Programs of one family stored together.
//!
//! The filters of one policy under different options have much in common: the same instructions, and whole
//! stretches of them. A program is stored as *pieces*, stretches of a pool that all share; where that is smaller,
//! the pool doesn't hold instructions but their numbers in a dictionary of those that differ.
//!
//! What makes stretches differ that mean the same is distances: a call more, and all jumps to the verdicts at the end of the
//! program are longer. So a jump to a `ret` is stored with the distance of that `ret` from the end, and a flag
//! says so. Putting a program together is a loop over its pieces that counts such distances back. What is stored was proved
//! before; [`Shared::program`] gives it back as it was.

use std::collections::HashMap;

use tamis_bpf::Insn;

/// How many bits of a piece say how many instructions it has, less one: a program has at most 4096.
pub const COUNT_BITS: u32 = 12;

/// Which bits of a stored instruction's code say that it skips to a place counted from the end, if its test
/// holds and if not. Codes have 8 bits. Such a skip is what has to be added to the number of instructions behind, modulo
/// 256, which takes no branch.
pub const FROM_END_BITS: [u32; 2] = [8, 9];

/// The class of instructions that test or jump, that of those which end a program, and the bits of either.
const CLASS_JMP: u16 = 5;
const CLASS_RET: u16 = 6;
const CLASS_BITS: u16 = 7;

/// How many bytes an instruction takes, a number in the dictionary, and a piece.
const INSN_BYTES: usize = 8;
const WORD_BYTES: usize = 2;
const PIECE_BYTES: usize = 4;

/// How many places are looked at that begin like what is to be stored.
const MAX_CANDIDATES: usize = 256;

/// Programs stored together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// The dictionary, or the pool itself.
    pub insns: Vec<Insn>,
    /// The pool as numbers in the dictionary.
    pub words: Option<Vec<u16>>,
    /// Stretches of the pool: the first place, shifted by [`COUNT_BITS`], and the count less one.
    pub pieces: Vec<u32>,
    /// For each program the end of its pieces; they begin where those of the program before end.
    pub ends: Vec<usize>,
    /// For each program its length.
    pub lengths_insns: Vec<usize>,
}

impl Shared {
    /// Stores programs, none of them empty; `None` if they are too many for a piece to say where it begins.
    pub fn of(programs: &[&[Insn]]) -> Option<Shared> {
        let lengths_insns: Vec<usize> = programs.iter().map(|program| program.len()).collect();
        let stored: Vec<Vec<Insn>> = programs
            .iter()
            .map(|program| counted_from_end(program))
            .collect();
        let (insns, numbered) = dictionary(&stored);
        let plain = Pool::of(&numbered, PIECE_BYTES * 2 / INSN_BYTES + 1);
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
        let pool = Pool::of(&numbered, PIECE_BYTES * 2 / WORD_BYTES + 1);
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

    /// How many bytes the tables take.
    pub fn bytes(&self) -> usize {
        let words = self
            .words
            .as_ref()
            .map_or(0, |words| words.len() * WORD_BYTES);
        self.insns.len() * INSN_BYTES + words + self.pieces.len() * PIECE_BYTES
    }

    /// A program as it was.
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

/// A program with the distance from the end where it jumps to a `ret`.
fn counted_from_end(program: &[Insn]) -> Vec<Insn> {
    let from_end = |skip: u8, pc: usize| {
        let target = pc + 1 + usize::from(skip);
        let ends = program.get(target)?.code & CLASS_BITS == CLASS_RET;
        let distance = u8::try_from(program.len() - target).ok()?;
        ends.then_some(distance.wrapping_neg())
    };
    let stored = program.iter().enumerate().map(|(pc, insn)| {
        let mut stored = *insn;
        // The first of the class jumps always, by a constant of 32 bits.
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

/// A stored instruction as it stands in a program with so many instructions behind it.
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

/// The instructions that differ, in the order in which they appear, and the programs as numbers of them.
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

/// Stretches of items that the programs are made of.
#[derive(Default)]
struct Pool {
    items: Vec<u32>,
    pieces: Vec<u32>,
    ends: Vec<usize>,
    /// Where stretches of the shortest length that pays begin.
    places: HashMap<Vec<u32>, Vec<usize>>,
}

impl Pool {
    /// Stores programs; stretches of at least `min_items` are looked for in what is stored already.
    fn of(programs: &[Vec<u32>], min_items: usize) -> Option<Pool> {
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

    /// The longest stretch of the pool that a program goes on with, the first of several.
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

    /// Enters the last stretch of the shortest length.
    fn enter(&mut self, min_items: usize) {
        if let Some(start) = self.items.len().checked_sub(min_items) {
            self.places
                .entry(self.items[start..].to_vec())
                .or_default()
                .push(start);
        }
    }

    /// Adds a piece, or makes the last one longer.
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
            let shared = Shared::of(&borrowed).unwrap();
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
        let shared = Shared::of(&[&common, &longer]).unwrap();
        assert!(
            shared.bytes() < plain * 6 / 10,
            "{} of {plain}",
            shared.bytes()
        );
        assert_eq!(shared.program(1), longer);
    }

    /// A dictionary and pieces cost something, and a single program has little in common with itself.
    #[test]
    fn a_program_alone_grows_by_no_more_than_a_piece() {
        let insns = program(&mut Rng::from_bytes(&[9; 8]), 3, Endian::Little)
            .insns()
            .to_vec();
        let shared = Shared::of(&[&insns]).unwrap();
        assert!(shared.bytes() <= insns.len() * INSN_BYTES + PIECE_BYTES);
    }
}
