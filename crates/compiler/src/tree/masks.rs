//! Bit tests that leave a few runs to be told apart.
//!
//! Where single numbers stand out from a neighbourhood of one decision, a question for some bits may send
//! most of the neighbourhood away: of 0 to 102 without 41 and 56, all numbers that have bit 1, 2 or 6 are
//! decided by one question, and 41 and 56 have fourteen others left to be told from. The bits follow from
//! the part of the line and from the decision that it is rid of: all that the other values don't have.
//! What is left is a line of its own, the values without these bits.
//!
//! Looking for such tests takes one sweep over the runs behind each run, up to [`MAX_RUNS`]. The cost of
//! what is left is not known but bounded: a chain of equality questions and halving are two ways to
//! decide it, and when the tree is built it gets the best one.

use super::bits::{bits_of, first_without};
use super::{Span, question_cost};
use crate::cost::Prices;
use crate::dag::NodeId;

/// The most runs of a part: in longer ones hardly a bit is left that none of the others has.
const MAX_RUNS: usize = 12;

/// The fewest runs of other decisions: one is found by one or two questions in any case.
const MIN_OTHERS: u32 = 2;

/// Values of one run that are equally frequent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grain {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) weight: u64,
}

/// The bit tests of a line.
pub(super) struct Masks<'a> {
    line: Line<'a>,
    /// In order of first run.
    tests: Vec<Mask>,
}

/// A bit test for a part of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mask {
    /// The first run of the part.
    pub(super) first: usize,
    /// The last run of the part.
    pub(super) last: usize,
    /// The bits.
    pub(super) bits: u32,
    /// The decision of all values of the part that have one of them.
    pub(super) decision: NodeId,
    /// A tree that asks for them first costs no more.
    pub(super) cost: u32,
}

/// Runs, and how frequent their values are.
struct Line<'a> {
    spans: &'a [Span],
    /// By run; none where all values are equally frequent.
    grains: Vec<&'a [Grain]>,
    prices: Prices,
}

impl<'a> Masks<'a> {
    /// Finds the bit tests of a line. Its runs consist of grains; those without any have values that are
    /// equally frequent. Linear in the runs.
    pub(super) fn new(spans: &'a [Span], grains: &'a [Grain], prices: Prices) -> Masks<'a> {
        let of_span = |span: &Span| {
            let start = grains.partition_point(|grain| grain.first < span.first);
            let end = grains.partition_point(|grain| grain.first <= span.last);
            match &grains[start..end] {
                [_] => &[],
                grains => grains,
            }
        };
        let line = Line {
            spans,
            grains: spans.iter().map(of_span).collect(),
            prices,
        };
        let mut tests = Vec::new();
        for (first, span) in spans.iter().enumerate() {
            line.add_tests(first, span.node, &mut tests);
            let mut behind = spans[first..].iter().take(MAX_RUNS);
            if let Some(other) = behind.find(|other| other.node != span.node) {
                line.add_tests(first, other.node, &mut tests);
            }
        }
        Masks { line, tests }
    }

    /// The tests for the parts that begin with a run.
    pub(super) fn beginning_with(&self, first: usize) -> &[Mask] {
        let start = self.tests.partition_point(|test| test.first < first);
        let end = self.tests.partition_point(|test| test.first <= first);
        &self.tests[start..end]
    }

    /// What is left of the part if none of the bits is set.
    pub(super) fn left(&self, mask: &Mask) -> Vec<Span> {
        let mut left: Vec<Span> = Vec::new();
        for at in mask.first..=mask.last {
            let Some(rest) = self.line.without(at, mask.bits, mask.decision) else {
                continue;
            };
            match left.last_mut() {
                Some(before) if before.node == rest.node => {
                    before.last = rest.last;
                    before.weight += rest.weight;
                }
                _ => left.push(rest),
            }
        }
        left
    }
}

