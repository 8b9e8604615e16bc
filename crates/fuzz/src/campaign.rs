//! The fuzzing loop: changes inputs that reached something new, and runs them on both sides.
//!
//! An input that reaches something new is kept, and every branch on its path whose other outcome has not occurred is
//! reversed ([`crate::path`]); the resulting inputs are run first. Then follow the inputs near each kept one, which
//! detect errors by one, or in one bit, even if they reach nothing new. After that kept inputs are changed at random,
//! mostly in the words that their programs read, with values from the dictionary.

use std::collections::VecDeque;

use tamis_abi::{SeccompData, Word};
use tamis_bpf::{InvalidProgram, Program};
use tamis_prover::{Scope, Stop, Subject};

use crate::coverage::{Place, Proved};
use crate::dictionary::Dictionary;
use crate::path::Path;
use crate::plain::Pools;
use crate::rng::Rng;
use crate::side::{Filter, Side, Words, data, words};
use crate::witness::plain;

/// The number of changes of one kept input before another is chosen.
const CHANGES: u64 = 64;

/// The work of an evaluation of two empty programs, and the instructions of programs that add one to it: evaluation
/// executes few of them.
const WORK_OF_CALL: u64 = 32;
const INSNS_PER_WORK: usize = 16;

/// The most inputs from which a branch with only one outcome is reversed; after that random changes or the prover may
/// find the other outcome.
const MAX_TURNS: u8 = 32;

/// A call for which the subjects return different actions, simplified as far as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The call.
    pub data: SeccompData,
    /// The return value of the left subject, by the reference.
    pub left: u32,
    /// The return value of the right subject.
    pub right: u32,
}

/// A differential fuzzing campaign of two subjects.
///
/// ```
/// use tamis_abi::Endian;
/// use tamis_bpf::{Op, Operand, Program, Test};
/// use tamis_fuzz::Campaign;
/// use tamis_prover::{Stop, Subject};
/// let program = |k| {
///     let test = Op::branch(Test::Eq, k, 0, 1);
///     let ops = [Op::LoadData(0), test, Op::RetImm(0x7fff_0000), Op::RetImm(0)];
///     Program::new(ops.map(Into::into).to_vec(), Endian::Little).unwrap()
/// };
/// let programs = [program(39), program(40)];
/// let [left, right] = programs.each_ref().map(Subject::Program);
/// let mut campaign = Campaign::new([&left, &right], 1).unwrap();
/// let found = campaign.run(1000).unwrap();
/// assert!(found.data.nr == 39 || found.data.nr == 40);
/// ```
pub struct Campaign<'a> {
    pub(crate) sides: [Side<'a>; 2],
    pub(crate) dictionary: Dictionary,
    pub(crate) rng: Rng,
    pub(crate) kept: Vec<Kept>,
    /// What random calls without coverage are made of.
    pub(crate) pools: Option<Pools>,
    /// The number of kept inputs whose near inputs were run or queued.
    surrounded: usize,
    /// The inputs that are run before random ones.
    waiting: VecDeque<Words>,
    /// Per filter of both sides and per instruction: whether it was executed, and for a branch whether its test
    /// failed and whether it held.
    reached: Vec<Vec<Reached>>,
    /// Per filter, the prover's results for the rest.
    proved: Vec<Proved>,
    pub(crate) evaluations: u64,
    /// The calls and answers whose differences count.
    scope: Scope,
    pub(crate) work: u64,
    /// The work of an evaluation.
    pub(crate) work_of_run: u64,
}

/// The identity of a filter in a campaign.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilterId {
    /// Its side: 0 is the left side.
    pub(crate) side: usize,
    /// Its index on the side, the oldest first.
    pub(crate) index: usize,
    /// Its index among all filters, those of the left side first.
    number: usize,
}

/// The coverage of an instruction by kept inputs, by the reference interpreter.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    is_executed: bool,
    outcomes: [bool; 2],
    /// The number of inputs generated to reverse it.
    turns: u8,
}

/// An input that reached something new.
pub(crate) struct Kept {
    pub(crate) words: Words,
    /// The words that the subjects read.
    pub(crate) looked_at: Vec<Word>,
    /// Per word, the bits that they tested.
    asked_bits: Words,
}

