//! Which parts of a line matter, and which of them are cut.
//!
//! Many parts of a line occur in no tree of least cost, and what they cost need not be known. The questions on
//! the way to a part can be asked in another order, which leaves the parts below them as they are; where that
//! is cheaper, the tree was not the best.
//!
//! Where questions cost what the values weigh that arrive at them, a part much heavier than its heaviest
//! value is cut first. For let the value, of weight `w`, be asked about before the cut: if the side of the
//! cut that does not have the value weighs more than `w`, asking after the cut is cheaper. If all cuts down
//! to the value leave no more than `w` on the other side, no two of these sides are on the left or on the
//! right of the value, as one cut could take them both off, and be cheaper unless the rest is lighter than
//! they are. So after two cuts less than `3w` is left, or a leaf. Hence all layers but the first need no
//! more than the neighbourhoods of the values that are gone. (Longer leaves than [`MAX_LEAF_RUNS`], with
//! heavy runs of their decision side by side, are the exception; a test shows how rarely that matters.)
//!
//! A part inside the line that is heavier than both the runs before it and those behind it is a leaf or
//! asked about a value, but never cut. For consider the questions on the way to it, from the last cut on its
//! one side that a cut on its other side follows. Had the part been cut before all of these, what the first
//! of them takes off would be asked one question more; but each of both sides of the part would be asked one
//! less, as every cut on the way is about one side only. Values that are gone from the part were asked about
//! on the way, too, and count like what is taken off.
//!
//! For the same reason, a part that begins or ends with the line is never cut so that the side which does the
//! same is heavier than what the line has on the other side of the part. Both hold for the trees of least cost,
//! whatever their leaves cost, as long as mispredictions cost nothing; and for trees that cost a little more, if
//! as much more weight is allowed.

use std::ops::Range;

use super::layer::{Layer, MAX_BIT_RUNS};

/// A part that is heavier than a value by this factor is cut before it is asked about the value.
const CUT_FIRST: u32 = 8;

/// Parts of no more runs may be asked about a value first, however heavy they are: there may be nothing to
/// cut, as what is left may end in a chain or in a bit test. Hardly a chain is longer.
const MAX_LEAF_RUNS: usize = MAX_BIT_RUNS;

/// Some parts of a line: those that begin with a run end before another.
#[derive(Clone)]
pub(super) struct Parts {
    /// By first run.
    ends: Vec<usize>,
}

impl Parts {
    /// All parts of a line of so many runs.
    pub(super) fn all(size: usize) -> Parts {
        Parts {
            ends: vec![size; size],
        }
    }

    /// Where the parts end that begin with a run: before this one.
    pub(super) fn end(&self, first: usize) -> usize {
        self.ends[first]
    }

    /// Whether a part is one of them.
    pub(super) fn has(&self, first: usize, last: usize) -> bool {
        last < self.ends[first]
    }

    /// Leaves out the parts with a value that are not asked about it first. `layer` still has the value.
    fn restrict(&mut self, layer: &Layer<'_>, run: usize) {
        let most = layer.spans[run].weight.saturating_mul(CUT_FIRST);
        let mut end = layer.size();
        for first in (0..=run).rev() {
            while end > run && end - first > MAX_LEAF_RUNS && layer.weight(first, end - 1) > most {
                end -= 1;
            }
            self.ends[first] = end.min(self.ends[first]);
        }
    }

    /// Where the parts with a run begin, the last one first.
    pub(super) fn firsts_with(&self, run: usize) -> impl Iterator<Item = usize> {
        (0..=run)
            .rev()
            .take_while(move |first| self.has(*first, run))
    }

    /// The length of the longest part around these runs.
    pub(super) fn longest(&self, around: Around) -> usize {
        let firsts = (0..=around.first_at_most).rev();
        let ends = firsts.map(|first| (first, self.ends[first]));
        let ends = ends.take_while(|(_, end)| *end > around.last_at_least);
        ends.map(|(first, end)| end - first).max().unwrap_or(0)
    }
}

/// The parts that begin with a run or before it, and end with another or behind it.
#[derive(Clone, Copy)]
pub(super) struct Around {
    pub(super) first_at_most: usize,
    pub(super) last_at_least: usize,
}

impl Around {
    /// The parts with a run.
    pub(super) const fn run(run: usize) -> Around {
        Around {
            first_at_most: run,
            last_at_least: run,
        }
    }

