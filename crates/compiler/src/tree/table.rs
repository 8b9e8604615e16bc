//! Longer lines: dynamic programming over contiguous parts, in layers.
//!
//! The best tree for a part of the line cuts it in two, each of which is a part again; or it asks about
//! one value first and then treats the rest of the part as if that value could have any decision. In
//! optimal two-way-comparison trees the values asked about are the heaviest of their part (Spuler 1994;
//! Chrobak, Golin, Munro and Young 2015-2021). So there is one table per number of heaviest values
//! already taken out of the whole line: the part of a table either cuts within the table, or asks about
//! its next heaviest value and goes on in the next table. Light values that stand between runs of one
//! decision are asked about in short chains at the leaves, where the literature's trees, which never
//! merge neighbours, have no use for them; a bit test may end a part, too, leave little of it
//! ([`masks`](super::masks)), or leave two lines ([`halves`](super::halves)).
//!
//! Tables beyond the first are only made for values heavy enough to pay. `O(n³)` each.

use tamis_abi::Word;

use super::bits::{bits_of, separating_mask};
use super::costs::{Costs, LIMIT_F32, Number, Questions};
use super::halves::{self, Halves};
use super::masks::{Mask, Masks};
use super::sides::push;
use super::{Span, question_cost};
use crate::cost::Prices;
use crate::dag::{Dag, NodeId, Question};

/// A value is heavy if its part of the whole weight is larger than one by this.
pub(super) const HEAVY_SHARE: u32 = 128;

/// The most heavy values, and thereby tables.
const MAX_HEAVY: usize = 8;

/// The most elementary steps of all tables together; longer lines have fewer heavy values.
const MAX_WORK: usize = 1 << 21;

/// The longest chain of equality questions at a leaf.
const MAX_CHAIN: usize = 5;

/// The longest part that ends in a bit test.
const MAX_BIT_RUNS: usize = 16;

/// More than any cost.
const LARGEST: u32 = i32::MAX as u32;

/// Adds the tree of least cost.
pub(super) fn build(
    dag: &mut Dag,
    word: Word,
    spans: &[Span],
    prices: Prices,
    masks: Option<&Masks<'_>>,
) -> NodeId {
    if most(spans, prices) < LIMIT_F32 {
        build_with::<f32>(dag, word, spans, prices, masks)
    } else {
        build_with::<f64>(dag, word, spans, prices, masks)
    }
}

fn build_with<N: Number>(
    dag: &mut Dag,
    word: Word,
    spans: &[Span],
    prices: Prices,
    masks: Option<&Masks<'_>>,
) -> NodeId {
    let layers = layers::<N>(spans, prices, masks);
    Builder { word, layers }.build(dag, 0, 0, spans.len() - 1)
}

/// No less than the cost of a tree that halves the line: the cheapest is not more expensive.
fn most(spans: &[Span], prices: Prices) -> u64 {
    let whole: u64 = spans.iter().map(|span| u64::from(span.weight)).sum();
    let levels = u64::from(spans.len().next_power_of_two().ilog2());
    let asked = u64::from(prices.step) + u64::from(prices.miss);
    levels * whole * asked + spans.len() as u64 * u64::from(prices.insn)
}

/// The tables, by the number of heavy values that are gone.
pub(super) fn layers<'a, N: Number>(
    spans: &'a [Span],
    prices: Prices,
    masks: Option<&'a Masks<'a>>,
) -> Vec<Layer<'a, N>> {
    let heavy = heavy(spans);
    let mut layers: Vec<Layer<'_, N>> = Vec::with_capacity(heavy.len() + 1);
    for asked in (0..=heavy.len()).rev() {
        let next = layers.last();
        let next_heavy = heavy.get(asked).copied();
        let mut layer = Layer::new(spans, prices, &heavy[..asked], next_heavy, next);
        layer.masks = masks;
        layer.fill(next);
        if let (None, Some(masks)) = (next, masks) {
            layer.halve(masks);
        }
        layers.push(layer);
    }
    layers.reverse();
    layers
}

/// The values that may be asked about before the line is cut, the heaviest first.
fn heavy(spans: &[Span]) -> Vec<usize> {
    let whole: u32 = spans.iter().map(|span| span.weight).sum();
    let is_heavy = |at: &usize| spans[*at].is_single() && spans[*at].weight > whole / HEAVY_SHARE;
    let mut heavy: Vec<usize> = (0..spans.len()).filter(is_heavy).collect();
    heavy.sort_by_key(|at| std::cmp::Reverse(spans[*at].weight));
    let work = spans.len().pow(3) / 6 + 1;
    heavy.truncate(MAX_HEAVY.min(MAX_WORK / work));
    heavy
}