impl Line<'_> {
    /// Adds the tests that rid the parts beginning with a run of a decision.
    fn add_tests(&self, first: usize, decision: NodeId, tests: &mut Vec<Mask>) {
        let (mut used, mut reach, mut others) = (0, 0, 0);
        for (last, span) in self.spans.iter().enumerate().skip(first).take(MAX_RUNS) {
            if span.node == decision {
                reach |= bits_of(span);
            } else {
                used |= bits_of(span);
                others += 1;
            }
            let bits = reach & !used;
            if bits != 0
                && others >= MIN_OTHERS
                && let Some(cost) = self.cost(first, last, decision, bits)
            {
                tests.push(Mask {
                    first,
                    last,
                    bits,
                    decision,
                    cost,
                });
            }
        }
    }

    /// What asking for these bits and deciding what is left takes at most; `None` if more than half of
    /// the weight would be left.
    fn cost(&self, first: usize, last: usize, decision: NodeId, bits: u32) -> Option<u32> {
        let spans = &self.spans[first..=last];
        let whole: u32 = spans.iter().map(|span| span.weight).sum();
        let (mut left, mut runs) = (0, 0_u32);
        let mut before = None;
        let mut links = Links::default();
        for at in first..=last {
            let Some(rest) = self.without(at, bits, decision) else {
                continue;
            };
            left += rest.weight;
            if left > whole / 2 {
                return None;
            }
            if rest.node != decision {
                links.add(&rest);
            }
            runs += u32::from(before != Some(rest.node));
            before = Some(rest.node);
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

    /// The values of a run that are left if those of a decision that have one of these bits go.
    fn without(&self, at: usize, bits: u32, decision: NodeId) -> Option<Span> {
        let span = self.spans[at];
        if span.node != decision || bits_of(&span) & bits == 0 {
            return Some(span);
        }
        if common_bits(&span) & bits != 0 {
            return None;
        }
        let first = first_without(span.first, bits).filter(|first| *first <= span.last)?;
        let ratio = |first: u32, last: u32| {
            let (before, until) = (
                count_without(first.into(), bits),
                count_without(u64::from(last) + 1, bits),
            );
            (until - before) as f64 / (f64::from(last - first) + 1.0)
        };
        let share = match self.grains[at] {
            [] => ratio(span.first, span.last),
            grains => {
                let whole: u64 = grains.iter().map(|grain| grain.weight).sum();
                let weigh = |grain: &Grain| grain.weight as f64 * ratio(grain.first, grain.last);
                let left: f64 = grains.iter().map(weigh).sum();
                left / whole.max(1) as f64
            }
        };
        Some(Span {
            first,
            last: last_without(span.last, bits),
            weight: (f64::from(span.weight) * share) as u32,
            node: decision,
        })
    }
}

/// Values that a chain of equality questions would take out.
#[derive(Default)]
struct Links {
    /// The heaviest first.
    weights: [u32; MAX_RUNS],
    count: usize,
    /// Whether there is a run among them.
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

/// Bits that all values have.
fn common_bits(span: &Span) -> u32 {
    let differ = span.first ^ span.last;
    let same = !u32::MAX.checked_shr(differ.leading_zeros()).unwrap_or(0);
    span.first & same
}

/// The largest value up to `last` that has none of these bits.
fn last_without(last: u32, bits: u32) -> u32 {
    match (last & bits).checked_ilog2() {
        Some(top) => (((last >> top) - 1) << top | ((1 << top) - 1)) & !bits,
        None => last,
    }
}

/// How many values below this have none of these bits.
fn count_without(end: u64, bits: u32) -> u64 {
    let (mut count, mut rest) = (0, end);
    while let Some(top) = rest.checked_ilog2() {
        // All that agree above this bit, and have it clear.
        let free = !u64::from(bits) & ((1 << top) - 1);
        count += 1_u64 << free.count_ones();
        if u64::from(bits) >> top & 1 == 1 {
            break;
        }
        rest ^= 1 << top;
    }
    count
}