    /// Where such parts of a length begin in a line of so many runs, which is no shorter.
    pub(super) fn firsts(self, length: usize, size: usize) -> Range<usize> {
        let start = (self.last_at_least + 1).saturating_sub(length);
        start..(self.first_at_most + 1).min(size + 1 - length)
    }
}

/// Which parts of a layer are cut, and where, in trees that cost little more than the best one.
pub(super) struct Cuts<'a> {
    /// The weights of all runs before each, in this layer.
    before: &'a [u32],
    /// The same in the layer of the whole tree.
    whole_before: &'a [u32],
    /// How much more a tree may cost.
    slack: u32,
    /// Parts that may be cut anywhere.
    anywhere: Parts,
}

impl<'a> Cuts<'a> {
    /// For some parts of a layer, in trees of the line in the layer `whole`. Linear in the runs, once for each
    /// value that is gone.
    pub(super) fn new(
        parts: &Parts,
        around: Around,
        layer: &'a Layer<'_>,
        whole: &'a Layer<'_>,
        slack: u32,
    ) -> Cuts<'a> {
        let mut cuts = Cuts {
            before: layer.weight_before(),
            whole_before: whole.weight_before(),
            slack,
            anywhere: parts.clone(),
        };
        if layer.prices.miss > 0 {
            return cuts;
        }
        let mut longest = layer.size();
        for first in (0..=around.first_at_most).rev() {
            if parts.ends[first] <= around.last_at_least {
                break;
            }
            if layer.is_gone(first) {
                longest = layer.size();
            }
            // Longer parts are the first to be too heavy, and with a run more they still are, unless a value
            // is gone from them.
            let mut end = parts.ends[first].min(longest);
            while end > around.last_at_least && cuts.is_too_heavy(first, end) {
                end -= 1;
            }
            longest = end;
            cuts.anywhere.ends[first] = end;
        }
        cuts
    }

    fn is_too_heavy(&self, first: usize, end: usize) -> bool {
        self.before[end] - self.before[first] > self.most(first, end)
    }

    /// The most that a side of a part weighs which ends where the part does, if that is inside the line.
    fn most(&self, first: usize, end: usize) -> u32 {
        let (before, whole) = (self.before, self.whole_before);
        let [line_start, .., line_end] = whole else {
            return 0;
        };
        let taken = (whole[first] - line_start).max(line_end - whole[end]);
        let gone = (whole[end] - whole[first]) - (before[end] - before[first]);
        self.slack.saturating_add(taken + gone)
    }

    /// Adds the cuts of other trees, in which values are gone from the layer on the way.
    pub(super) fn add(&mut self, other: &Cuts<'_>) {
        for (end, other) in self.anywhere.ends.iter_mut().zip(&other.anywhere.ends) {
            *end = (*end).max(*other);
        }
        let line = |before: &[u32]| before.last().copied().unwrap_or(0);
        let gone = line(other.whole_before) - line(self.before);
        self.slack = self.slack.max(gone.saturating_add(other.slack));
    }

    /// Whether a part may be cut anywhere.
    pub(super) fn anywhere(&self, first: usize, last: usize) -> bool {
        self.anywhere.has(first, last)
    }

    /// How many runs the left side has where a part is cut that begins or ends with the line, and is too
    /// heavy to be cut anywhere.
    pub(super) fn lefts(&self, first: usize, last: usize) -> Range<usize> {
        let end = last + 1;
        let most = self.most(first, end);
        let inside = &self.before[first + 1..end];
        let (start_weight, end_weight) = (self.before[first], self.before[end]);
        match (first, end + 1 == self.before.len()) {
            (0, true) => 1..end,
            (0, false) => {
                let light = inside.partition_point(|before| before - start_weight <= most);
                1..1 + light
            }
            _ => {
                let heavy = inside.partition_point(|before| end_weight - before > most);
                1 + heavy..end - first
            }
        }
    }
}

/// By layer, the parts that matter: all values of them that are gone were worth asking about before they were
/// cut. Then so do their own parts.
pub(super) fn that_matter(layers: &[Layer<'_>], heavy: &[usize]) -> Vec<Parts> {
    let mut all: Vec<Parts> = Vec::with_capacity(layers.len());
    for (depth, layer) in layers.iter().enumerate() {
        let mut parts = match all.last() {
            Some(parts) => parts.clone(),
            None => Parts::all(layer.size()),
        };
        if let Some(gone) = depth.checked_sub(1)
            && layer.prices.are_steps()
        {
            parts.restrict(&layers[gone], heavy[gone]);
        }
        all.push(parts);
    }
    all
}