/// The least cost of every part of the line, some of whose values have been asked about.
pub(super) struct Layer<'a, N> {
    spans: &'a [Span],
    prices: Prices,
    /// Whether a run has been asked about.
    is_gone: Vec<bool>,
    /// The run that is asked about between this layer and the next.
    next_heavy: Option<usize>,
    masks: Option<&'a Masks<'a>>,
    /// In order of first run; only in the last layer.
    halves: Vec<Halves>,
    weight_before: Vec<u32>,
    costs: Costs<N>,
}

/// How a part is decided.
enum Choice {
    Decided,
    /// The heavy value of the layer is asked about.
    Heavy(usize),
    /// These values are asked about one after the other; all else is the decision.
    Chain(Links, NodeId),
    /// Bits, and the decisions for yes and no.
    Bits(u32, NodeId, NodeId),
    /// Bits that leave lines.
    Halves(u32),
    /// The right side begins with this run.
    Cut(usize),
}

/// The runs that a chain asks about, in order.
#[derive(Default)]
struct Links {
    runs: [usize; MAX_CHAIN],
    count: usize,
}

impl Links {
    fn as_slice(&self) -> &[usize] {
        &self.runs[..self.count]
    }
}

impl<'a, N: Number> Layer<'a, N> {
    fn new(
        spans: &'a [Span],
        prices: Prices,
        gone: &[usize],
        next_heavy: Option<usize>,
        next: Option<&Layer<'_, N>>,
    ) -> Layer<'a, N> {
        let is_gone: Vec<bool> = (0..spans.len()).map(|at| gone.contains(&at)).collect();
        let mut weight_before = vec![0];
        let mut before = 0;
        for (span, is_gone) in spans.iter().zip(&is_gone) {
            before += if *is_gone { 0 } else { span.weight };
            weight_before.push(before);
        }
        Layer {
            spans,
            prices,
            is_gone,
            next_heavy,
            masks: None,
            halves: Vec::new(),
            weight_before,
            // Parts without the next heavy value are what they are in the next layer.
            costs: next.map_or_else(|| Costs::new(spans.len()), |next| next.costs.clone()),
        }
    }

    pub(super) fn size(&self) -> usize {
        self.spans.len()
    }

    pub(super) fn prices(&self) -> Prices {
        self.prices
    }

    /// The runs of a part that have not been asked about.
    pub(super) fn left(&self, first: usize, last: usize) -> impl Iterator<Item = usize> {
        (first..=last).filter(|at| !self.is_gone[*at])
    }

    pub(super) fn cost(&self, first: usize, last: usize) -> u32 {
        self.costs.get(first, last).cost()
    }

    fn weight(&self, first: usize, last: usize) -> u32 {
        self.weight_before[last + 1] - self.weight_before[first]
    }

    /// Finds all costs, given those of the layer in which the next heavy value is gone, too.
    fn fill(&mut self, next: Option<&Layer<'_, N>>) {
        let size = self.size();
        let heavy = self.next_heavy;
        // The first runs of the parts of a length that are not known.
        let firsts_of = |length: usize| match heavy {
            Some(heavy) => (heavy + 1).saturating_sub(length)..(size + 1 - length).min(heavy + 1),
            None => 0..size + 1 - length,
        };
        for length in 1..=size {
            self.costs.forget(firsts_of(length), length);
        }
        let mut uncut = Vec::with_capacity(size);
        for first in 0..heavy.map_or(size, |heavy| heavy + 1) {
            let from = heavy.unwrap_or(first);
            self.leaves(first, from, &mut uncut);
            for (last, cost) in (from..).zip(&uncut) {
                self.costs.set(first, last, N::of(*cost));
            }
        }
        let questions = Questions::new(self.spans, &self.is_gone, self.prices);
        for length in 1..=size {
            let firsts = firsts_of(length);
            if let (Some(next), Some(heavy)) = (next, heavy) {
                let missed = N::of(self.spans[heavy].weight * self.prices.miss);
                let next = &next.costs;
                self.costs
                    .ask_first(firsts.clone(), length, &questions, missed, next);
            }
            self.costs.cut(firsts, length, &questions);
        }
    }

    /// Takes into account bit tests that leave lines on both sides.
    fn halve(&mut self, masks: &Masks<'_>) {
        self.halves = halves::find(self, &masks.sides);
        self.halves
            .sort_unstable_by_key(|test| (test.first, test.last));
        let Some(shortest) = self
            .halves
            .iter()
            .map(|test| test.last + 1 - test.first)
            .min()
        else {
            return;
        };
        for test in &self.halves {
            self.costs.set(test.first, test.last, N::of(test.cost));
        }
        let questions = Questions::new(self.spans, &self.is_gone, self.prices);
        for length in shortest..=self.size() {
            let firsts = 0..self.size() + 1 - length;
            self.costs.cut(firsts, length, &questions);
        }
    }

    fn heavy_cost(&self, next: &Layer<'_, N>, heavy: usize, first: usize, last: usize) -> u32 {
        let yes = self.spans[heavy].weight;
        let no = self.weight(first, last) - yes;
        question_cost(self.prices, yes, no) + next.cost(first, last)
    }

    /// Puts into `row` the costs of the parts that begin with a run, end with `from` or later, and need no
    /// cut, by last run, as far as there are any; [`LARGEST`] for others.
    fn leaves(&self, first: usize, from: usize, row: &mut Vec<u32>) {
        row.clear();
        let bases = self.bases(first);
        if bases.iter().all(Option::is_none) {
            row.resize(self.size() - from, 0);
        }
        for base in bases.into_iter().flatten() {
            let mut links = Links::default();
            for last in first..self.size() {
                if self.is_link(last, base) && !self.add_link(&mut links, last) {
                    break;
                }
                let Some(place) = last.checked_sub(from) else {
                    continue;
                };
                let cost = self.chain_cost(first, last, &links);
                match row.get_mut(place) {
                    Some(least) => *least = cost.min(*least),
                    None => row.push(cost),
                }
            }
        }
        self.bit_leaves(first, from, row);
        for mask in self.masks(first).filter(|mask| mask.last >= from) {
            let place = mask.last - from;
            row.resize(row.len().max(place + 1), LARGEST);
            row[place] = row[place].min(mask.cost);
        }
    }

    /// Takes into account bit tests for the parts that begin with a run and end with `from` or later.
    fn bit_leaves(&self, first: usize, from: usize, row: &mut Vec<u32>) {
        // The decisions met, at most two; the bits that their values have, and their weights.
        let mut met: [Option<(NodeId, u32, u32)>; 2] = [None; 2];
        let lasts = first..self.size().min(first + MAX_BIT_RUNS);
        for last in lasts.filter(|at| !self.is_gone[*at]) {
            let Span { node, weight, .. } = self.spans[last];
            let used = bits_of(&self.spans[last]);
            let is_its =
                |met: &&mut Option<(NodeId, u32, u32)>| met.is_none_or(|met| met.0 == node);
            match met.iter_mut().find(is_its) {
                Some(Some((_, bits, sum))) => {
                    *bits |= used;
                    *sum += weight;
                }
                Some(unmet) => *unmet = Some((node, used, weight)),
                None => return,
            }
            let (Some(place), [Some((_, one, weight)), Some((_, other, other_weight))]) =
                (last.checked_sub(from), met)
            else {
                continue;
            };
            let asked = question_cost(self.prices, weight, other_weight);
            // Without a bit that only one of them has, there is no mask; and more values never make up
            // for a mask that is missing.
            let is_less = row.get(place).is_none_or(|cost| asked < *cost);
            if is_less && one != other {
                if self.bit_test(first, last).is_none() {
                    return;
                }
                row.resize(row.len().max(place + 1), LARGEST);
                row[place] = asked;
            }
        }
    }

    /// The bit tests that leave something, for the parts that begin with a run. They know nothing of
    /// runs that are gone.
    fn masks(&self, first: usize) -> impl Iterator<Item = &Mask> {
        let masks = self
            .masks
            .map_or(&[][..], |masks| masks.beginning_with(first));
        let is_whole = |mask: &&Mask| !self.is_gone[mask.first..=mask.last].contains(&true);
        masks.iter().filter(is_whole)
    }

    /// The runs of a part whose values have none of these bits, and one of them.
    fn sides(&self, first: usize, last: usize, bits: u32) -> [Vec<Span>; 2] {
        let mut both = [Vec::new(), Vec::new()];
        if let Some(Masks { sides, .. }) = self.masks {
            for at in self.left(first, last) {
                for (side, span) in both.iter_mut().zip(sides.split(at, bits)) {
                    if let Some(span) = span {
                        push(side, span);
                    }
                }
            }
        }
        both
    }

    /// The decisions that may be what is left of a chain which begins with a run: those of the first two
    /// runs there. A chain that begins with two other values has a cut behind them that is as good.
    fn bases(&self, first: usize) -> [Option<NodeId>; 2] {
        let mut left = (first..self.size()).filter(|at| !self.is_gone[*at]);
        let one = left.next().map(|at| self.spans[at].node);
        let other = left
            .map(|at| self.spans[at].node)
            .find(|node| Some(*node) != one);
        [one, other]
    }

    /// The single values of a part, the heaviest first, if all else has the decision `base` and there
    /// are not too many.
    fn links(&self, first: usize, last: usize, base: NodeId) -> Option<Links> {
        let mut links = Links::default();
        let mut wanted = (first..=last).filter(|at| self.is_link(*at, base));
        wanted
            .all(|at| self.add_link(&mut links, at))
            .then_some(links)
    }

    fn is_link(&self, at: usize, base: NodeId) -> bool {
        !self.is_gone[at] && self.spans[at].node != base
    }

    /// Adds a run behind those that are as heavy, unless it is no single value or one too many.
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

    fn chain_cost(&self, first: usize, last: usize, links: &Links) -> u32 {
        let mut left = self.weight(first, last);
        let mut cost = 0;
        for link in links.as_slice() {
            let yes = self.spans[*link].weight;
            left -= yes;
            cost += question_cost(self.prices, yes, left);
        }
        cost
    }

    /// The bits that decide a part with two decisions, the decision if one of them is set, and the
    /// other.
    fn bit_test(&self, first: usize, last: usize) -> Option<(u32, NodeId, NodeId)> {
        let left = || (first..=last).filter(|at| !self.is_gone[*at]);
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

    /// How the least cost of a part is reached.
    fn choice(&self, next: Option<&Layer<'_, N>>, first: usize, last: usize) -> Choice {
        let cost = self.cost(first, last);
        if let (Some(next), Some(heavy)) = (next, self.next_heavy)
            && (first..=last).contains(&heavy)
            && self.heavy_cost(next, heavy, first, last) == cost
        {
            return Choice::Heavy(heavy);
        }
        for base in self.bases(first).into_iter().flatten() {
            if let Some(links) = self.links(first, last, base)
                && self.chain_cost(first, last, &links) == cost
            {
                return if links.count == 0 {
                    Choice::Decided
                } else {
                    Choice::Chain(links, base)
                };
            }
        }
        let cut = self.best_cut(first, last);
        if cost == self.cut_cost(first, last, cut) {
            return Choice::Cut(cut);
        }
        match self.bit_test(first, last) {
            Some((mask, set, clear)) => Choice::Bits(mask, set, clear),
            None => {
                let bits = self.halving(first, last, cost);
                bits.map_or(Choice::Cut(cut), Choice::Halves)
            }
        }
    }

    /// The bits that leave lines and bring a part to this cost.
    fn halving(&self, first: usize, last: usize, cost: u32) -> Option<u32> {
        let mut masks = self.masks(first);
        let mask = masks.find(|mask| mask.last == last && mask.cost == cost);
        let place = |test: &Halves| (test.first, test.last).cmp(&(first, last));
        let found = self.halves.binary_search_by(place).ok();
        let halves = found
            .map(|at| self.halves[at])
            .filter(|test| test.cost == cost);
        mask.map(|mask| mask.bits).or(halves.map(|test| test.bits))
    }

    pub(super) fn cut_cost(&self, first: usize, last: usize, cut: usize) -> u32 {
        let (no, yes) = (self.weight(first, cut - 1), self.weight(cut, last));
        let sides = self.cost(first, cut - 1) + self.cost(cut, last);
        sides + question_cost(self.prices, yes, no)
    }

    /// The run at which the right side of the best cut begins. Of equally good cuts the one nearest the
    /// middle, for depth.
    fn best_cut(&self, first: usize, last: usize) -> usize {
        let middle = (first + last).div_ceil(2);
        (first + 1..=last)
            .min_by_key(|cut| (self.cut_cost(first, last, *cut), cut.abs_diff(middle)))
            .unwrap_or(last)
    }
}

