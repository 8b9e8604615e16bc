//! Lower bounds: the fewest steps per call of any equivalent program.
//!
//! A program that returns different actions for different calls must distinguish them, and a conditional jump has two
//! sides. With `p` the share of calls that get an action, no program needs fewer than `Σ p·log2(1/p)` jumps on
//! average (C. E. Shannon, "A Mathematical Theory of Communication", 1948): the *entropy*. If an architecture has few
//! runs of numbers, the best search tree over them is computed instead, by dynamic programming over sets of runs; it
//! is exact for trees that compare the number with borders of runs, with runs of a single number and with the
//! heaviest numbers of the others.
//!
//! The bound also includes the fixed steps of every call: the return, the load of the number, the load of the
//! architecture if another one gets a different action, and one load and one jump if arguments matter. It includes no
//! other steps for distinguishing arguments, and no calls without a name.

use std::collections::BTreeMap;

use crate::meter::{NumberCost, Workload, measure_numbers};
use tamis_abi::{Arch, syscall};
use tamis_analysis::{Case, CaseLimits, Machine, cases};
use tamis_bpf::Program;
use tamis_prover::{LimitReached, Limits, Space};
use tamis_rules::{IntervalSet, Predicate};

/// The maximum number of runs for computing the best tree.
const MAX_EXACT_RUNS: usize = 12;

/// The method of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundKind {
    /// The entropy of the actions.
    Entropy,
    /// The best search tree over the runs.
    BestTree,
}

/// The steps of the calls of one architecture, and the fewest possible.
#[derive(Clone, Debug, PartialEq)]
pub struct ArchBound {
    /// The architecture.
    pub arch: Arch,
    /// The number of runs of numbers with one outcome.
    pub runs: usize,
    /// The steps per call of the workload.
    pub mean_steps: f64,
    /// The lower bound for any program.
    pub bound_steps: f64,
    /// The method of the bound.
    pub kind: BoundKind,
}

/// The outcome of some numbers: conditions and return values.
type Answer = Vec<(Option<Predicate>, u32)>;

/// Numbers of an architecture with their outcomes; several sets may have the same outcome.
#[derive(Default)]
struct Answers {
    by_numbers: Vec<(IntervalSet<u32>, usize)>,
}

/// Neighbouring numbers with one outcome, and their weight.
#[derive(Clone)]
struct WeightedRun {
    first: u32,
    last: u32,
    answer: usize,
    weight: f64,
}

impl WeightedRun {
    fn is_single(&self) -> bool {
        self.first == self.last
    }
}

/// Bounds for the calls of a workload by architecture; architectures without calls are omitted.
///
/// # Errors
/// If a limit of the prover is reached.
pub fn bounds(
    program: &Program,
    archs: &[Arch],
    workload: &Workload,
) -> Result<Vec<ArchBound>, LimitReached> {
    let mut space = Space::new(Limits::default());
    let function = space.program(program)?;
    let cases = cases(&mut space, function, &CaseLimits::default())?;
    let mut known: Vec<Answer> = Vec::new();
    let mut machines: Vec<(Machine, Answers)> = Vec::new();
    // The cases of a set of numbers are adjacent, and so are the numbers of an architecture.
    let same_numbers = |a: &Case, b: &Case| a.machine == b.machine && a.numbers == b.numbers;
    for group in cases.list.chunk_by(same_numbers) {
        let answer: Answer = group
            .iter()
            .map(|case| (case.when.clone(), case.ret))
            .collect();
        let place = known.iter().position(|other| *other == answer);
        let place = place.unwrap_or_else(|| {
            known.push(answer);
            known.len() - 1
        });
        let Case {
            machine, numbers, ..
        } = &group[0];
        if machines.last().is_none_or(|(last, _)| last != machine) {
            machines.push((machine.clone(), Answers::default()));
        }
        if let Some((_, answers)) = machines.last_mut() {
            answers.by_numbers.push((numbers.clone(), place));
        }
    }
    let is_conditional: Vec<bool> = known.iter().map(|answer| answer.len() > 1).collect();
    let costs = measure_numbers(std::slice::from_ref(program), workload, false);
    let bounds = archs.iter().filter_map(|arch| {
        let input = Measured {
            costs: &costs,
            arch: *arch,
            machines: &machines,
            is_conditional: &is_conditional,
        };
        input.bound()
    });
    Ok(bounds.collect())
}

