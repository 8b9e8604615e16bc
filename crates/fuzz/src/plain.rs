//! Random calls without coverage: as many as the fastest evaluators can answer.
//!
//! Once the guided start of a campaign has nothing queued, its kept inputs are the bases of random changes. An
//! evaluator that records no coverage takes a few nanoseconds, so making an input must not take longer: between two
//! evaluations one word gets a value from a pool, with one random number and without a branch, and every few inputs the
//! base is back. The pools hold the dictionary, and values near it and at random that are replaced bit by bit.
//!
//! Inputs that reach something new are not noticed: the campaign's coverage remains that of the start.

use tamis_abi::{Arch, Word};

use crate::campaign::{Campaign, Found, pick};
use crate::dictionary::Dictionary;
use crate::rng::Rng;
use crate::side::{Words, data};

/// The evaluations with one base.
const BLOCK: u64 = 1024;
/// The inputs from one return to the base to the next: the last of them has as many changes. Every second walk begins
/// with another number, so that arguments change several times for a number.
const WALK: u64 = 8;
/// The places from which the word to change is drawn; a power of two.
const SLOTS: usize = 64;
/// One slot in so many is for any word, the others for the arguments that the programs read.
const ANY_WORD: usize = 8;
/// The values of all pools together that a block replaces.
const FRESH: usize = 16;
/// The least and the greatest size of a pool.
const POOL: (usize, usize) = (64, 8192);

/// Most numbers of calls are below.
const USUAL_NUMBERS: u32 = 512;

/// The values that words are changed to.
pub(crate) struct Pools {
    /// The pools of all words, one behind the other.
    values: Vec<u32>,
    pools: [Pool; Word::COUNT],
}

/// The pool of a word.
#[derive(Clone, Copy, Default)]
struct Pool {
    word: u8,
    /// Where it begins.
    first: u32,
    /// Its size, a power of two, minus one.
    mask: u32,
    /// How many of its values, the first, are the dictionary's.
    fixed: u32,
}

fn is_argument(word: &Word) -> bool {
    ![Word::NR, Word::ARCH].contains(word)
}

/// Whether a number is that of a call of most architectures, with or without the bit of x32.
fn is_usual(nr: u32) -> bool {
    nr & !Arch::X32_BIT < USUAL_NUMBERS
}

impl Pools {
    fn new(dictionary: &Dictionary) -> Pools {
        let mut values = Vec::new();
        let mut pools = [Pool::default(); Word::COUNT];
        for (word, pool) in pools.iter_mut().enumerate() {
            let own = dictionary.values_at(word);
            let (least, most) = POOL;
            let len = (own.len() * 2).next_power_of_two().clamp(least, most);
            *pool = Pool {
                word: word as u8,
                first: values.len() as u32,
                mask: len as u32 - 1,
                fixed: own.len().min(len * 7 / 8) as u32,
            };
            values.extend(own.iter().copied().take(len));
            // All values are in it once. More often those that calls have: numbers near each other, which evaluators
            // look up at once, not the complements of numbers.
            let usual: Vec<u32> = match word == Word::NR.index() {
                true => own.iter().copied().filter(|nr| is_usual(*nr)).collect(),
                false => own.to_vec(),
            };
            let rest = len.saturating_sub(own.len());
            let more = if usual.is_empty() { own } else { &usual };
            values.extend(more.iter().copied().cycle().take(rest));
        }
        Pools { values, pools }
    }

    /// Replaces a value that isn't the dictionary's.
    fn refresh(&mut self, rng: &mut Rng) {
        let dice = rng.next_u64();
        let pool = self.pools[(dice & 15) as usize];
        let other = self.pools[(dice >> 4 & 15) as usize];
        let near = self.values[pool.first as usize + pick(dice >> 32, pool.fixed as usize)];
        let random = rng.next_u64();
        let value = match dice >> 8 & 3 {
            0 => near ^ 1 << (random & 31),
            1 => near.wrapping_add(random as u32 & 15).wrapping_sub(7),
            2 => self.values[other.first as usize + pick(random >> 32, other.fixed as usize)],
            _ => random as u32,
        };
        let free = (pool.mask + 1 - pool.fixed) as usize;
        let place = pool.fixed as usize + pick(dice >> 16, free);
        self.values[pool.first as usize + place] = value;
    }

    /// The pools to draw from, so that most changes are of the arguments that the programs read.
    fn slots(&self, looked_at: &[Word], rng: &mut Rng) -> [Pool; SLOTS] {
        let from = rng.next_u64() as usize;
        std::array::from_fn(|slot| {
            let turn = from.wrapping_add(slot);
            let word = match looked_at {
                [] => turn % Word::COUNT,
                _ if slot % ANY_WORD == 0 => {
                    (from >> 8).wrapping_add(slot / ANY_WORD) % Word::COUNT
                }
                looked_at => looked_at[turn % looked_at.len()].index(),
            };
            self.pools[word]
        })
    }

    /// Changes a word.
    #[inline]
    fn change(&self, words: &mut Words, slots: &[Pool; SLOTS], dice: u64) {
        let slot = &slots[dice as usize % SLOTS];
        let place = slot.first + ((dice >> 32) as u32 & slot.mask);
        words[usize::from(slot.word) % Word::COUNT] = self.values[place as usize];
    }
}

