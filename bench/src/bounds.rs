//! Lower bounds: the fewest steps of programs of a given class for the calls of a case.
//!
//! The steps of a call depend on the words that matter and on the decision by its number. *Words*: a program whose
//! result for a call changes with a word must load the word, and a loaded word is used before the next load, or
//! never; so `k` words take `2k` steps, and the return of a constant one more. The words that matter are found by
//! changing them, one bit at a time. *Numbers*: one question is the use of the number counted above, all others are
//! additional. If the number is loaded before any argument, their count depends on the class of questions:
//!
//! - [`fewest_questions`] is for all programs that compare the number (`jeq`, `jge`, `jgt`) and test any of its bits
//!   (`jset`), anywhere and in any order. It considers only a few numbers, the most frequent ones and their
//!   neighbours. A program that decides all numbers also decides these, so their exact optimum is a bound. It is weak
//!   if all numbers are equally frequent.
//! - [`fewest_with_bit_tests`] is the optimum of a smaller class, for all numbers: `jge` anywhere, on each path a
//!   given number of `jset`s of up to three bits below 512 and any above, and at the ends chains of up to five `jeq`,
//!   or a `jset` that decides. If all numbers are equally frequent, a `jeq` before a `jge` or a `jset` gains nothing:
//!   if the other question comes first, only one of its sides needs the `jeq`. With more such `jset`s programs may do
//!   better.
//!
//! Both exclude programs that calculate with the number: a mask and a comparison, or a table of bits that is shifted
//! by it, which the kernel's bitmap does not emulate.

use std::collections::BTreeSet;

use tamis_abi::{Arch, SeccompData, Word};
use tamis_analysis::{CaseLimits, Machine, cases};
use tamis_prover::{Limits, Space};
use tamis_rules::{Predicate, Ruleset};

use crate::goals::Case;

mod paths;
mod points;

pub use paths::fewest_with_bit_tests;
pub use points::fewest_questions;

/// Larger numbers count as one: no call has one.
const SIZE: usize = 512;

/// The actions for the numbers of an architecture, and their frequencies.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// By number; equal indices for equal actions. The last entry is for all larger numbers.
    answer: Vec<usize>,
    /// By number; the sum is 1.
    weight: Vec<f64>,
}

impl Numbers {
    /// The numbers of a case's calls, which are all of x86_64.
    ///
    /// # Panics
    /// If the prover reaches a limit.
    pub fn from_case(case: &Case) -> Numbers {
        let mut space = Space::new(Limits::default());
        let function = space.ruleset(&case.ruleset).expect("a policy is small");
        let cases = cases(&mut space, function, &CaseLimits::default());
        let cases = cases.expect("a policy is small").list;
        let own: Vec<_> = cases
            .iter()
            .filter(|case| case.machine == Machine::Known(Arch::X86_64))
            .collect();
        let mut known: Vec<Vec<(Option<&Predicate>, u32)>> = Vec::new();
        let answer = (0..=SIZE as u32).map(|nr| {
            let of_number = own.iter().filter(|case| case.numbers.contains(nr));
            let answer: Vec<_> = of_number
                .map(|case| (case.when.as_ref(), case.ret))
                .collect();
            let place = known.iter().position(|other| *other == answer);
            place.unwrap_or_else(|| {
                known.push(answer);
                known.len() - 1
            })
        });
        let answer = answer.collect();
        let samples = case.calls.samples();
        let whole: f64 = samples.iter().map(|sample| sample.weight).sum();
        let mut weight = vec![0.0; SIZE + 1];
        for sample in samples {
            weight[(sample.data.nr as usize).min(SIZE)] += sample.weight / whole;
        }
        Numbers { answer, weight }
    }
}

/// A lower bound of the steps of the calls of a case without the questions about their numbers: the loads, one use of
/// each, and the return.
pub fn fixed_steps(case: &Case) -> f64 {
    let (mut steps, mut whole) = (0.0, 0.0);
    for sample in case.calls.samples() {
        let words = 1 + other_words(&case.ruleset, &sample.data);
        steps += sample.weight * (2 * words) as f64;
        whole += sample.weight;
    }
    // Without one use of the number, which is a question, and with the return.
    steps / whole
}

/// The number of words, except the number, that affect the action.
fn other_words(ruleset: &Ruleset, data: &SeccompData) -> usize {
    let action = ruleset.decide(data).action;
    let matters = |word: &Word| {
        let value = data.word(*word);
        let changed = (0..u32::BITS).map(|bit| value ^ 1 << bit).chain([!value]);
        let mut changed = changed.map(|value| ruleset.decide(&data.with_word(*word, value)).action);
        changed.any(|other| other != action)
    };
    let others = Word::all().filter(|word| *word != Word::NR);
    others.filter(matters).count()
}

/// The numbers with a weight, the heaviest first.
fn heaviest(numbers: &Numbers) -> Vec<usize> {
    let mut heaviest: Vec<usize> = (0..SIZE).filter(|nr| numbers.weight[*nr] > 0.0).collect();
    heaviest.sort_by(|a, b| {
        numbers.weight[*b]
            .total_cmp(&numbers.weight[*a])
            .then(a.cmp(b))
    });
    heaviest
}

/// The numbers next to this one with another action.
fn neighbours(numbers: &Numbers, nr: usize) -> BTreeSet<usize> {
    let differs = |other: &usize| numbers.answer[*other] != numbers.answer[nr];
    let (below, above) = ((0..nr).rev().find(differs), (nr..SIZE).find(differs));
    below.into_iter().chain(above).collect()
}
