//! A layer: a line after questions about some of its values, and the costs of its parts that need no cut.
//!
//! A part with one decision costs nothing. A part with one decision except for a few single values may end in a chain
//! of equality questions, a part with two decisions in a bit test.

use std::ops::Range;

use super::bit_tests::one_line::{OneLineTest, OneLineTests};
use super::bit_tests::rest::push;
use super::bit_tests::two_decisions::{bits_of, has_bits, separating_mask};
use super::parts::Parts;
use super::{Span, question_cost};
use crate::cost::Prices;
use crate::dag::NodeId;

/// The longest chain of equality questions at a leaf.
const MAX_CHAIN: usize = 5;

/// The longest part that ends in a bit test.
pub(super) const MAX_BIT_RUNS: usize = 16;

/// More than any cost.
const LARGEST: u32 = i32::MAX as u32;

/// A line without the values that have been tested.
pub(super) struct Layer<'a> {
    pub(super) spans: &'a [Span],
    pub(super) prices: Prices,
    one_line: Option<&'a OneLineTests<'a>>,
    /// By run, whether it is removed.
    is_gone: Vec<bool>,
    weight_before: Vec<u32>,
}

/// The runs that a chain tests, in order.
#[derive(Clone, Copy, Default)]
pub(super) struct Links {
    runs: [usize; MAX_CHAIN],
    count: usize,
}

impl Links {
    pub(super) fn as_slice(&self) -> &[usize] {
        &self.runs[..self.count]
    }
}

/// The runs with one decision, in a part that may end in a bit test.
#[derive(Clone, Copy)]
struct Met {
    node: NodeId,
    /// The bits that are set in any of their values.
    bits: u32,
    weight: u32,
    /// Whether every value has a bit set that no value of the other decision has.
    may_be_set: bool,
}

impl Met {
    const fn new(node: NodeId) -> Met {
        Met {
            node,
            bits: 0,
            weight: 0,
            may_be_set: true,
        }
    }
}

