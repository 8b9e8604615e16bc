//! Lower bounds: the fewest steps that programs of a stated kind take for the calls of a case.
//!
//! A call costs what its words cost and what finding its number costs. *Words*: a program whose answer
//! to a call changes with a word must load it, and what was loaded is used before the next load, or never;
//! so `k` words take `2k` steps, and the return of a constant one more. Which words matter is found by
//! changing them, one bit at a time. *Numbers*: one question is the use of the number counted above, all
//! others come on top. How many there are, if the number is loaded before any argument, depends on what may
//! be asked:
//!
//! - [`fewest_questions`] is about all programs that compare the number (`jeq`, `jge`, `jgt`) and ask for
//!   any of its bits (`jset`), anywhere and in any order. It looks at a few numbers only, the most
//!   frequent ones and what is next to them; a program that decides all numbers decides these, too, so
//!   what they take is a bound, exactly solved. It is weak where all numbers are equally frequent.
//! - [`fewest_with_bit_tests`] is the optimum of a smaller class, for all numbers: `jge` anywhere, on each
//!   path a given number of `jset`s of up to three bits below 512 and any above, and at the ends chains of
//!   up to five `jeq`, or a `jset` that decides. Where all numbers are equally frequent, a `jeq` before a
//!   `jge` or a `jset` gains nothing: the other question first leaves it to one side. With more such
//!   `jset`s programs may do better.
//!
//! Both leave out programs that calculate with the number: a mask and a comparison, or a table of bits
//! that is shifted by it, which the kernel's bitmap does not follow.

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

/// Larger numbers are not told from each other: no call has one.
const SIZE: usize = 512;

/// What is answered to the numbers of an architecture, and how frequent they are.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// By number; numbers with one answer have one index. The last stands for all larger ones.
    answer: Vec<usize>,
    /// By number; all together are 1.
    weight: Vec<f64>,
}

impl Numbers {
    /// The numbers of a case's calls, which are all of x86_64.
    ///
    /// # Panics
    /// If the prover gives up.
    pub fn of(case: &Case) -> Numbers {
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

/// The steps of the calls of a case without the questions about their numbers, at least: the loads, one
/// use of each, and the return.
pub fn fixed_steps(case: &Case) -> f64 {
    let (mut steps, mut whole) = (0.0, 0.0);
    for sample in case.calls.samples() {
        let words = 1 + other_words(&case.ruleset, &sample.data);
        steps += sample.weight * (2 * words) as f64;
        whole += sample.weight;
    }
    // With one use of the number less, which is a question, and the return.
    steps / whole
}

/// How many words besides the number matter to the answer.
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

/// The numbers next to this one that are answered in another way.
fn neighbours(numbers: &Numbers, nr: usize) -> BTreeSet<usize> {
    let differs = |other: &usize| numbers.answer[*other] != numbers.answer[nr];
    let (below, above) = ((0..nr).rev().find(differs), (nr..SIZE).find(differs));
    below.into_iter().chain(above).collect()
}