impl Campaign<'_> {
    /// Like [`run`](Self::run), but random calls are evaluated by these functions of the left and of the right side,
    /// and their coverage isn't recorded. The functions take the sixteen words of a call by meaning, as
    /// [`SeccompData::image`](tamis_abi::SeccompData::image) gives them for a little-endian machine, and return what
    /// the programs of [`side_programs`](Self::side_programs) do; allowing calls with or without data is one.
    ///
    /// # Panics
    /// If the functions differ for a call and the reference doesn't: they don't evaluate the sides.
    pub fn run_plain(
        &mut self,
        evaluations: u64,
        left: impl Fn(&[u32; 16]) -> u32,
        right: impl Fn(&[u32; 16]) -> u32,
    ) -> Option<Found> {
        let end = self.evaluations.saturating_add(evaluations);
        while self.evaluations < end {
            let found = match self.next_queued() {
                Some(words) => self.run_one(&words),
                None => self.run_block(BLOCK.min(end - self.evaluations), &left, &right),
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Evaluates changes of one kept input.
    fn run_block(
        &mut self,
        len: u64,
        left: &impl Fn(&[u32; 16]) -> u32,
        right: &impl Fn(&[u32; 16]) -> u32,
    ) -> Option<Found> {
        let mut pools = self
            .pools
            .take()
            .unwrap_or_else(|| Pools::new(&self.dictionary));
        for _ in 0..FRESH {
            pools.refresh(&mut self.rng);
        }
        let index = self.rng.index(self.kept.len().max(1));
        let (base, looked_at) = match self.kept.get(index) {
            Some(kept) => (kept.words, &kept.looked_at[..]),
            None => ([0; Word::COUNT], &[][..]),
        };
        let arguments: Vec<Word> = looked_at.iter().copied().filter(is_argument).collect();
        let slots = pools.slots(&arguments, &mut self.rng);
        let numbers = [pools.pools[Word::NR.index()]; SLOTS];
        let mut words = base;
        let mut found = None;
        let mut run = 0;
        while run < len && found.is_none() {
            if run % WALK == 0 {
                words = base;
            }
            let from = if run % (2 * WALK) == 0 {
                &numbers
            } else {
                &slots
            };
            pools.change(&mut words, from, self.rng.next_u64());
            let answers = [left(&words), right(&words)];
            if answers[0] != answers[1] && self.differs(&words, answers) {
                found = Some(data(&words));
            }
            run += 1;
        }
        self.pools = Some(pools);
        self.evaluations += run;
        self.work += run * self.work_of_run;
        found.map(|data| {
            let [left, right] = self.answers(&data);
            assert_ne!(left, right, "the evaluators alone differ for {data:x?}");
            self.confirm(&data, [left, right])
        })
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Action, Endian};
    use tamis_bpf::insn::{AluOp, Operand};
    use tamis_bpf::{Insn, Op, Program, interp};
    use tamis_prover::{Stop, Subject};

    use super::*;

    /// Kills for one number and one value of the first argument, and allows all else, without a branch that would lead
    /// there: a division by what is zero for them alone.
    fn kills_one_pair(nr: u32, value: u32) -> Program {
        let ops = [
            Op::LoadData(0),
            Op::Alu(AluOp::Xor, Operand::K(nr)),
            Op::Store(0),
            Op::LoadData(16),
            Op::Alu(AluOp::Xor, Operand::K(value)),
            Op::LoadXMem(0),
            Op::Alu(AluOp::Or, Operand::X),
            Op::Tax,
            Op::LoadImm(1),
            Op::Alu(AluOp::Div, Operand::X),
            Op::RetImm(Action::ALLOW.ret()),
        ];
        Program::new(ops.map(Insn::from).to_vec(), Endian::Little).unwrap()
    }

    #[test]
    fn a_difference_for_one_pair_of_number_and_argument_is_found_and_by_the_seed_alone() {
        let left = kills_one_pair(77, 0x0001_2345);
        let allow = Insn::from(Op::RetImm(Action::ALLOW.ret()));
        let right = Program::new(vec![allow], Endian::Little).unwrap();
        let subjects = [Subject::Program(&left), Subject::Program(&right)];
        let search = |seed| {
            let mut campaign = Campaign::new(subjects.each_ref(), seed).unwrap();
            assert_eq!(campaign.run_waiting(&Stop::default()), None);
            let [left, right] = [&left, &right]
                .map(|program| move |words: &[u32; 16]| interp::run_image(program, words).ret);
            let found = campaign.run_plain(1_000_000, left, right);
            (found, campaign.evaluations())
        };
        let mut counts = Vec::new();
        for seed in 0..8 {
            let (found, evaluations) = search(seed);
            let found = found.expect("a difference");
            assert_eq!((found.data.nr, found.data.args[0]), (77, 0x0001_2345));
            assert_eq!((found.left, found.right), (0, Action::ALLOW.ret()));
            assert_eq!(search(seed), (Some(found), evaluations));
            counts.push(evaluations);
        }
        counts.dedup();
        assert!(counts.len() > 1, "the seed decides: {counts:?}");
    }

    #[test]
    fn no_more_is_evaluated_than_asked_and_nothing_found_where_nothing_differs() {
        let program = kills_one_pair(7, 8);
        let subject = Subject::Program(&program);
        let mut campaign = Campaign::new([&subject, &subject], 1).unwrap();
        let run = |words: &[u32; 16]| interp::run_image(&program, words).ret;
        assert_eq!(campaign.run_plain(100_001, run, run), None);
        assert_eq!(campaign.evaluations(), 100_001);
    }
}
