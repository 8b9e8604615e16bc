//! Longer lines: dynamic programming over contiguous parts, in layers.
//!
//! The best tree for a part of the line either cuts it into two parts, or tests one value first and then treats the
//! rest of the part as if that value could have any decision. In optimal two-way-comparison trees the tested values
//! are the heaviest of their part (Spuler 1994; Chrobak, Golin, Munro and Young 2015-2021). So there is one table per
//! number of heaviest values that are removed from the whole line, a layer: a part of a layer is either cut within
//! the layer, or its next heaviest value is tested, which leads to the next layer. Light values between runs of one
//! decision are tested in short chains at the leaves; the trees of the literature, which never merge neighbours, do
//! not need these chains. A bit test ([`bit_tests`](super::bit_tests)) may also end a part, or leave a line of it.
//!
//! All layers share one table: each layer only changes the costs of the parts with its own next value; the costs of
//! these parts without the value are first saved, if they matter ([`parts`](super::parts)). The first layer takes
//! `O(n³)`, the others the cube of their neighbourhoods.

use tamis_abi::Word;

use super::Span;
use super::bit_tests::one_line::{OneLineTest, OneLineTests};
use super::costs::{Costs, LIMIT_F32, Number, Questions};
use super::layer::{Layer, Links};
use super::parts::{self, Around, Cuts, Parts};
use crate::cost::Prices;
use crate::dag::{Dag, NodeId, Question};

/// A value is heavy if its weight is more than the whole weight divided by this.
pub(super) const HEAVY_SHARE: u32 = 128;

/// The most heavy values; each adds a layer.
pub(super) const MAX_HEAVY: usize = 8;

/// The most elementary steps of all layers together; longer lines have fewer heavy values.
const MAX_WORK: usize = 1 << 21;

/// Adds the tree of least cost among those that test at most [`MAX_HEAVY`] heavy values before cuts.
pub(super) fn build(
    dag: &mut Dag,
    word: Word,
    spans: &[Span],
    prices: Prices,
    one_line: Option<&OneLineTests<'_>>,
) -> NodeId {
    if most(spans, prices) < LIMIT_F32 {
        build_with::<f32>(dag, word, spans, prices, one_line)
    } else {
        build_with::<f64>(dag, word, spans, prices, one_line)
    }
}

fn build_with<N: Number>(
    dag: &mut Dag,
    word: Word,
    spans: &[Span],
    prices: Prices,
    one_line: Option<&OneLineTests<'_>>,
) -> NodeId {
    let table = Table::<N>::new(spans, prices, one_line);
    Builder { word, table }.build(dag, 0, 0, spans.len() - 1)
}

/// An upper bound of the least cost: the cost of a tree that halves the line.
fn most(spans: &[Span], prices: Prices) -> u64 {
    let whole: u64 = spans.iter().map(|span| u64::from(span.weight)).sum();
    let levels = u64::from(spans.len().next_power_of_two().ilog2());
    let asked = u64::from(prices.step) + u64::from(prices.miss);
    levels * whole * asked + spans.len() as u64 * u64::from(prices.insn)
}

/// The values that may be tested before the line is cut, the heaviest first.
fn heavy(spans: &[Span]) -> Vec<usize> {
    let whole: u32 = spans.iter().map(|span| span.weight).sum();
    let is_heavy = |at: &usize| spans[*at].is_single() && spans[*at].weight > whole / HEAVY_SHARE;
    let mut heavy: Vec<usize> = (0..spans.len()).filter(is_heavy).collect();
    heavy.sort_by_key(|at| std::cmp::Reverse(spans[*at].weight));
    let work = spans.len().pow(3) / 6 + 1;
    heavy.truncate(MAX_HEAVY.min(MAX_WORK / work));
    heavy
}

/// The choice for a part.
enum Choice {
    Decided,
    /// By testing the heavy value of the layer.
    Heavy(usize),
    /// By testing these values one after the other; all other values have the decision.
    Chain(Links, NodeId),
    /// By a test of bits, with the decisions for yes and no.
    Bits(u32, NodeId, NodeId),
    /// By a test of bits that decides some values and leaves a line.
    BitTest(OneLineTest),
    /// By a cut; the right side begins with this run.
    Cut(usize),
}

/// The least costs of all parts of a line that matter.
pub(super) struct Table<'a, N> {
    /// The values that may be tested before the line is cut, the heaviest first.
    heavy: Vec<usize>,
    /// By the number of removed heavy values, the line.
    layers: Vec<Layer<'a>>,
    /// By the number of removed heavy values, the parts that matter.
    parts: Vec<Parts>,
    /// The costs of parts without removed values.
    costs: Costs<N>,
    /// By heavy value, the costs of parts that lost it last.
    without: Vec<Without<N>>,
}

