//! Bit tests of which both sides are lines again, for the parts that matter.
//!
//! Of 186 to 278, of which Docker's policy denies seven stretches, those with bit 5 and those without are
//! easier to decide one by one than together, though both have several runs left. Any bit of any part
//! could be such a test, and what it costs is known once both sides are decided. That is too much to try
//! for all parts; but few parts occur in trees that are nearly as cheap as the cheapest without such
//! tests, and where a part is dear, that is because of all the runs in it. So the table is filled first;
//! then every part is looked at that a tree may have at a cost of [`SLACK`] of the part's own, and its
//! best bit test, if it is cheaper, goes into the table, which is cut once more.
//!
//! Tests of a single bit are tried, and of the bits that only values of one decision have, which leave a
//! line on one side only ([`masks`](super::masks) has bounds for these; here they are closer). Several bits
//! with lines on both sides were never better on the policies that were looked at, and there are many.
//!
//! What a part costs with a test is bounded by halving the sides, or what one more test leaves of them.
//! When the tree is built the sides get the best there is, by the same means as any line.

use super::bits::bits_of;
use super::costs::{Costs, Number};
use super::layer::Layer;
use super::sides::{Sides, clear, push};
use super::{Span, question_cost};
use crate::cost::Prices;
use crate::dag::NodeId;

/// The fewest runs of a part: shorter ones have other questions that are as good.
const MIN_RUNS: usize = 5;

/// The most runs of a part.
const MAX_RUNS: usize = 24;

/// The most parts of a line that are looked at.
const MAX_PARTS: usize = 256;

/// What part of its own cost a part may add to that of the whole line.
const SLACK: u32 = 64;

/// How many lower bits than the highest that tells the part's borders apart are tried.
const MAX_BITS: u32 = 4;

/// A bit test for a part of a line, cheaper than all that was known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halves {
    /// The first run of the part.
    pub(super) first: usize,
    /// The last run of the part.
    pub(super) last: usize,
    /// The bits.
    pub(super) bits: u32,
    /// A tree that asks for them first costs no more.
    pub(super) cost: u32,
}

/// The tests that make parts of a line cheaper, given what these cost without. At most [`MAX_PARTS`] parts of
/// [`MAX_RUNS`] runs are looked at; finding them takes as long as filling the table at most.
pub(super) fn find<N: Number>(
    layer: &Layer<'_>,
    costs: &Costs<N>,
    sides: &Sides<'_>,
) -> Vec<Halves> {
    let search = Search {
        layer,
        costs,
        sides,
        prices: layer.prices,
    };
    let parts = relevant(layer, costs).into_iter();
    parts
        .filter_map(|(first, last)| search.best(first, last))
        .collect()
}

/// The parts that a tree may have at little more cost than the cheapest, the longest first.
fn relevant<N: Number>(layer: &Layer<'_>, costs: &Costs<N>) -> Vec<(usize, usize)> {
    let size = layer.size();
    let weight_before = layer.weight_before();
    let mut slack = vec![u32::MAX; size * size];
    let mut parts = Vec::new();
    slack[size - 1] = 0;
    for length in (MIN_RUNS..=size).rev() {
        for first in 0..=size - length {
            let last = first + length - 1;
            let so_far = slack[first * size + last];
            let cost = costs.get(first, last).cost();
            if so_far > cost / SLACK || cost == 0 {
                continue;
            }
            if length <= MAX_RUNS {
                parts.push((first, last));
            }
            if parts.len() == MAX_PARTS {
                return parts;
            }
            let before = &weight_before[first..=last + 1];
            let (start, end) = (before[0], before[length]);
            for (cut, (left, right)) in (first + 1..).zip(costs.cuts(first, last)) {
                let at = before[cut - first];
                let asked = question_cost(layer.prices, end - at, at - start);
                let with = so_far + (left + right + asked - cost);
                let sides = [(first * size + cut - 1, left), (cut * size + last, right)];
                for (side, cost) in sides {
                    // Other sides are not looked at.
                    if with <= cost / SLACK {
                        slack[side] = slack[side].min(with);
                    }
                }
            }
        }
    }
    parts
}

struct Search<'a, 'b, N> {
    layer: &'a Layer<'b>,
    costs: &'a Costs<N>,
    sides: &'a Sides<'a>,
    prices: Prices,
}