/// The measured costs of an architecture, with the outcomes of its numbers.
struct Measured<'a> {
    costs: &'a [NumberCost],
    arch: Arch,
    machines: &'a [(Machine, Answers)],
    is_conditional: &'a [bool],
}

impl Measured<'_> {
    fn bound(&self) -> Option<ArchBound> {
        let own = self.answers_of(self.arch)?;
        let (mut steps, mut fixed, mut total) = (0.0, 0.0, 0.0);
        let mut by_answer: BTreeMap<usize, f64> = BTreeMap::new();
        let mut by_number: BTreeMap<u32, f64> = BTreeMap::new();
        let is_named = |cost: &&NumberCost| syscall::name(self.arch, cost.nr).is_some();
        let costs = self.costs.iter().filter(|cost| cost.arch == self.arch);
        for NumberCost { nr, executed, .. } in costs.filter(is_named) {
            let count = executed.calls;
            let Some(answer) = own.answer(nr.0) else {
                continue;
            };
            steps += executed.steps;
            total += count;
            *by_answer.entry(answer).or_default() += count;
            by_number.insert(nr.0, count);
            let asks_arch = self
                .machines
                .iter()
                .any(|(_, others)| others.answer(nr.0).is_some_and(|other| other != answer));
            let asks_arguments = self.is_conditional[answer];
            fixed += count * (1.0 + f64::from(u8::from(asks_arch)));
            fixed += count * 2.0 * f64::from(u8::from(asks_arguments));
        }
        if total == 0.0 {
            return None;
        }
        let runs = own.runs(&by_number);
        let first = runs.first().map(|run| run.answer);
        // If any number has another outcome, every call must be distinguished from it.
        let asks_number = runs.iter().any(|run| Some(run.answer) != first);
        let least = if asks_number { total } else { 0.0 };
        let (jumps, kind) = match runs.len() <= MAX_EXACT_RUNS {
            true => (
                best_tree(&with_heavy_apart(&runs, &by_number)),
                BoundKind::BestTree,
            ),
            false => (entropy(&by_answer, total).max(least), BoundKind::Entropy),
        };
        // Without a jump the number need not be loaded.
        let loads = if jumps > 0.0 { 1.0 } else { 0.0 };
        Some(ArchBound {
            arch: self.arch,
            runs: runs.len(),
            mean_steps: steps / total,
            bound_steps: loads + (fixed + jumps) / total,
            kind,
        })
    }

    fn answers_of(&self, arch: Arch) -> Option<&Answers> {
        let is_own = |machine: &Machine| match machine {
            Machine::Known(known) => *known == arch,
            Machine::Other(audits) => audits.contains(arch.audit()),
        };
        let found = self.machines.iter().find(|(machine, _)| is_own(machine));
        found.map(|(_, answers)| answers)
    }
}

impl Answers {
    fn answer(&self, nr: u32) -> Option<usize> {
        let found = self
            .by_numbers
            .iter()
            .find(|(numbers, _)| numbers.contains(nr));
        found.map(|(_, answer)| *answer)
    }

    /// Runs in order of number.
    fn runs(&self, weights: &BTreeMap<u32, f64>) -> Vec<WeightedRun> {
        let mut pieces: Vec<(u32, u32, usize)> = Vec::new();
        for (numbers, answer) in &self.by_numbers {
            let intervals = numbers.intervals().iter();
            pieces.extend(intervals.map(|(first, last)| (*first, *last, *answer)));
        }
        pieces.sort_unstable();
        let run = |(first, last, answer)| WeightedRun {
            first,
            last,
            answer,
            weight: weights.range(first..=last).map(|(_, weight)| weight).sum(),
        };
        pieces.into_iter().map(run).collect()
    }
}

