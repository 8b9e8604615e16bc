//! The costs of all parts of a line, and the cheapest cut of each.
//!
//! Finding the best cut of every part would take `n³ / 6` sums of two costs. Skipping the parts that no tree cuts
//! ([`parts`](super::parts)) leaves less than half of them, but still most of the time for a table. Parts of equal
//! length are independent, so several are cut at once: their costs are adjacent in memory, as are the costs of their
//! left sides and of their right sides for each length of these, and one vector instruction handles several.
//!
//! Costs are whole numbers, stored as floating-point numbers, which represent them exactly. Every processor has a
//! vector minimum of floating-point numbers, but not every one has it for integers.

use std::ops::{Add, Range, Sub};

use super::parts::{Around, Cuts, Parts};
use crate::cost::Prices;

/// The most parts that are cut at once.
const MAX_LANES: usize = 16;

/// A type of number that represents whole numbers exactly up to a limit. Larger sums may be rounded, but never to a
/// value below the limit.
pub(super) trait Number:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self>
{
    /// Greater than any cost.
    const INFINITE: Self;

    /// A cost as a number of this type.
    fn from_cost(cost: u32) -> Self;

    /// The number as a cost.
    fn cost(self) -> u32;

    /// The smaller of the two.
    fn least(self, other: Self) -> Self {
        if self < other { self } else { other }
    }
}

/// The limit of an `f32`; that of an `f64` is beyond all costs.
pub(super) const LIMIT_F32: u64 = 1 << f32::MANTISSA_DIGITS;

impl Number for f32 {
    const INFINITE: f32 = f32::INFINITY;

    fn from_cost(cost: u32) -> f32 {
        cost as f32
    }

    fn cost(self) -> u32 {
        self as u32
    }
}

impl Number for f64 {
    const INFINITE: f64 = f64::INFINITY;

    fn from_cost(cost: u32) -> f64 {
        f64::from(cost)
    }

    fn cost(self) -> u32 {
        self as u32
    }
}

/// The costs of questions about the parts of a line.
pub(super) struct Questions<N> {
    /// The steps of all runs before each run.
    steps_before: Vec<N>,
    /// The cost if all runs before each run are mispredicted; `None` if mispredictions cost nothing.
    misses_before: Option<Vec<N>>,
    /// The price of one misprediction.
    miss: u32,
    insn: N,
}

impl<N: Number> Questions<N> {
    /// The costs for a line, given the weights of all runs before each run.
    pub(super) fn new(weight_before: &[u32], prices: Prices) -> Questions<N> {
        let before = |price: u32| {
            let mut sums = Vec::with_capacity(weight_before.len() + MAX_LANES);
            sums.extend(
                weight_before
                    .iter()
                    .map(|weight| N::from_cost(weight * price)),
            );
            sums.extend([N::INFINITE; MAX_LANES]);
            sums
        };
        Questions {
            steps_before: before(prices.step),
            misses_before: (prices.miss > 0).then(|| before(prices.miss)),
            miss: prices.miss,
            insn: N::from_cost(prices.insn),
        }
    }

    /// The costs of questions about parts of a length, without mispredictions.
    fn asked<const LANES: usize>(&self, first: usize, length: usize) -> [N; LANES] {
        let steps = differences(&self.steps_before, first, first + length);
        steps.map(|steps| steps + self.insn)
    }

    /// Adds the cost of a question about one value to the costs of parts without this value. The parts have one
    /// length, the first of them begins with `first`, and the value has this weight.
    pub(super) fn ask_first(&self, costs: &mut [N], first: usize, length: usize, weight: u32) {
        let ends = &self.steps_before[first + length..];
        for ((cost, start), end) in costs.iter_mut().zip(&self.steps_before[first..]).zip(ends) {
            *cost = *cost + (*end - *start + self.insn);
        }
        let Some(misses_before) = &self.misses_before else {
            return;
        };
        let yes = N::from_cost(weight * self.miss);
        let ends = &misses_before[first + length..];
        for ((cost, start), end) in costs.iter_mut().zip(&misses_before[first..]).zip(ends) {
            *cost = *cost + yes.least(*end - *start - yes);
        }
    }
}