/// The costs of parts without a removed value. They begin at or before that value, and end at or behind it.
struct Without<N> {
    run: usize,
    /// By length of the parts, the index of the first cell.
    starts: Vec<usize>,
    /// The costs, by length and then by first run.
    cells: Vec<N>,
}

impl<N: Number> Without<N> {
    fn get(&self, first: usize, last: usize) -> N {
        let length = last + 1 - first;
        let lowest = (self.run + 1).saturating_sub(length);
        self.cells[self.starts[length - 1] + first - lowest]
    }
}

impl<'a, N: Number> Table<'a, N> {
    /// Computes the costs.
    pub(super) fn new(
        spans: &'a [Span],
        prices: Prices,
        one_line: Option<&'a OneLineTests<'a>>,
    ) -> Self {
        let heavy = heavy(spans);
        let layers: Vec<Layer<'_>> = (0..=heavy.len())
            .map(|asked| Layer::new(spans, prices, one_line, &heavy[..asked]))
            .collect();
        let mut table = Table {
            parts: parts::that_matter(&layers, &heavy),
            without: Vec::with_capacity(heavy.len()),
            heavy,
            layers,
            costs: Costs::new(spans.len()),
        };
        table.fill_last();
        for depth in (0..table.heavy.len()).rev() {
            table.fill(depth);
        }
        table.without.reverse();
        table
    }

    /// Computes the costs of the parts without heavy values.
    fn fill_last(&mut self) {
        let (Some(layer), Some(parts)) = (self.layers.last(), self.parts.last()) else {
            return;
        };
        let size = layer.size();
        let mut leaves = Vec::with_capacity(size);
        for first in 0..size {
            layer.leaves(first, parts.end(first), &mut leaves);
            for (last, cost) in (first..).zip(&leaves) {
                self.costs.set(first, last, N::from_cost(*cost));
            }
        }
        let everywhere = Around {
            first_at_most: size - 1,
            last_at_least: 0,
        };
        let questions = Questions::new(layer.weight_before(), layer.prices);
        let cuts = Cuts::new(parts, everywhere, layer, &self.layers[0]);
        self.costs.cut(parts, everywhere, &cuts, &questions);
    }

    /// Computes the costs of the parts with the heavy value that this layer tests, given those without it.
    fn fill(&mut self, depth: usize) {
        let layer = &self.layers[depth];
        let (size, run) = (layer.size(), self.heavy[depth]);
        let (parts, parts_without) = (&self.parts[depth], &self.parts[depth + 1]);
        let around = Around::run(run);
        let longest = parts.longest(around);
        let questions = Questions::new(layer.weight_before(), layer.prices);
        let mut without = Without {
            run,
            starts: Vec::with_capacity(longest),
            cells: Vec::with_capacity(longest * (run + 1).min(size - run)),
        };
        let weight = layer.spans[run].weight;
        for length in 1..=longest {
            let firsts = around.firsts(length, size);
            let first = firsts.start;
            let row = self.costs.row_mut(firsts, length);
            without.starts.push(without.cells.len());
            without.cells.extend_from_slice(row);
            questions.ask_first(row, first, length, weight);
        }
        self.without.push(without);
        for first in parts.firsts_with(run) {
            for last in parts_without.end(first).max(run)..parts.end(first) {
                self.costs.set(first, last, N::INFINITE);
            }
        }
        let costs = &mut self.costs;
        layer.leaves_with(run, parts, |first, leaves| {
            for (last, leaf) in (run..).zip(leaves) {
                costs.lower(first, last, N::from_cost(*leaf));
            }
        });
        let cuts = Cuts::new(parts, around, layer, &self.layers[0]);
        self.costs.cut(parts, around, &cuts, &questions);
    }

    /// By the number of removed heavy values, the line.
    #[cfg(test)]
    pub(super) fn layers(&self) -> &[Layer<'a>] {
        &self.layers
    }

    /// The values that may be tested before the line is cut, the heaviest first.
    #[cfg(test)]
    pub(super) fn heavy(&self) -> &[usize] {
        &self.heavy
    }

    /// Whether a part matters with this number of heavy values removed; only then its cost is known.
    pub(super) fn matters(&self, depth: usize, first: usize, last: usize) -> bool {
        let parts = self.parts.get(depth);
        parts.is_some_and(|parts| parts.has(first, last))
    }

