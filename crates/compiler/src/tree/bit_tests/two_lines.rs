//! Bit tests with a line on each side, for the parts of a line that matter.
//!
//! Docker's policy denies seven stretches of 186 to 278. The values with bit 5 and those without are easier to decide
//! apart than together, though several runs are left of both. Any bit of any part could be such a test, and its
//! cost is known only once both sides are decided, which is too much work for all parts. But few parts occur in trees
//! that cost little more than the cheapest tree without such tests. So the table is filled first; then the best test
//! is looked for in each part that belongs to a tree at a cost of [`SLACK`] of the part's own. If it makes the part
//! cheaper, it goes into the table, and the table is cut again.
//!
//! Candidates are single bits, and the bits that only values of one decision have: those leave one line
//! ([`one_line`](super::one_line)), with a closer bound here. Several bits with lines on both sides never were
//! cheaper on the policies that were measured.
//!
//! The cost of a part with a test is bounded from above: each side is halved, or a second test rids it of a decision
//! and the rest is halved. A candidate is dropped as soon as its weights alone cost more than what is known.

use super::sides::{Known, Sides, clear, push};
use super::two_decisions::bits_of;
use crate::cost::Prices;
use crate::dag::NodeId;
use crate::tree::costs::{Costs, Number};
use crate::tree::layer::Layer;
use crate::tree::{Span, question_cost};

/// The fewest runs of a part: shorter ones have other questions that are as good.
const MIN_RUNS: usize = 5;

/// The most runs of a part.
const MAX_RUNS: usize = 24;

/// The most parts of a line that are looked at.
const MAX_PARTS: usize = 256;

/// What part of its own cost a part may add to that of the whole line.
const SLACK: u32 = 64;

/// How much a tree may cost more than the best one of its line, and still have parts that are looked at, if
/// the best one costs no more than `most`.
pub(in crate::tree) fn slack(most: u64) -> u32 {
    u32::try_from(most / u64::from(SLACK - 1)).unwrap_or(u32::MAX)
}

/// How many lower bits than the highest that tells the part's borders apart are tried.
const MAX_BITS: u32 = 4;

/// A bit test for a part of a line, cheaper than all that was known.
#[derive(Clone, Copy, Debug)]
pub(in crate::tree) struct TwoLineTest {
    /// The first run of the part.
    pub(in crate::tree) first: usize,
    /// The last run of the part.
    pub(in crate::tree) last: usize,
    /// The bits.
    pub(in crate::tree) bits: u32,
    /// A tree that asks for them first costs no more.
    pub(in crate::tree) cost: u32,
}

/// The tests that make parts of a line cheaper, given what these cost without. At most [`MAX_PARTS`] parts of
/// [`MAX_RUNS`] runs are looked at; finding them takes as long as filling the table at most.
pub(in crate::tree) fn find<N: Number>(
    layer: &Layer<'_>,
    costs: &Costs<N>,
    sides: &Sides<'_>,
) -> Vec<TwoLineTest> {
    let mut search = Search {
        sides,
        prices: layer.prices,
        part: Vec::with_capacity(MAX_RUNS),
        both: [(); 2].map(|()| Vec::with_capacity(MAX_RUNS)),
        rest: Vec::with_capacity(MAX_RUNS),
    };
    let mut found = Vec::new();
    for (first, last) in relevant(layer, costs) {
        search.part.clear();
        search.part.extend(layer.left(first, last));
        let known = costs.get(first, last).cost();
        if let Some((bits, cost)) = search.best(known) {
            found.push(TwoLineTest {
                first,
                last,
                bits,
                cost,
            });
        }
    }
    found
}