/// By lane, the difference of a sum between two places.
fn differences<N: Number, const LANES: usize>(sums: &[N], from: usize, to: usize) -> [N; LANES] {
    let (from, to): (&[N; LANES], &[N; LANES]) = (lanes(sums, from), lanes(sums, to));
    std::array::from_fn(|lane| to[lane] - from[lane])
}

fn lanes<N, const LANES: usize>(numbers: &[N], from: usize) -> &[N; LANES] {
    let lanes = numbers[from..].first_chunk();
    lanes.expect("lists are longer than the line by a number of lanes")
}

/// The costs of all parts of a line: by length, then by first run.
pub(super) struct Costs<N> {
    /// The number of runs of the line.
    size: usize,
    /// The number of cells for each length; the first length is 0.
    stride: usize,
    cells: Vec<N>,
}

impl<N: Number> Costs<N> {
    /// Infinite costs, for a line of `size` runs.
    pub(super) fn new(size: usize) -> Costs<N> {
        let stride = size.max(MAX_LANES + 1);
        Costs {
            size,
            stride,
            cells: vec![N::INFINITE; stride * (size + 1) + MAX_LANES],
        }
    }

    pub(super) fn get(&self, first: usize, last: usize) -> N {
        self.cells[self.place(first, last + 1 - first)]
    }

    pub(super) fn set(&mut self, first: usize, last: usize, cost: N) {
        let place = self.place(first, last + 1 - first);
        self.cells[place] = cost;
    }

    /// Sets a cost unless the present one is lower.
    pub(super) fn lower(&mut self, first: usize, last: usize, cost: N) {
        let place = self.place(first, last + 1 - first);
        self.cells[place] = self.cells[place].least(cost);
    }

    /// The costs of the parts of a length that begin with these runs.
    pub(super) fn row_mut(&mut self, firsts: Range<usize>, length: usize) -> &mut [N] {
        let place = self.place(firsts.start, length);
        &mut self.cells[place..][..firsts.len()]
    }

    const fn place(&self, first: usize, length: usize) -> usize {
        length * self.stride + first
    }

    /// The costs of the left and the right sides of all cuts of a part, the shortest left side first.
    pub(super) fn cuts(&self, first: usize, last: usize) -> impl Iterator<Item = (N, N)> {
        let sides = self.sides::<1>(first, last + 1 - first);
        sides.map(|([left], [right])| (*left, *right))
    }

    /// Lowers the costs of parts to those of their cheapest permitted cuts, the shortest parts first.
    pub(super) fn cut(
        &mut self,
        parts: &Parts,
        around: Around,
        cuts: &Cuts<'_>,
        questions: &Questions<N>,
    ) {
        for length in 2..=parts.longest(around) {
            let firsts = around.firsts(length, self.size);
            let is_cut = |first: &usize| cuts.anywhere(*first, first + length - 1);
            let start = firsts.clone().find(is_cut).unwrap_or(firsts.end);
            let end = (start..firsts.end)
                .rfind(is_cut)
                .map_or(start, |last| last + 1);
            // All parts between these may be cut too.
            let mut first = start;
            while first < end {
                let count = (end - first).min(MAX_LANES);
                match count {
                    0..=4 => self.cut_lanes::<4>(first, count, length, questions),
                    5..=8 => self.cut_lanes::<8>(first, count, length, questions),
                    _ => self.cut_lanes::<MAX_LANES>(first, count, length, questions),
                }
                first += count;
            }
            // A part that begins or ends with the line may be too heavy for arbitrary cuts.
            let suffix = self.size - length;
            let is_other = |first: usize| {
                firsts.contains(&first)
                    && !(start..end).contains(&first)
                    && parts.has(first, first + length - 1)
            };
            if is_other(0) {
                self.cut_edge(0, length - 1, cuts.lefts(0, length - 1), questions);
            }
            if suffix > 0 && is_other(suffix) {
                let last = self.size - 1;
                self.cut_edge(suffix, last, cuts.lefts(suffix, last), questions);
            }
        }
    }