impl Kept {
    /// The inputs near this one. For each word that was read: one more, one less, zero, each tested bit flipped, and
    /// the call with all other arguments zero.
    fn near(&self) -> Vec<Words> {
        let is_argument = |word: &usize| *word != Word::NR.index() && *word != Word::ARCH.index();
        let mut near = Vec::new();
        for word in self.looked_at.iter().map(|word| word.index()) {
            let value = self.words[word];
            let bits = (0..u32::BITS).map(|bit| 1 << bit);
            let asked = bits.filter(|bit| self.asked_bits[word] & bit != 0);
            let values = [value.wrapping_add(1), value.wrapping_sub(1), 0].into_iter();
            for value in values.chain(asked.map(|bit| value ^ bit)) {
                let mut words = self.words;
                words[word] = value;
                near.push(words);
            }
            let mut alone = self.words;
            for other in (0..Word::COUNT).filter(|other| is_argument(other) && *other != word) {
                alone[other] = 0;
            }
            near.push(alone);
        }
        near.retain(|words| *words != self.words);
        near
    }
}

impl Campaign<'_> {
    /// All filters, those of the left side first.
    pub(crate) fn filters(&self) -> Vec<FilterId> {
        let sides = self.sides.iter().enumerate();
        let places = sides.flat_map(|(side, of)| (0..of.filters.len()).map(move |at| (side, at)));
        let ids = places.enumerate().map(|(number, (side, index))| FilterId {
            side,
            index,
            number,
        });
        ids.collect()
    }

    /// The filters that are programs: policies have no instructions.
    pub(crate) fn programs(&self) -> Vec<FilterId> {
        let mut programs = self.filters();
        programs.retain(|id| !self.filter(*id).is_policy);
        programs
    }

    pub(crate) fn filter(&self, id: FilterId) -> &Filter {
        &self.sides[id.side].filters[id.index]
    }

    /// The prover's results for a filter.
    pub(crate) fn proved(&self, id: FilterId) -> &Proved {
        &self.proved[id.number]
    }

    pub(crate) fn proved_mut(&mut self, id: FilterId) -> &mut Proved {
        &mut self.proved[id.number]
    }

    /// Whether a kept input reached a place of a filter.
    pub(crate) fn is_reached(&self, id: FilterId, place: Place) -> bool {
        let reached = &self.reached[id.number][place.pc().0];
        match place {
            Place::Insn(_) => reached.is_executed,
            Place::Outcome(_, outcome) => reached.outcomes[usize::from(outcome)],
        }
    }
}

