//! The calls that an argument decision is expected to get.
//!
//! The cost of a decision depends on the calls that the filter gets. A profile may have recorded whole argument
//! lists, or the values of single arguments. Without a profile the calls are derived from the policy: every
//! alternative of every condition yields a call that takes it, with upper halves zero unless the condition restricts
//! them, and allowed calls count for more than denied ones. Calls preserve correlations that probabilities of single
//! values lose, such as a request that only occurs with one kind of descriptor. Steps are counted by evaluating the
//! decision for each call.

use std::cell::OnceCell;

use tamis_abi::{Action, SeccompData, Word};
use tamis_profile::Call;
use tamis_rules::IntervalSet;

use crate::cost::{keeps_word, question_steps};
use crate::dag::{Dag, Node, NodeId, Question};
use crate::diagram::Case;
use crate::formula::Formula;
use crate::split::{Expected, Point, Points};
use crate::tree::Run;

/// The most calls that one condition yields.
const MAX_WITNESSES: usize = 1024;

/// The most argument lists that are taken from the profile of one call.
const MAX_RECORDED: usize = 256;

/// The weight of all calls together that are derived from the policy and allowed.
const ALLOWED_WEIGHT: u64 = 1 << 24;

/// The same for actions other than allow: programs seldom make calls that are denied.
const DENIED_WEIGHT: u64 = 1 << 21;

/// The weight of all recorded calls together; calls that were not recorded still count a little.
const RECORDED_WEIGHT: u64 = 1 << 28;

/// A call with its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedCall {
    /// The words of `seccomp_data`; variables are zero.
    words: [u32; Word::COUNT],
    pub(crate) weight: u64,
}

impl ExpectedCall {
    fn from_data(data: &SeccompData, weight: u64) -> ExpectedCall {
        let mut words = [0; Word::COUNT];
        for word in Word::all() {
            words[word.index()] = data.word(word);
        }
        ExpectedCall { words, weight }
    }

    /// The value of a word.
    #[inline]
    pub(crate) fn word(&self, word: Word) -> u32 {
        self.words.get(word.index()).copied().unwrap_or(0)
    }

    /// Whether the answer to a question about a word is yes.
    #[inline]
    pub(crate) fn answer(&self, word: Word, question: Question) -> bool {
        question.answer(word, |word| self.word(word))
    }

    fn data(&self) -> SeccompData {
        Word::all().fold(SeccompData::default(), |data, word| {
            data.with_word(word, self.word(word))
        })
    }
}

/// The calls that a decision is expected to get, and the values of words in them. Decisions are made one after the
/// other with the same memory.
#[derive(Debug, Default)]
pub(crate) struct ExpectedCalls {
    list: Vec<ExpectedCall>,
    points: [OnceCell<Points>; Word::COUNT],
    /// During the search: witnesses that satisfy the case, and witnesses that satisfy no case so far.
    taken: Witnesses,
    missed: Witnesses,
}

impl ExpectedCalls {
    /// Finds the calls that a list of cases is expected to get, given recorded calls. Linear in the cases, except for
    /// a constant number of calls.
    pub(crate) fn find(&mut self, cases: &[Case], default: u32, seen: &[&Call]) {
        let ExpectedCalls {
            list,
            points,
            taken,
            missed,
        } = self;
        list.clear();
        for points in points {
            points.take();
        }
        missed.clear();
        missed.push(Witness::default());
        for case in cases {
            taken.clear();
            taken.extend_from_slice(missed);
            zip_with(taken, &case.when, true);
            add(list, taken, case.ret);
            zip_with(missed, &case.when, false);
        }
        add(list, missed, default);
        if !seen.is_empty() {
            let recorded = recorded(list, seen);
            list.extend(recorded);
        }
    }

    /// The calls.
    pub(crate) fn list(&self) -> &[ExpectedCall] {
        &self.list
    }

    /// The values of a word; computed on the first use.
    pub(crate) fn values(&self, word: Word) -> impl Expected {
        Values {
            samples: self,
            word,
        }
    }

    fn points(&self, word: Word) -> &Points {
        self.points[word.index()].get_or_init(|| {
            let point = |sample: &ExpectedCall| Point {
                value: sample.word(word),
                weight: sample.weight,
            };
            Points::new(self.list.iter().map(point).collect())
        })
    }
}

/// The values of a word in all samples.
struct Values<'a> {
    samples: &'a ExpectedCalls,
    word: Word,
}

impl Expected for Values<'_> {
    fn whole(&self) -> u64 {
        self.samples.points(self.word).whole()
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        self.samples.points(self.word).points()
    }

    fn weigh(&self, runs: &mut [Run]) {
        self.samples.points(self.word).weigh(runs);
    }
}

/// Words with their values; all other words are zero.
#[derive(Clone, Copy, Debug, Default)]
struct Witness {
    values: [u32; Word::COUNT],
    /// The words with values, as a bit set by index.
    is_said: u16,
}