/// Runs, with the heaviest numbers as runs of their own up to the limit: testing such a number can be cheaper than
/// testing the borders of its run.
fn with_heavy_apart(runs: &[WeightedRun], weights: &BTreeMap<u32, f64>) -> Vec<WeightedRun> {
    let mut pieces = runs.to_vec();
    let mut heavy: Vec<(u32, f64)> = weights.iter().map(|(nr, weight)| (*nr, *weight)).collect();
    heavy.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    for (nr, weight) in heavy {
        let holds = |piece: &WeightedRun| (piece.first..=piece.last).contains(&nr);
        let Some(at) = pieces.iter().position(holds) else {
            continue;
        };
        let whole = pieces[at].clone();
        let range = |first: u32, last: u32| weights.range(first..=last).map(|(_, weight)| weight);
        let side = |first: u32, last: u32| WeightedRun {
            first,
            last,
            answer: whole.answer,
            weight: range(first, last).sum(),
        };
        let mut cut = Vec::new();
        if whole.first < nr {
            cut.push(side(whole.first, nr - 1));
        }
        cut.push(WeightedRun {
            first: nr,
            last: nr,
            answer: whole.answer,
            weight,
        });
        if nr < whole.last {
            cut.push(side(nr + 1, whole.last));
        }
        if pieces.len() - 1 + cut.len() > MAX_EXACT_RUNS {
            break;
        }
        pieces.splice(at..=at, cut);
    }
    pieces
}

/// The least number of jumps that distinguish the outcomes, summed over all calls.
fn entropy(by_answer: &BTreeMap<usize, f64>, total: f64) -> f64 {
    by_answer
        .values()
        .map(|weight| weight * (total / weight).log2())
        .sum()
}

/// The number of jumps of the best tree, summed over all calls. Exponential in the runs.
fn best_tree(runs: &[WeightedRun]) -> f64 {
    let full = (1_usize << runs.len()) - 1;
    let mut best = vec![0.0_f64; full + 1];
    for set in 1..=full {
        let members = || (0..runs.len()).filter(move |run| set >> run & 1 == 1);
        let first = members().next().map(|run| runs[run].answer);
        if members().all(|run| Some(runs[run].answer) == first) {
            continue;
        }
        let weight: f64 = members().map(|run| runs[run].weight).sum();
        let borders = (1..runs.len()).map(|border| (1 << border) - 1);
        let singles = members().filter(|run| runs[*run].is_single());
        let sides = borders.chain(singles.map(|run| 1 << run));
        let below = sides
            .map(|side| (set & side, set & !side))
            .filter(|(yes, no)| *yes != 0 && *no != 0)
            .map(|(yes, no)| best[yes] + best[no])
            .fold(f64::INFINITY, f64::min);
        best[set] = weight + below;
    }
    best[full]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(answers_and_weights: &[(usize, f64)]) -> Vec<WeightedRun> {
        let run = |(nr, (answer, weight)): (u32, &(usize, f64))| WeightedRun {
            first: nr,
            last: nr,
            answer: *answer,
            weight: *weight,
        };
        (0..).zip(answers_and_weights).map(run).collect()
    }

    #[test]
    fn four_equal_answers_take_two_questions_each() {
        let four = runs(&[(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0)]);
        assert_eq!(best_tree(&four), 8.0);
        let by_answer = (0..4).map(|answer| (answer, 1.0)).collect();
        assert_eq!(entropy(&by_answer, 4.0), 8.0);
    }

    #[test]
    fn a_hot_number_is_asked_for_first() {
        let skewed = runs(&[(0, 1.0), (1, 98.0), (0, 1.0)]);
        assert_eq!(best_tree(&skewed), 100.0);
    }

    #[test]
    fn a_hot_number_within_a_run_is_asked_for_alone() {
        let run = |first, last, answer, weight| WeightedRun {
            first,
            last,
            answer,
            weight,
        };
        let runs = [
            run(0, 9, 0, 1.0),
            run(10, 19, 1, 100.0),
            run(20, 29, 0, 1.0),
        ];
        let weights = BTreeMap::from([(5, 1.0), (15, 98.0), (17, 2.0), (25, 1.0)]);
        assert_eq!(best_tree(&runs), 102.0 + 101.0);
        let apart = with_heavy_apart(&runs, &weights);
        assert!(apart.len() <= MAX_EXACT_RUNS);
        // One question for 98 of 102 calls.
        assert!(best_tree(&apart) < 98.0 + 4.0 * 4.0);
    }

    #[test]
    fn one_answer_takes_no_question() {
        assert_eq!(best_tree(&runs(&[(5, 3.0), (5, 4.0)])), 0.0);
    }
}