/// The parts that a tree may have at little more cost than the cheapest, the longest first.
fn relevant<N: Number>(layer: &Layer<'_>, costs: &Costs<N>) -> Vec<(usize, usize)> {
    let size = layer.size();
    let weight_before = layer.weight_before();
    // By length, then by first run; the most for parts that no such tree has, which are most of them.
    let place = |first: usize, length: usize| length * size + first;
    let mut slack = vec![u32::MAX; size * (size + 1)];
    let mut parts = Vec::new();
    slack[place(0, size)] = 0;
    for length in (MIN_RUNS..=size).rev() {
        for first in 0..=size - length {
            let so_far = slack[place(first, length)];
            if so_far == u32::MAX {
                continue;
            }
            let last = first + length - 1;
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
            let (start, end) = (weight_before[first], weight_before[last + 1]);
            // A side that is looked at costs no more than what is left of the cost and its own slack.
            let asked = question_cost(layer.prices, end - start, 0);
            let Some(left) = cost.checked_sub(asked + so_far) else {
                continue;
            };
            let most = N::of(left + left / (SLACK - 1));
            for (cut, (left, right)) in (first + 1..).zip(costs.cuts(first, last)) {
                if left + right > most {
                    continue;
                }
                let (left, right) = (left.cost(), right.cost());
                let at = weight_before[cut];
                let asked = question_cost(layer.prices, end - at, at - start);
                // No cut is cheaper than the part, not even one that the table left out.
                let with = so_far + (left + right + asked).saturating_sub(cost);
                let sides = [
                    (place(first, cut - first), left),
                    (place(cut, last + 1 - cut), right),
                ];
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

/// The search for the test of one part after the other, with memory for what is left of each.
struct Search<'a> {
    sides: &'a Sides<'a>,
    prices: Prices,
    /// The runs of the part.
    part: Vec<usize>,
    /// What a test leaves of it.
    both: [Vec<Span>; 2],
    /// What one more test leaves of that.
    rest: Vec<Span>,
}

impl Search<'_> {
    /// The bits of the cheapest test of the part and what it costs, if that is less than what is known.
    fn best(&mut self, mut known: u32) -> Option<(u32, u32)> {
        let mut best = None;
        for bits in self.candidates() {
            if let Some(cost) = self.cost(bits, known) {
                known = cost;
                best = Some((bits, cost));
            }
        }
        best
    }

    /// The bits worth a question: those that rid the part of a decision, and single ones that tell its
    /// borders apart.
    fn candidates(&self) -> impl Iterator<Item = u32> + use<> {
        let part = || self.part.iter().map(|at| &self.sides.spans[*at]);
        let highest = part().next().zip(part().next_back());
        let highest = highest.map(|(start, end)| (end.first ^ start.last).checked_ilog2());
        let single = highest.map(|highest| {
            let highest = highest.unwrap_or(0);
            (highest.saturating_sub(MAX_BITS - 1)..=highest).rev()
        });
        let known = self.sides.known;
        let decisive = decisive_bits(part(), known).into_iter().flatten();
        let decisive = decisive.map(|(_, bits)| bits);
        let single = single.into_iter().flatten().map(|bit| 1 << bit);
        decisive.chain(single.filter(move |bit| bit & known.bits == 0))
    }

    /// What the part costs at most if it is asked for these bits first, unless that is no less than what is
    /// known.
    fn cost(&mut self, bits: u32, known: u32) -> Option<u32> {
        for side in &mut self.both {
            side.clear();
        }
        for at in &self.part {
            for (side, span) in self.both.iter_mut().zip(self.sides.split(*at, bits)) {
                if let Some(span) = span {
                    push(side, span);
                }
            }
        }
        let [one, other] = &self.both;
        if one.is_empty() || other.is_empty() {
            return None;
        }
        let prices = self.prices;
        let (weight_one, weight_other) = (weight(one), weight(other));
        let asked = question_cost(prices, weight_one, weight_other);
        let limit = known.checked_sub(asked + least(other, weight_other, prices))?;
        let rest = &mut self.rest;
        let [known_clear, known_set] = [false, true].map(|yes| self.sides.known.after(bits, yes));
        let with_one = asked + side_cost(one, known_clear, weight_one, prices, limit, rest);
        let limit = known.checked_sub(with_one)?;
        let with_both = with_one + side_cost(other, known_set, weight_other, prices, limit, rest);
        Some(with_both).filter(|cost| *cost < known)
    }
}

/// What deciding a side of this weight costs at most: by halving it, or by halving what is left once bits rid it
/// of a decision. If that is no less than the limit, something that is no less.
fn side_cost(
    side: &[Span],
    known: Known,
    whole: u32,
    prices: Prices,
    limit: u32,
    rest: &mut Vec<Span>,
) -> u32 {
    let least = least(side, whole, prices);
    if least >= limit {
        return limit;
    }
    // What is left of the side has the weight of the side at most.
    let mut cost = halving(side, whole, prices, limit + least);
    for (decision, bits) in decisive_bits(side.iter(), known).into_iter().flatten() {
        rest.clear();
        for span in side {
            let span = match span.node == decision {
                true => clear(span, &[], bits, known),
                false => Some(*span),
            };
            if let Some(span) = span {
                push(rest, span);
            }
        }
        let left = weight(rest);
        let asked = question_cost(prices, whole - left, left);
        if asked + left * prices.step < cost {
            cost = cost.min(asked + halving(rest, left, prices, cost - asked));
        }
    }
    cost
}

/// For the first two decisions of a part, the bits that only values with this decision have, if there are any;
/// most parts have no other decisions.
fn decisive_bits<'a>(
    part: impl Iterator<Item = &'a Span>,
    known: Known,
) -> [Option<(NodeId, u32)>; 2] {
    let mut met: [Option<(NodeId, u32)>; 2] = [None; 2];
    let mut others = 0;
    for span in part {
        let bits = bits_of(span);
        let is_its = |met: &&mut Option<(NodeId, u32)>| met.is_none_or(|met| met.0 == span.node);
        match met.iter_mut().find(is_its) {
            Some(met) => met.get_or_insert((span.node, 0)).1 |= bits,
            None => others |= bits,
        }
    }
    let [one, other] = met.map(|met| met.map_or(0, |met| met.1));
    let only = |met: Option<(NodeId, u32)>, others: u32| {
        let only = met.map(|(decision, bits)| (decision, bits & !others & !known.bits));
        only.filter(|(_, bits)| *bits != 0)
    };
    [only(met[0], other | others), only(met[1], one | others)]
}

/// What a line of this weight costs if it is cut at its weighted median again and again. If that is no less
/// than the limit, something that is no less.
fn halving(line: &[Span], whole: u32, prices: Prices, limit: u32) -> u32 {
    if let [before, single, after] = line
        && before.node == after.node
        && single.is_single()
    {
        return question_cost(prices, single.weight, before.weight + after.weight);
    }
    let (mut left, mut at) = (0, 0);
    while at + 1 < line.len() && (at == 0 || 2 * left + line[at].weight <= whole) {
        left += line[at].weight;
        at += 1;
    }
    if at == 0 {
        return 0;
    }
    let (no, yes) = line.split_at(at);
    let right = whole - left;
    let asked = question_cost(prices, right, left);
    let [least_no, least_yes] = [least(no, left, prices), least(yes, right, prices)];
    if asked + least_no + least_yes >= limit {
        return limit;
    }
    let with_no = asked + halving(no, left, prices, limit - asked - least_yes);
    if with_no + least_yes >= limit {
        return limit;
    }
    with_no + halving(yes, right, prices, limit - with_no)
}

/// What a line of this weight costs at least: a question, if it is not decided.
fn least(line: &[Span], weight: u32, prices: Prices) -> u32 {
    match line {
        [] | [_] => 0,
        _ => weight * prices.step,
    }
}

fn weight(spans: &[Span]) -> u32 {
    spans.iter().map(|span| span.weight).sum()
}