impl Witness {
    /// A witness with one word.
    fn for_value(word: Word, value: u32) -> Witness {
        let mut witness = Witness::default();
        witness.values[word.index()] = value;
        witness.is_said = 1 << word.index();
        witness
    }

    /// Adds the values of another, which replace its own where both have one.
    fn add(&mut self, other: &Witness) {
        let mut left = other.is_said;
        while let Some(index) = left.checked_ilog2() {
            left ^= 1 << index;
            self.values[index as usize] = other.values[index as usize];
        }
        self.is_said |= other.is_said;
    }
}

/// The mean number of executed instructions of a decision in sixteenths, with the first load and the return, if it is
/// below the limit. Linear in samples times depth; stops when the limit is reached.
pub(crate) fn mean_steps_x16(
    dag: &Dag,
    root: NodeId,
    samples: &[ExpectedCall],
    limit: u64,
) -> Option<u64> {
    let weights = samples.iter().map(|sample| u128::from(sample.weight));
    let whole = weights.sum::<u128>().max(1);
    let mut sum_x16 = 0_u128;
    for sample in samples {
        sum_x16 += 16 * u128::from(sample.weight) * u128::from(steps(dag, root, sample));
        if sum_x16 >= u128::from(limit) * whole {
            return None;
        }
    }
    let mean = (sum_x16 / whole) as u64;
    (mean < limit).then_some(mean)
}

fn steps(dag: &Dag, root: NodeId, sample: &ExpectedCall) -> u64 {
    let mut held = None;
    let mut node = root;
    let mut steps = 1;
    while let Node::Ask {
        word,
        question,
        yes,
        no,
    } = dag.node(node)
    {
        steps += question_steps(question) + u64::from(held != Some(word));
        held = keeps_word(question).then_some(word);
        node = if sample.answer(word, question) {
            yes
        } else {
            no
        };
    }
    steps
}

type Witnesses = Vec<Witness>;

fn add(samples: &mut Vec<ExpectedCall>, witnesses: &[Witness], ret: u32) {
    let is_allowed = ret == Action::ALLOW.ret();
    let together = if is_allowed {
        ALLOWED_WEIGHT
    } else {
        DENIED_WEIGHT
    };
    let weight = together / witnesses.len().max(1) as u64;
    samples.extend(witnesses.iter().map(|witness| ExpectedCall {
        words: witness.values,
        weight,
    }));
}

/// Adds calls that satisfy the formula, or calls that don't: one for every alternative. Parts are treated as
/// independent.
fn find(found: &mut Witnesses, formula: &Formula, holds: bool) {
    match formula {
        Formula::True | Formula::False => {
            if (*formula == Formula::True) == holds {
                found.push(Witness::default());
            }
        }
        Formula::All(parts) | Formula::Any(parts) => {
            let start = found.len();
            let are_alternatives = matches!(formula, Formula::Any(_)) == holds;
            for part in parts {
                let middle = found.len();
                find(found, part, holds);
                if are_alternatives {
                    found.truncate(start + MAX_WITNESSES);
                } else {
                    zip(found, start, middle);
                }
            }
        }
        Formula::In(word, set) if holds => values(found, *word, set),
        Formula::In(word, set) => values(found, *word, &set.complement()),
        Formula::Asked {
            word,
            question,
            answer,
        } => found.push(answered(*word, *question, *answer == holds)),
    }
}

fn values(found: &mut Witnesses, word: Word, set: &IntervalSet<u32>) {
    /// The distance of a typical value from the first one of a longer interval.
    const INSIDE: u32 = 16;
    let intervals = set.intervals().iter().take(MAX_WITNESSES);
    found.extend(
        intervals
            .map(|(first, last)| Witness::for_value(word, first + INSIDE.min((last - first) / 2))),
    );
}

fn answered(word: Word, question: Question, answer: bool) -> Witness {
    let value = match question {
        Question::Eq(k) | Question::Ge(k) if answer => k,
        Question::Eq(k) => !k,
        Question::Ge(k) => k.saturating_sub(1),
        Question::AnySet(mask) if answer => mask & mask.wrapping_neg(),
        Question::AnySet(_) => 0,
        Question::Masked { value, .. } if answer => value,
        Question::Masked { mask, value } => value ^ (mask & mask.wrapping_neg()),
        Question::EqWord(_) | Question::GeWord(_) => u32::from(!answer),
        // The bound value is unknown: any word may give either answer.
        Question::EqVariable(_) | Question::GeVariable(_) | Question::GtVariable(_) => {
            u32::from(!answer)
        }
    };
    Witness::for_value(word, value)
}