struct Builder<'a, N> {
    word: Word,
    /// By the number of heavy values that are gone.
    layers: Vec<Layer<'a, N>>,
}

impl<N: Number> Builder<'_, N> {
    fn build(&self, dag: &mut Dag, depth: usize, first: usize, last: usize) -> NodeId {
        let layer = &self.layers[depth];
        let word = self.word;
        if let Some(heavy) = layer.next_heavy
            && !(first..=last).contains(&heavy)
        {
            return self.build(dag, depth + 1, first, last);
        }
        match layer.choice(self.layers.get(depth + 1), first, last) {
            Choice::Decided => {
                let left = (first..=last).find(|at| !layer.is_gone[*at]);
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
            Choice::Halves(bits) => {
                let [no, yes] = layer.sides(first, last, bits).map(|side| match &side[..] {
                    [span] => span.node,
                    side => {
                        let masks = Masks::new(side, &[], layer.prices);
                        build(dag, word, side, layer.prices, Some(&masks))
                    }
                });
                dag.ask(word, Question::AnySet(bits), yes, no)
            }
            Choice::Cut(cut) => {
                let no = self.build(dag, depth, first, cut - 1);
                let yes = self.build(dag, depth, cut, last);
                dag.ask(word, Question::Ge(layer.spans[cut].first), yes, no)
            }
        }
    }
}