impl<'a> Campaign<'a> {
    /// A campaign without any runs. The same subjects and seed give the same campaign.
    ///
    /// # Errors
    /// If a policy is so large that even its translation to an input program is too long.
    pub fn new(subjects: [&Subject<'a>; 2], seed: u64) -> Result<Campaign<'a>, InvalidProgram> {
        let [left, right] = subjects.map(Side::new);
        let sides = [left?, right?];
        let filters = || sides.iter().flat_map(|side| &side.filters);
        let dictionary = Dictionary::from_programs(filters().map(|filter| &filter.program));
        let nothing = filters().map(|filter| vec![Reached::default(); filter.program.len()]);
        let reached: Vec<Vec<Reached>> = nothing.collect();
        let waiting = first_inputs(&dictionary).collect();
        let insns: usize = filters().map(|filter| filter.program.len()).sum();
        Ok(Campaign {
            sides,
            dictionary,
            rng: Rng::new(seed),
            kept: Vec::new(),
            pools: None,
            surrounded: 0,
            waiting,
            proved: vec![Proved::default(); reached.len()],
            reached,
            evaluations: 0,
            scope: Scope::default(),
            work: 0,
            work_of_run: WORK_OF_CALL + (insns / INSNS_PER_WORK) as u64,
        })
    }

    /// The same campaign, in which only differences within a scope count.
    #[must_use]
    pub fn within(self, scope: Scope) -> Campaign<'a> {
        Campaign { scope, ..self }
    }

    /// The work done so far: about the count of instructions run and of values tried to turn branches.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// The programs of the left and of the right side, the oldest first: of a policy its translation.
    pub fn side_programs(&self) -> [Vec<Program>; 2] {
        self.sides.each_ref().map(|side| {
            let programs = side.filters.iter().map(|filter| filter.program.clone());
            programs.collect()
        })
    }

    /// The number of inputs run on both sides.
    pub fn evaluations(&self) -> u64 {
        self.evaluations
    }

    /// The inputs that reached something new, in the order of discovery: together they reach every place that was
    /// reached.
    pub fn kept(&self) -> impl Iterator<Item = SeccompData> {
        self.kept.iter().map(|kept| data(&kept.words))
    }

    /// Runs the queued inputs: the first ones, and those that they lead to. These are some thousand, unless the
    /// caller cancels.
    pub fn run_waiting(&mut self, stop: &Stop) -> Option<Found> {
        while let Some(words) = self.waiting.pop_front() {
            if let Some(found) = self.run_one(&words) {
                return Some(found);
            }
            if stop.is_asked_for() {
                break;
            }
        }
        None
    }

    /// Whether inputs are queued.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Runs the queued inputs, those near kept inputs, and then random ones, until about this number of evaluations,
    /// or until the subjects return different actions for a call.
    ///
    /// # Panics
    /// If the fast evaluation contradicts the reference, which is a bug of tamis.
    pub fn run(&mut self, evaluations: u64) -> Option<Found> {
        let end = self.evaluations.saturating_add(evaluations);
        while self.evaluations < end {
            let found = match self.next_queued() {
                Some(words) => self.run_one(&words),
                None => self.run_changes(),
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The next input that is not random: a queued one, or one near a kept one.
    pub(crate) fn next_queued(&mut self) -> Option<Words> {
        if self.waiting.is_empty() && self.surrounded < self.kept.len() {
            self.waiting.extend(self.kept[self.surrounded].near());
            self.surrounded += 1;
        }
        self.waiting.pop_front()
    }

    /// Runs changes of one kept input.
    fn run_changes(&mut self) -> Option<Found> {
        let index = self.rng.index(self.kept.len().max(1));
        let (base, looked_at) = match self.kept.get(index) {
            Some(kept) => (kept.words, kept.looked_at.clone()),
            None => ([0; Word::COUNT], Vec::new()),
        };
        for _ in 0..CHANGES {
            let mut words = base;
            let dice = self.rng.next_u64();
            // One change with probability 1/2, two with 1/4, and so on; at most eight.
            for _ in 0..=(dice.trailing_ones().min(7)) {
                self.change(&mut words, &looked_at);
            }
            if let Some(found) = self.run_one(&words) {
                return Some(found);
            }
        }
        None
    }

    /// Changes a word, most often one that the subjects read.
    fn change(&mut self, words: &mut Words, looked_at: &[Word]) {
        let dice = self.rng.next_u64();
        let word = match looked_at {
            [] => Word::COUNT,
            _ if dice & 7 == 0 => Word::COUNT,
            looked_at => looked_at[pick(dice >> 32, looked_at.len())].index(),
        };
        // Any word, if none was selected.
        let word = if word < Word::COUNT {
            word
        } else {
            (dice >> 3 & 15) as usize
        };
        let values = self.dictionary.values_at(word);
        let random = self.rng.next_u64();
        words[word] = match dice >> 8 & 15 {
            0 => words[word] ^ 1 << (random & 31),
            1 => words[word].wrapping_add(random as u32 & 15).wrapping_sub(7),
            2 => random as u32,
            3 => words[random as usize & 15],
            _ => values[pick(random >> 32, values.len())],
        };
    }

    /// Runs an input on both sides.
    pub(crate) fn run_one(&mut self, words: &Words) -> Option<Found> {
        let [left, right] = &mut self.sides;
        let before = left.reached() + right.reached();
        let answers = [left.run(words), right.run(words)];
        self.evaluations += 1;
        self.work += self.work_of_run;
        if left.reached() + right.reached() != before {
            self.keep(words, answers);
        }
        (answers[0] != answers[1] && self.differs(words, answers))
            .then(|| self.confirm(&data(words), answers))
    }

    /// Whether different answers to an input count.
    pub(crate) fn differs(&self, words: &Words, [left, right]: [u32; 2]) -> bool {
        !self.scope.is_same(left, right) && self.scope.has(&data(words).into())
    }

    /// Keeps an input, and queues inputs that reverse branches on its path.
    pub(crate) fn keep(&mut self, words: &Words, answers: [u32; 2]) {
        assert_eq!(self.answers(&data(words)), answers, "{words:x?}");
        let filters = self.sides.iter().flat_map(|side| &side.filters);
        let (mut looked_at, mut asked_bits) = (Vec::new(), [0; Word::COUNT]);
        for (filter, reached) in filters.zip(&mut self.reached) {
            let path = Path::trace(&filter.program, words);
            self.work += 2 * path.executed.len() as u64;
            for pc in &path.executed {
                reached[pc.0].is_executed = true;
            }
            for fork in &path.forks {
                reached[fork.pc.0].outcomes[usize::from(fork.outcome)] = true;
            }
            for (index, fork) in path.forks.iter().enumerate() {
                let reached = &mut reached[fork.pc.0];
                if !reached.outcomes[usize::from(!fork.outcome)] && reached.turns < MAX_TURNS {
                    reached.turns += 1;
                    let (turned, tried) = path.turned(index, words);
                    self.work += tried;
                    self.waiting.extend(turned);
                }
            }
            for (word, bits) in path.asked_bits() {
                asked_bits[word.index()] |= bits;
            }
            looked_at.extend(path.words);
        }
        looked_at.sort_unstable();
        looked_at.dedup();
        self.kept.push(Kept {
            words: *words,
            looked_at,
            asked_bits,
        });
    }

    /// The return values of the reference.
    pub(crate) fn answers(&self, data: &SeccompData) -> [u32; 2] {
        let input = (*data).into();
        [0, 1].map(|side| self.sides[side].subject.answer(&input))
    }

    /// A difference confirmed by the reference, and simplified.
    pub(crate) fn confirm(&self, data: &SeccompData, answers: [u32; 2]) -> Found {
        assert_eq!(self.answers(data), answers, "{data:x?}");
        let is_one =
            |data: &SeccompData| self.scope.has(&(*data).into()) && self.answers(data) == answers;
        let data = plain(data, is_one);
        let [left, right] = answers;
        Found { data, left, right }
    }
}

/// A random index below `len`, which is at least 1, from 32 random bits.
pub(crate) fn pick(bits: u64, len: usize) -> usize {
    (((bits & 0xffff_ffff) * len as u64) >> 32) as usize
}

/// All numbers and all architectures of the dictionary, with all arguments zero and with all bits set.
fn first_inputs(dictionary: &Dictionary) -> impl Iterator<Item = Words> {
    let arches = dictionary.values(Word::ARCH).to_vec();
    let own = dictionary.arches().to_vec();
    let numbers = dictionary.values(Word::NR).to_vec();
    let all = arches.into_iter().map(|arch| (arch, 0));
    let each = own
        .into_iter()
        .flat_map(move |arch| numbers.clone().into_iter().map(move |nr| (arch, nr)));
    all.chain(each).flat_map(|(arch, nr)| {
        [0, u64::MAX].map(|arg| {
            words(&SeccompData {
                nr,
                arch,
                ip: arg,
                args: [arg; 6],
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use tamis_abi::ArgIndex;

    use super::*;

    #[test]
    fn near_an_input_one_word_is_by_one_or_by_one_tested_bit_otherwise() {
        let call = SeccompData {
            nr: 9,
            args: [5, 6, 0, 0, 0, 0],
            ..SeccompData::default()
        };
        let mut asked_bits = [0; Word::COUNT];
        asked_bits[Word::NR.index()] = 0x12;
        let kept = Kept {
            words: words(&call),
            looked_at: vec![Word::NR, Word::arg_low(ArgIndex::ALL[1])],
            asked_bits,
        };
        let near: Vec<SeccompData> = kept.near().iter().map(data).collect();
        let numbers = [10, 8, 0, 9 ^ 2, 9 ^ 16].map(|nr| SeccompData { nr, ..call });
        let plain = [[0; 6], [0, 6, 0, 0, 0, 0]].map(|args| SeccompData { args, ..call });
        let second = [7, 5, 0].map(|second| SeccompData {
            args: [5, second, 0, 0, 0, 0],
            ..call
        });
        let expected = numbers.into_iter().chain(plain).chain(second);
        assert_eq!(near.len(), 10);
        assert!(
            expected.into_iter().all(|call| near.contains(&call)),
            "{near:?}"
        );
    }
}
