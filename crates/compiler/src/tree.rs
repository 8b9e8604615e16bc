//! Search trees: one word, many intervals, one decision per interval.
//!
//! System call numbers, architectures and argument values are all split the same way. The word's line of values is cut
//! into [`Run`]s of equal decision. The tree that finds a value's run consists of comparisons `>= k` and `== k`, and of
//! bit tests. It minimises the [`Prices`]: executed questions weighted by frequency, mispredictions, and length.
//!
//! The method depends on the length of the line:
//!
//! - up to `SUBSET_RUNS` runs: the cheapest of all trees (`subsets`);
//! - up to `TABLE_RUNS`: dynamic programming over its contiguous parts (`table`). `layer` describes their leaves and
//!   heavy values, `costs` compares their cuts, and `parts` excludes the parts that no cheapest tree has;
//! - longer: cut at the weighted median. If length is the objective, a part with one decision, except for at most
//!   `MAX_CHAIN` single values, becomes a chain of equality questions.
//!
//! Bit tests have a module of their own, `bit_tests`. Every bound that excludes trees has a test in `tree/tests.rs`
//! that tries the excluded ones.
//!
//! Every run gets a minimum share of the weight, so that the depth stays logarithmic for uneven weights.

mod bit_tests;
mod costs;
mod layer;
mod parts;
mod subsets;
mod table;
#[cfg(test)]
mod tests;

use tamis_abi::Word;

use crate::cost::Prices;
use crate::dag::{Dag, NodeId, Question};
use crate::options::Effort;
use bit_tests::one_line::OneLineTests;
use bit_tests::rest::Grain;

/// The longest line of numbers that is solved by one table; cubic time.
const TABLE_RUNS: usize = 192;

/// The same for other words. They have many lines, and a cut at the median adds almost no cost to a long one.
const SHORT_TABLE_RUNS: usize = 48;

/// The longest chain of equality questions, if length is the objective. Longer chains would save few cuts and take many
/// steps.
const MAX_CHAIN: usize = 200;

/// The longest line whose trees are all searched; exponential time.
const SUBSET_RUNS: usize = 6;

/// The weight of a whole line in the unit of costs. A cost has 32 bits: the deepest tree of
/// `TABLE_RUNS` runs at the highest prices stays below.
const WHOLE: u32 = 1 << 20;

/// The minimum weight of a run is its fair share of the weight divided by this.
const FLOOR_SHARE: u32 = 1024;

/// Consecutive values of a word with one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first value. The run ends before the first value of the next run, the last run at the largest value.
    pub first: u32,
    /// The frequency of its values, relative to other runs.
    pub weight: u64,
    /// The decision.
    pub node: NodeId,
}

/// Adds the tree that decides by the value of `word`. The runs are ascending and begin with value 0. Adjacent runs of
/// one decision are merged, except that a heavy value in a run of its own may be tested before the others. `O(n log n)`
/// for `n` runs, times a constant that is quadratic in `TABLE_RUNS`.
pub fn search(dag: &mut Dag, word: Word, runs: &[Run], prices: Prices) -> NodeId {
    search_with(dag, word, runs, prices, Effort::Full)
}

/// The same as [`search`]; with effort `Quick`, without bit tests that leave a line.
pub(crate) fn search_with(
    dag: &mut Dag,
    word: Word,
    runs: &[Run],
    prices: Prices,
    effort: Effort,
) -> NodeId {
    let line = Line::new(word, runs, prices, effort);
    line.solve(dag, 0, line.spans.len())
}

/// Merges adjacent runs of one decision.
pub fn merge(runs: &[Run]) -> Vec<Run> {
    merge_unless(runs, |_| false)
}

/// Merges adjacent runs of one decision, unless one of them has to stay separate.
fn merge_unless(runs: &[Run], is_alone: impl Fn(usize) -> bool) -> Vec<Run> {
    let mut merged: Vec<Run> = Vec::with_capacity(runs.len());
    let mut was_alone = false;
    for (index, run) in runs.iter().enumerate() {
        let alone = is_alone(index);
        match merged.last_mut() {
            Some(last) if last.node == run.node && !alone && !was_alone => {
                last.weight = last.weight.saturating_add(run.weight);
            }
            _ => merged.push(*run),
        }
        was_alone = alone;
    }
    merged
}

/// A run with both ends, and its weight in units of [`WHOLE`].
#[derive(Clone, Copy, Debug)]
struct Span {
    first: u32,
    last: u32,
    weight: u32,
    node: NodeId,
}