impl<'a> Layer<'a> {
    pub(super) fn new(
        spans: &'a [Span],
        prices: Prices,
        one_line: Option<&'a OneLineTests<'a>>,
        gone: &[usize],
    ) -> Layer<'a> {
        let mut is_gone = vec![false; spans.len()];
        for at in gone {
            is_gone[*at] = true;
        }
        let mut weight_before = Vec::with_capacity(spans.len() + 1);
        let mut before = 0;
        weight_before.push(before);
        for (span, is_gone) in spans.iter().zip(&is_gone) {
            before += if *is_gone { 0 } else { span.weight };
            weight_before.push(before);
        }
        Layer {
            spans,
            prices,
            one_line,
            is_gone,
            weight_before,
        }
    }

    pub(super) fn size(&self) -> usize {
        self.spans.len()
    }

    /// The weights of all runs before each run, and of the whole line.
    pub(super) fn weight_before(&self) -> &[u32] {
        &self.weight_before
    }

    /// Whether a run is removed.
    pub(super) fn is_gone(&self, run: usize) -> bool {
        self.is_gone[run]
    }

    /// The runs of a part that are not removed.
    pub(super) fn left(&self, first: usize, last: usize) -> impl Iterator<Item = usize> {
        (first..=last).filter(|at| !self.is_gone[*at])
    }

    pub(super) fn weight(&self, first: usize, last: usize) -> u32 {
        self.weight_before[last + 1] - self.weight_before[first]
    }

    /// The cost of the question that cuts a part.
    pub(super) fn cut_question(&self, first: usize, last: usize, cut: usize) -> u32 {
        let (no, yes) = (self.weight(first, cut - 1), self.weight(cut, last));
        question_cost(self.prices, yes, no)
    }

    /// The cost of testing a value of a part first.
    pub(super) fn first_question(&self, first: usize, last: usize, run: usize) -> u32 {
        let yes = self.spans[run].weight;
        question_cost(self.prices, yes, self.weight(first, last) - yes)
    }

    /// Writes to `row` the costs of the parts that begin with a run, end before another, and need no cut, by last
    /// run, up to the last such part; [`LARGEST`] for parts that need a cut.
    pub(super) fn leaves(&self, first: usize, end: usize, row: &mut Vec<u32>) {
        row.clear();
        let bases = self.bases(first);
        if bases.iter().all(Option::is_none) {
            row.resize(end - first, 0);
        }
        for base in bases.into_iter().flatten() {
            self.chains(first, first..end, base, Links::default(), row);
        }
        self.bit_leaves(first, &(first..end), row);
        self.one_line_leaves(first, &(first..end), row);
    }

    /// The same for those of `parts` that contain a heavy value, which may be tested first: calls `meet` with first
    /// runs and with the costs by last run, beginning with the run of the value. Chains that test the value are
    /// omitted, because it is the heaviest value of such a chain and therefore its first.
    pub(super) fn leaves_with(
        &self,
        run: usize,
        parts: &Parts,
        mut meet: impl FnMut(usize, &[u32]),
    ) {
        let base = self.spans[run].node;
        // The links up to the value, as long as a chain can contain them, and whether a bit test is possible. If a
        // part has none, no longer part has one.
        let mut links = Some(Links::default());
        let mut may_be_test = true;
        let mut row = Vec::new();
        for first in parts.firsts_with(run) {
            row.clear();
            let lasts = run..parts.end(first);
            if self.is_link(first, base) {
                links =
                    links.and_then(|mut links| self.add_link(&mut links, first).then_some(links));
            }
            if let Some(links) = links
                && self.bases(first).contains(&Some(base))
            {
                self.chains(first, lasts.clone(), base, links, &mut row);
            }
            may_be_test = may_be_test && self.bit_leaves(first, &lasts, &mut row);
            self.one_line_leaves(first, &lasts, &mut row);
            if !row.is_empty() {
                meet(first, &row);
            }
        }
    }

    /// Adds chains to `row`, for the parts that begin with a run and end with one of `lasts`; `links` are the values
    /// that these chains test before the first of `lasts`.
    fn chains(
        &self,
        first: usize,
        lasts: Range<usize>,
        base: NodeId,
        mut links: Links,
        row: &mut Vec<u32>,
    ) {
        let start = lasts.start;
        for last in lasts {
            if self.is_link(last, base) && !self.add_link(&mut links, last) {
                return;
            }
            let cost = self.chain_cost(first, last, &links);
            match row.get_mut(last - start) {
                Some(least) => *least = cost.min(*least),
                None => row.push(cost),
            }
        }
    }

    /// Adds bit tests to `row`, for the parts that begin with a run and end with one of `lasts`. Returns whether
    /// parts that begin earlier may have a bit test.
    fn bit_leaves(&self, first: usize, lasts: &Range<usize>, row: &mut Vec<u32>) -> bool {
        // The decisions so far, at most two.
        let mut met: [Option<Met>; 2] = [None; 2];
        let until = lasts.end.min(first + MAX_BIT_RUNS);
        for last in (first..until).filter(|at| !self.is_gone[*at]) {
            let span = &self.spans[last];
            let is_its = |met: &Option<Met>| met.is_none_or(|met| met.node == span.node);
            let Some(its) = met.iter().position(is_its) else {
                return last > lasts.start;
            };
            let other = met[1 - its];
            let own = met[its].get_or_insert(Met::new(span.node));
            let before = own.bits;
            own.bits |= bits_of(span);
            own.weight += span.weight;
            own.may_be_set &= has_bits(span, !other.map_or(0, |other| other.bits));
            let own = *own;
            if let Some(other) = &mut met[1 - its]
                && other.may_be_set
                && own.bits != before
            {
                let mut theirs = self.left(first, last).map(|at| &self.spans[at]);
                other.may_be_set =
                    theirs.all(|span| span.node != other.node || has_bits(span, !own.bits));
            }
            let [Some(one), Some(other)] = met else {
                continue;
            };
            if !one.may_be_set && !other.may_be_set {
                // If a part has no mask, no longer part has one.
                return last > lasts.start;
            }
            let Some(place) = last.checked_sub(lasts.start) else {
                continue;
            };
            let asked = question_cost(self.prices, one.weight, other.weight);
            if row.get(place).is_none_or(|cost| asked < *cost) {
                row.resize(row.len().max(place + 1), LARGEST);
                row[place] = asked;
            }
        }
        until > lasts.start
    }

    /// Adds to `row` the bit tests that leave one line, for the parts that begin with a run and end with one of
    /// `lasts`.
    fn one_line_leaves(&self, first: usize, lasts: &Range<usize>, row: &mut Vec<u32>) {
        for test in self
            .one_line(first)
            .filter(|test| lasts.contains(&test.last))
        {
            let place = test.last - lasts.start;
            row.resize(row.len().max(place + 1), LARGEST);
            row[place] = row[place].min(test.cost);
        }
    }

    /// The bit tests that leave one line, for the parts that begin with a run and have no removed runs; the tests are
    /// computed without regard to removed runs.
    pub(super) fn one_line(&self, first: usize) -> impl Iterator<Item = &OneLineTest> {
        let tests = self
            .one_line
            .map_or(&[][..], |tests| tests.beginning_with(first));
        let is_whole = |test: &&OneLineTest| !self.is_gone[test.first..=test.last].contains(&true);
        tests.iter().filter(is_whole)
    }

    /// The runs of a part with values that have none of these bits, and the bits that are then known to be clear.
    pub(super) fn rest(&self, first: usize, last: usize, bits: u32) -> (Vec<Span>, u32) {
        let mut spans = Vec::new();
        let Some(OneLineTests { rest, .. }) = self.one_line else {
            return (spans, bits);
        };
        for span in self.left(first, last).filter_map(|at| rest.clear(at, bits)) {
            push(&mut spans, span);
        }
        (spans, rest.known | bits)
    }

    /// The decisions that can remain at the end of a chain of a part that begins with a run: those of its first two
    /// runs that differ. If a chain tests both, a cut behind them costs no more.
    pub(super) fn bases(&self, first: usize) -> [Option<NodeId>; 2] {
        let mut left = (first..self.size()).filter(|at| !self.is_gone[*at]);
        let one = left.next().map(|at| self.spans[at].node);
        let other = left
            .map(|at| self.spans[at].node)
            .find(|node| Some(*node) != one);
        [one, other]
    }

    /// The single values of a part, the heaviest first, if all other runs have the decision `base` and the chain is
    /// not too long.
    pub(super) fn links(&self, first: usize, last: usize, base: NodeId) -> Option<Links> {
        let mut links = Links::default();
        let mut wanted = (first..=last).filter(|at| self.is_link(*at, base));
        wanted
            .all(|at| self.add_link(&mut links, at))
            .then_some(links)
    }

    fn is_link(&self, at: usize, base: NodeId) -> bool {
        !self.is_gone[at] && self.spans[at].node != base
    }

    /// Adds a run behind those that are at least as heavy; false if it is not a single value or the chain is full.
    fn add_link(&self, links: &mut Links, at: usize) -> bool {
        if links.count == MAX_CHAIN || !self.spans[at].is_single() {
            return false;
        }
        let is_before = |link: &usize| self.spans[*link].weight >= self.spans[at].weight;
        let place = links.as_slice().iter().take_while(|link| is_before(link));
        let place = place.count();
        links.runs.copy_within(place..links.count, place + 1);
        links.runs[place] = at;
        links.count += 1;
        true
    }

    pub(super) fn chain_cost(&self, first: usize, last: usize, links: &Links) -> u32 {
        let mut left = self.weight(first, last);
        let mut cost = 0;
        for link in links.as_slice() {
            let yes = self.spans[*link].weight;
            left -= yes;
            cost += question_cost(self.prices, yes, left);
        }
        cost
    }

    /// The bits that decide a part with two decisions, the decision if any of them is set, and the other decision.
    pub(super) fn bit_test(&self, first: usize, last: usize) -> Option<(u32, NodeId, NodeId)> {
        let left = || self.left(first, last);
        let one = self.spans[left().next()?].node;
        let other = left()
            .map(|at| self.spans[at].node)
            .find(|node| *node != one)?;
        if left().any(|at| self.spans[at].node != one && self.spans[at].node != other) {
            return None;
        }
        [(one, other), (other, one)]
            .into_iter()
            .find_map(|(set, clear)| {
                let of = |node: NodeId| {
                    let inside = left().map(|at| &self.spans[at]);
                    inside.filter(move |span| span.node == node)
                };
                let mask = separating_mask(of(set), of(clear))?;
                Some((mask, set, clear))
            })
    }
}