impl<N: Number> Search<'_, '_, N> {
    /// The cheapest test of a part, if it makes it cheaper.
    fn best(&self, first: usize, last: usize) -> Option<Halves> {
        let mut best: Option<Halves> = None;
        let mut known = self.costs.get(first, last).cost();
        for bits in self.candidates(first, last) {
            if let Some(cost) = self.cost(first, last, bits, known) {
                known = cost;
                best = Some(Halves {
                    first,
                    last,
                    bits,
                    cost,
                });
            }
        }
        best
    }

    /// The bits worth a question: those that rid the part of a decision, and single ones that tell its
    /// borders apart.
    fn candidates(&self, first: usize, last: usize) -> Vec<u32> {
        let part: Vec<Span> = self
            .layer
            .left(first, last)
            .map(|at| self.sides.spans[at])
            .collect();
        let (Some(start), Some(end)) = (part.first(), part.last()) else {
            return Vec::new();
        };
        let highest = (end.first ^ start.last).checked_ilog2().unwrap_or(0);
        let single = (highest.saturating_sub(MAX_BITS - 1)..=highest).rev();
        let decisive = two_decisions(&part).into_iter().flatten();
        let decisive = decisive.map(|decision| decisive_bits(&part, decision));
        decisive
            .filter(|bits| *bits != 0)
            .chain(single.map(|bit| 1 << bit))
            .collect()
    }

    /// What a part costs at most if it is asked for these bits first, unless that is no less than what is
    /// known.
    fn cost(&self, first: usize, last: usize, bits: u32, known: u32) -> Option<u32> {
        let mut sides = [Vec::new(), Vec::new()];
        for at in self.layer.left(first, last) {
            for (side, span) in sides.iter_mut().zip(self.sides.split(at, bits)) {
                if let Some(span) = span {
                    push(side, span);
                }
            }
        }
        let [one, other] = &sides;
        if one.is_empty() || other.is_empty() {
            return None;
        }
        let asked = self.asked(weight(one), weight(other));
        let least = [one, other].map(|side| match &side[..] {
            [_] => 0,
            side => weight(side) * self.prices.step,
        });
        if asked + least[0] + least[1] >= known {
            return None;
        }
        let with_one = asked + self.side_cost(one);
        if with_one + least[1] >= known {
            return None;
        }
        Some(with_one + self.side_cost(other)).filter(|cost| *cost < known)
    }

    /// What deciding a side costs at most: by halving it, or by halving what is left once bits rid it of
    /// a decision.
    fn side_cost(&self, side: &[Span]) -> u32 {
        if side.len() <= 1 {
            return 0;
        }
        let mut least = halving(side, self.prices);
        let mut rest = Vec::with_capacity(side.len());
        for decision in two_decisions(side).into_iter().flatten() {
            let bits = decisive_bits(side, decision);
            if bits != 0 {
                rest.clear();
                for span in side.iter().filter_map(|span| clear(span, &[], bits)) {
                    push(&mut rest, span);
                }
                let left = weight(&rest);
                let asked = self.asked(weight(side) - left, left);
                if asked + left * self.prices.step < least {
                    least = least.min(asked + halving(&rest, self.prices));
                }
            }
        }
        least
    }

    fn asked(&self, yes: u32, no: u32) -> u32 {
        question_cost(self.prices, yes, no)
    }
}

/// The decisions of the first runs; most parts have no other.
fn two_decisions(part: &[Span]) -> [Option<NodeId>; 2] {
    let one = part.first().map(|span| span.node);
    let other = part.iter().map(|span| span.node);
    [one, other.into_iter().find(|node| Some(*node) != one)]
}

/// The bits that only values with this decision have.
fn decisive_bits(part: &[Span], decision: NodeId) -> u32 {
    let (mut own, mut others) = (0, 0);
    for span in part {
        if span.node == decision {
            own |= bits_of(span);
        } else {
            others |= bits_of(span);
        }
    }
    own & !others
}

/// What a line costs if it is cut at its weighted median again and again.
fn halving(line: &[Span], prices: Prices) -> u32 {
    if let [before, single, after] = line
        && before.node == after.node
        && single.is_single()
    {
        return question_cost(prices, single.weight, before.weight + after.weight);
    }
    let whole = weight(line);
    let (mut left, mut at) = (0, 0);
    while at + 1 < line.len() && (at == 0 || 2 * left + line[at].weight <= whole) {
        left += line[at].weight;
        at += 1;
    }
    if at == 0 {
        return 0;
    }
    let (no, yes) = line.split_at(at);
    question_cost(prices, whole - left, left) + halving(no, prices) + halving(yes, prices)
}

fn weight(spans: &[Span]) -> u32 {
    spans.iter().map(|span| span.weight).sum()
}
