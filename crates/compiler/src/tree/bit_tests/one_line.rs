//! Bit tests that decide if the answer is yes; if it is no, a line of few runs remains.
//!
//! They pay where single numbers stand out from a neighbourhood of one decision. Of the numbers 0 to 102 without 41 and
//! 56, one question decides all that have bit 1, 2 or 6; 41, 56 and fourteen other numbers remain. The bits follow from
//! the part and the decision: all bits of the decision's values that no other value has. The remaining line has the
//! values without these bits.
//!
//! For each first run one sweep over the following [`MAX_RUNS`] runs finds the tests. The cost of the remaining line
//! isn't computed but bounded from above: by halving, or by a chain of equality questions.

use super::rest::{Grain, Rest};
use super::two_decisions::bits_of;
use crate::cost::Prices;
use crate::dag::NodeId;
use crate::tree::{Span, question_cost};

/// The longest part, in runs: longer ones rarely have a bit that no other value has.
const MAX_RUNS: usize = 12;

/// The minimum number of runs of other decisions: a single one takes at most two questions anyway.
const MIN_OTHERS: u32 = 2;

/// The bit tests of a line.
pub(in crate::tree) struct OneLineTests<'a> {
    /// The line.
    pub(in crate::tree) rest: Rest<'a>,
    prices: Prices,
    /// Ordered by first run.
    tests: Vec<OneLineTest>,
    /// By first run, the index of its first test; with one more entry for the end.
    starts: Vec<usize>,
}

/// A bit test for a part of a line.
#[derive(Clone, Copy, Debug)]
pub(in crate::tree) struct OneLineTest {
    /// The first run of the part.
    pub(in crate::tree) first: usize,
    /// The last run of the part.
    pub(in crate::tree) last: usize,
    /// The bits.
    pub(in crate::tree) bits: u32,
    /// The decision of all values with one of them.
    pub(in crate::tree) decision: NodeId,
    /// An upper bound of the cost of a tree that begins with this test.
    pub(in crate::tree) cost: u32,
}

impl<'a> OneLineTests<'a> {
    /// Finds the bit tests of a line whose values have the bits `known` clear. Its runs consist of grains; the values
    /// of runs without grains are equally frequent. Linear in the runs.
    pub(in crate::tree) fn new(
        spans: &'a [Span],
        grains: &'a [Grain],
        known: u32,
        prices: Prices,
    ) -> OneLineTests<'a> {
        let mut tests = OneLineTests {
            rest: Rest::new(spans, grains, known),
            prices,
            tests: Vec::new(),
            starts: Vec::with_capacity(spans.len() + 1),
        };
        for (first, span) in spans.iter().enumerate() {
            tests.starts.push(tests.tests.len());
            tests.add_tests(first, span.node);
            let mut behind = spans[first..].iter().take(MAX_RUNS);
            if let Some(other) = behind.find(|other| other.node != span.node) {
                tests.add_tests(first, other.node);
            }
        }
        tests.starts.push(tests.tests.len());
        tests
    }

    /// The tests for the parts that begin with a run.
    pub(in crate::tree) fn beginning_with(&self, first: usize) -> &[OneLineTest] {
        &self.tests[self.starts[first]..self.starts[first + 1]]
    }

    /// Adds the tests that take a decision's values out of the parts that begin with a run.
    fn add_tests(&mut self, first: usize, decision: NodeId) {
        let (mut used, mut reach, mut others) = (0, 0, 0);
        let (mut whole, mut kept) = (0, 0);
        let spans = self.rest.spans;
        for (last, span) in spans.iter().enumerate().skip(first).take(MAX_RUNS) {
            whole += span.weight;
            if span.node == decision {
                reach |= bits_of(span);
            } else {
                used |= bits_of(span);
                kept += span.weight;
                others += 1;
            }
            let bits = reach & !used & !self.rest.known;
            if bits != 0
                && others >= MIN_OTHERS
                && kept <= whole / 2
                && let Some(cost) = self.cost(first, last, decision, bits, whole)
            {
                self.tests.push(OneLineTest {
                    first,
                    last,
                    bits,
                    decision,
                    cost,
                });
            }
        }
    }

    /// An upper bound of the cost of a test of these bits, which only values with the decision have, and of the
    /// remaining line; `None` if more than half of the weight remains.
    fn cost(
        &self,
        first: usize,
        last: usize,
        decision: NodeId,
        bits: u32,
        whole: u32,
    ) -> Option<u32> {
        let (mut left, mut runs) = (0, 0_u32);
        let mut before = None;
        let mut links = Links::default();
        for at in first..=last {
            let span = &self.rest.spans[at];
            if span.node == decision {
                let Some(rest) = self.rest.clear(at, bits) else {
                    continue;
                };
                left += rest.weight;
            } else {
                left += span.weight;
                links.add(span);
            }
            if left > whole / 2 {
                return None;
            }
            runs += u32::from(before != Some(span.node));
            before = Some(span.node);
        }
        let Prices { step, miss, insn } = self.prices;
        let levels = runs.next_power_of_two().ilog2();
        let halving = left * levels * step + left / 2 * levels * miss + (runs - 1) * insn;
        let rest = links
            .cost(left, self.prices)
            .unwrap_or(halving)
            .min(halving);
        Some(question_cost(self.prices, whole - left, left) + rest)
    }
}

/// The values that a chain of equality questions decides.
#[derive(Default)]
struct Links {
    /// In descending order.
    weights: [u32; MAX_RUNS],
    count: usize,
    /// Whether one of them is a run of several values.
    has_run: bool,
}

impl Links {
    fn add(&mut self, span: &Span) {
        self.has_run |= !span.is_single();
        let known = &self.weights[..self.count];
        let place = known.partition_point(|weight| *weight >= span.weight);
        self.weights[place..=self.count].rotate_right(1);
        self.weights[place] = span.weight;
        self.count += 1;
    }

    /// The cost of the chain for a line of this weight.
    fn cost(&self, mut left: u32, prices: Prices) -> Option<u32> {
        let mut cost = 0;
        for yes in &self.weights[..self.count] {
            left -= yes;
            cost += question_cost(prices, *yes, left);
        }
        (!self.has_run).then_some(cost)
    }
}