    /// Cuts a part, with these lengths of the left side in runs.
    fn cut_edge(
        &mut self,
        first: usize,
        last: usize,
        lefts: Range<usize>,
        questions: &Questions<N>,
    ) {
        debug_assert!(questions.misses_before.is_none(), "then no cut is left out");
        let [asked] = questions.asked(first, last + 1 - first);
        let sides = self
            .cuts(first, last)
            .skip(lefts.start - 1)
            .take(lefts.len());
        let best = sides.fold(N::INFINITE, |best, (left, right)| best.least(left + right));
        self.lower(first, last, best + asked);
    }

    /// Cuts `count` parts of a length; the first of them begins with this run.
    fn cut_lanes<const LANES: usize>(
        &mut self,
        first: usize,
        count: usize,
        length: usize,
        questions: &Questions<N>,
    ) {
        let sides: [N; LANES] = match &questions.misses_before {
            None => self.cheapest_sides(first, length),
            Some(misses_before) => self.cheapest_sides_with_misses(first, length, misses_before),
        };
        let asked = questions.asked::<LANES>(first, length);
        let costs: [N; LANES] = std::array::from_fn(|lane| sides[lane] + asked[lane]);
        let cells = self.row_mut(first..first + count, length);
        if let Some(cells) = cells.first_chunk_mut::<LANES>() {
            for lane in 0..LANES {
                cells[lane] = cells[lane].least(costs[lane]);
            }
        } else {
            for (cell, cost) in cells.iter_mut().zip(costs) {
                *cell = cell.least(cost);
            }
        }
    }

    /// The costs of both sides together for the cheapest cuts of parts of a length.
    fn cheapest_sides<const LANES: usize>(&self, first: usize, length: usize) -> [N; LANES] {
        let mut best = [N::INFINITE; LANES];
        self.sides::<LANES>(first, length)
            .for_each(|(lefts, rights)| {
                for lane in 0..LANES {
                    best[lane] = best[lane].least(lefts[lane] + rights[lane]);
                }
            });
        best
    }

    /// The same, including the mispredictions of the cut.
    fn cheapest_sides_with_misses<const LANES: usize>(
        &self,
        first: usize,
        length: usize,
        misses_before: &[N],
    ) -> [N; LANES] {
        let starts: &[N; LANES] = lanes(misses_before, first);
        let ends: &[N; LANES] = lanes(misses_before, first + length);
        let mut best = [N::INFINITE; LANES];
        for (left, (lefts, rights)) in (1..).zip(self.sides::<LANES>(first, length)) {
            let cuts: &[N; LANES] = lanes(misses_before, first + left);
            for lane in 0..LANES {
                let missed = (ends[lane] - cuts[lane]).least(cuts[lane] - starts[lane]);
                best[lane] = best[lane].least(lefts[lane] + rights[lane] + missed);
            }
        }
        best
    }

    /// The costs of the left and right sides of all cuts of parts of a length, the shortest left sides first.
    fn sides<const LANES: usize>(
        &self,
        first: usize,
        length: usize,
    ) -> impl Iterator<Item = (&[N; LANES], &[N; LANES])> {
        // The costs of successive left sides are one row apart, those of successive right sides one row less one
        // cell: each is one run shorter and begins one run later.
        let end = self.place(first, length);
        let lefts = self.cells[self.place(first, 1)..end].chunks_exact(self.stride);
        let rights = &self.cells[self.place(first + length - 1, 1)..end];
        let sides = lefts.zip(rights.rchunks_exact(self.stride - 1));
        sides.map(|(lefts, rights)| (lanes(lefts, 0), lanes(rights, 0)))
    }
}