/// Replaces a list of calls by calls that also take an alternative of a formula.
fn zip_with(list: &mut Witnesses, formula: &Formula, holds: bool) {
    let middle = list.len();
    find(list, formula, holds);
    zip(list, 0, middle);
}

/// Replaces two lists of calls, the second beginning at `middle`, by calls that take an alternative of both. Every
/// alternative of the longer list occurs, but not all combinations do.
fn zip(found: &mut Witnesses, start: usize, middle: usize) {
    let (left, right) = found[start..].split_at_mut(middle - start);
    if left.is_empty() || right.is_empty() {
        return;
    }
    if left.len() >= right.len() {
        for (left, right) in left.iter_mut().zip(right.iter().cycle()) {
            left.add(right);
        }
        found.truncate(middle);
        return;
    }
    for (left, right) in left.iter().cycle().zip(right) {
        let own = std::mem::replace(right, *left);
        right.add(&own);
    }
    found.drain(start..middle);
}

/// The recorded calls. Arguments without a recorded value are those of the other samples.
fn recorded(others: &[ExpectedCall], seen: &[&Call]) -> Vec<ExpectedCall> {
    let mut calls: Vec<(SeccompData, u64)> = Vec::new();
    for call in seen {
        let mut lists: Vec<_> = call.samples.iter().collect();
        lists.sort_by_key(|(args, count)| (std::cmp::Reverse(**count), **args));
        let mut rest = call.count;
        for (args, count) in lists.into_iter().take(MAX_RECORDED) {
            let data = SeccompData {
                args: *args,
                ..SeccompData::default()
            };
            calls.push((data, *count));
            rest = rest.saturating_sub(*count);
        }
        if !call.values.is_empty() && rest > 0 {
            calls.extend(by_values(others, call, rest));
        }
    }
    let whole: u128 = calls.iter().map(|(_, count)| u128::from(*count)).sum();
    let weight = |count| u128::from(RECORDED_WEIGHT) * u128::from(count) / whole.max(1);
    calls
        .into_iter()
        .map(|(data, count)| ExpectedCall::from_data(&data, weight(count) as u64))
        .collect()
}

/// Calls whose arguments have their recorded frequencies.
fn by_values(
    others: &[ExpectedCall],
    call: &Call,
    count: u64,
) -> impl Iterator<Item = (SeccompData, u64)> {
    let lists = call.value_lists();
    let each = count.div_ceil(lists.len() as u64);
    lists.enumerate().map(move |(rank, values)| {
        let other = others.get(rank % others.len().max(1));
        let mut data = other.map_or_else(SeccompData::default, ExpectedCall::data);
        for (arg, value) in data.args.iter_mut().zip(values) {
            *arg = value.unwrap_or(*arg);
        }
        (data, each)
    })
}

#[cfg(test)]
mod tests {
    use tamis_abi::ArgIndex;

    use super::*;

    const LOW: Word = Word::IP_LOW;

    fn expected(cases: &[Case], seen: &[&Call]) -> Vec<ExpectedCall> {
        let mut samples = ExpectedCalls::default();
        samples.find(cases, 0, seen);
        samples.list
    }

    fn is(value: u32) -> Formula {
        Formula::In(LOW, IntervalSet::single(value))
    }

    #[test]
    fn every_alternative_and_every_action_has_a_sample() {
        let cases = [Case {
            when: Formula::Any(vec![is(5), is(9)]),
            ret: Action::ALLOW.ret(),
        }];
        let samples = expected(&cases, &[]);
        let weight = |wanted: &dyn Fn(u32) -> bool| -> u64 {
            let of_value = samples.iter().filter(|sample| wanted(sample.word(LOW)));
            of_value.map(|sample| sample.weight).sum()
        };
        let (five, nine) = (weight(&|value| value == 5), weight(&|value| value == 9));
        let other = weight(&|value| value != 5 && value != 9);
        assert_eq!(five, nine);
        assert!(0 < other && other < five);
    }

    #[test]
    fn recorded_values_outweigh_what_the_policy_says() {
        let cases = [Case {
            when: Formula::In(Word::arg_low(ArgIndex::ALL[1]), IntervalSet::single(5)),
            ret: 1,
        }];
        let mut call = Call {
            count: 100,
            ..Call::default()
        };
        call.values.insert(1, [(7, 60), (8, 30)].into());
        let samples = expected(&cases, &[&call]);
        let weight = |value: u64| -> u64 {
            let of_value = samples
                .iter()
                .filter(|sample| sample.data().args[1] == value);
            of_value.map(|sample| sample.weight).sum()
        };
        assert!(weight(7) > weight(8) && weight(8) > weight(5));
        call.samples.insert([0, 5, 0, 0, 0, 0], 1000);
        let samples = expected(&cases, &[&call]);
        let most = samples.iter().max_by_key(|sample| sample.weight);
        assert_eq!(most.map(|sample| sample.data().args[1]), Some(5));
    }
}