    /// The cost of a part with this number of heavy values removed; the part must matter.
    pub(super) fn cost(&self, depth: usize, first: usize, last: usize) -> u32 {
        let is_inside = |run: &usize| (first..=last).contains(run);
        let cost = match self.heavy[..depth].iter().rposition(is_inside) {
            Some(gone) => {
                debug_assert!(self.matters(gone + 1, first, last), "{first}..={last}");
                self.without[gone].get(first, last)
            }
            None => self.costs.get(first, last),
        };
        cost.cost()
    }

    /// The choice with the least cost for a part.
    fn choice(&self, depth: usize, first: usize, last: usize) -> Choice {
        let layer = &self.layers[depth];
        let cost = self.cost(depth, first, last);
        if let Some(heavy) = self.heavy.get(depth)
            && self.matters(depth + 1, first, last)
            && self
                .cost(depth + 1, first, last)
                .saturating_add(layer.first_question(first, last, *heavy))
                == cost
        {
            return Choice::Heavy(*heavy);
        }
        for base in layer.bases(first).into_iter().flatten() {
            if let Some(links) = layer.links(first, last, base)
                && layer.chain_cost(first, last, &links) == cost
            {
                return if links.as_slice().is_empty() {
                    Choice::Decided
                } else {
                    Choice::Chain(links, base)
                };
            }
        }
        if let Some(cut) = self.cut(depth, first, last, cost) {
            return Choice::Cut(cut);
        }
        match layer.bit_test(first, last) {
            Some((mask, set, clear)) => Choice::Bits(mask, set, clear),
            None => {
                let test = self.bit_test(depth, first, last, cost);
                test.map_or(Choice::Cut(last), Choice::BitTest)
            }
        }
    }

    /// The bit test that leaves a line and gives a part this cost.
    fn bit_test(&self, depth: usize, first: usize, last: usize, cost: u32) -> Option<OneLineTest> {
        let mut tests = self.layers[depth].one_line(first);
        tests
            .find(|test| test.last == last && test.cost == cost)
            .copied()
    }

    /// The first run of the right side for a cut that gives a part this cost: the one nearest to the middle, to limit
    /// the depth.
    fn cut(&self, depth: usize, first: usize, last: usize, cost: u32) -> Option<usize> {
        let middle = (first + last).div_ceil(2);
        let with_cut = |cut: usize| {
            let question = self.layers[depth].cut_question(first, last, cut);
            let sides = [
                self.cost(depth, first, cut - 1),
                self.cost(depth, cut, last),
            ];
            // A side that is never cut may have an infinite cost.
            sides.into_iter().fold(question, u32::saturating_add)
        };
        let outwards =
            (0..=last - first).flat_map(|by| [middle.checked_sub(by), middle.checked_add(by)]);
        let mut cuts = outwards
            .flatten()
            .filter(|cut| (first + 1..=last).contains(cut));
        cuts.find(|cut| with_cut(*cut) == cost)
    }
}

struct Builder<'a, N> {
    word: Word,
    table: Table<'a, N>,
}

impl<N: Number> Builder<'_, N> {
    fn build(&self, dag: &mut Dag, depth: usize, first: usize, last: usize) -> NodeId {
        let table = &self.table;
        let layer = &table.layers[depth];
        let word = self.word;
        if let Some(heavy) = table.heavy.get(depth)
            && !(first..=last).contains(heavy)
        {
            return self.build(dag, depth + 1, first, last);
        }
        match table.choice(depth, first, last) {
            Choice::Decided => {
                let left = layer.left(first, last).next();
                layer.spans[left.unwrap_or(first)].node
            }
            Choice::Heavy(heavy) => {
                let no = self.build(dag, depth + 1, first, last);
                let span = layer.spans[heavy];
                dag.ask(word, Question::Eq(span.first), span.node, no)
            }
            Choice::Chain(links, base) => links.as_slice().iter().rev().fold(base, |rest, link| {
                let span = layer.spans[*link];
                dag.ask(word, Question::Eq(span.first), span.node, rest)
            }),
            Choice::Bits(mask, set, clear) => dag.ask(word, Question::AnySet(mask), set, clear),
            Choice::BitTest(OneLineTest { bits, decision, .. }) => {
                let (rest, known) = layer.rest(first, last, bits);
                let no = match &rest[..] {
                    [span] => span.node,
                    rest => {
                        let tests = OneLineTests::new(rest, &[], known, layer.prices);
                        build(dag, word, rest, layer.prices, Some(&tests))
                    }
                };
                dag.ask(word, Question::AnySet(bits), decision, no)
            }
            Choice::Cut(cut) => {
                let no = self.build(dag, depth, first, cut - 1);
                let yes = self.build(dag, depth, cut, last);
                dag.ask(word, Question::Ge(layer.spans[cut].first), yes, no)
            }
        }
    }
}