impl Span {
    fn is_single(&self) -> bool {
        self.first == self.last
    }
}

struct Line {
    word: Word,
    spans: Vec<Span>,
    /// The runs before they were merged, with the frequencies of a span's values.
    grains: Vec<Grain>,
    prices: Prices,
    effort: Effort,
}

impl Line {
    fn new(word: Word, runs: &[Run], prices: Prices, effort: Effort) -> Line {
        let lasts = runs.iter().skip(1).map(|run| run.first - 1);
        let lasts: Vec<u32> = lasts.chain([u32::MAX]).collect();
        let whole: u128 = runs.iter().map(|run| u128::from(run.weight)).sum();
        let grain = |(run, last): (&Run, &u32)| Grain {
            first: run.first,
            last: *last,
            weight: run.weight,
        };
        let grains = runs.iter().zip(&lasts).map(grain).collect();
        let is_heavy = |index: usize| {
            let run = &runs[index];
            run.first == lasts[index]
                && u128::from(run.weight) * u128::from(table::HEAVY_SHARE) > whole
        };
        let merged = merge_unless(runs, is_heavy);
        let floor = WHOLE / FLOOR_SHARE / merged.len() as u32 + 1;
        let ends = merged.iter().skip(1).map(|run| run.first - 1);
        let spans = merged.iter().zip(ends.chain([u32::MAX]));
        let spans = spans.map(|(run, last)| Span {
            first: run.first,
            last,
            // At most WHOLE, which is a u32.
            weight: (u128::from(run.weight) * u128::from(WHOLE) / whole.max(1)) as u32 + floor,
            node: run.node,
        });
        Line {
            word,
            spans: spans.collect(),
            grains,
            prices,
            effort,
        }
    }

    fn solve(&self, dag: &mut Dag, from: usize, to: usize) -> NodeId {
        let spans = &self.spans[from..to];
        if spans.len() <= SUBSET_RUNS {
            return subsets::build(dag, self.word, spans, self.prices);
        }
        let is_number = self.word == Word::NR;
        let table_runs = if is_number {
            TABLE_RUNS
        } else {
            SHORT_TABLE_RUNS
        };
        if spans.len() <= table_runs {
            let bit_tests = (is_number && self.effort == Effort::Full)
                .then(|| OneLineTests::new(spans, &self.grains, 0, self.prices));
            return table::build(dag, self.word, spans, self.prices, bit_tests.as_ref());
        }
        if self.prices.is_about_length()
            && let Some(others) = background(spans)
        {
            return self.chain(dag, spans, others);
        }
        let at = self.median(from, to);
        let no = self.solve(dag, from, at);
        let yes = self.solve(dag, at, to);
        dag.ask(self.word, Question::Ge(self.spans[at].first), yes, no)
    }

    /// A chain of equality questions for the values with another decision than `others`: the shortest of all trees.
    fn chain(&self, dag: &mut Dag, spans: &[Span], others: NodeId) -> NodeId {
        let values = spans.iter().rev().filter(|span| span.node != others);
        values.fold(others, |rest, span| {
            dag.ask(self.word, Question::Eq(span.first), span.node, rest)
        })
    }

    /// The cut with the most nearly equal weights on both sides; both sides keep at least one run.
    fn median(&self, from: usize, to: usize) -> usize {
        let weight = |span: &Span| u64::from(span.weight);
        let whole: u64 = self.spans[from..to].iter().map(weight).sum();
        let mut left = 0;
        for at in from..to - 1 {
            left += weight(&self.spans[at]);
            let with_next = left + weight(&self.spans[at + 1]);
            if whole.abs_diff(2 * left) <= whole.abs_diff(2 * with_next) {
                return at + 1;
            }
        }
        to - 1
    }
}

/// The decision of all runs of more than one value, if they agree and the other values are few enough for a chain.
fn background(spans: &[Span]) -> Option<NodeId> {
    let mut wide = spans.iter().filter(|span| !span.is_single());
    let node = wide.next()?.node;
    let values = spans.iter().filter(|span| span.node != node).count();
    (values <= MAX_CHAIN && wide.all(|span| span.node == node)).then_some(node)
}

/// The cost of a question, given the weights of the answers yes and no.
fn question_cost(prices: Prices, yes: u32, no: u32) -> u32 {
    (yes + no) * prices.step + yes.min(no) * prices.miss + prices.insn
}
