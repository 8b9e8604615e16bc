//! The parts of a line that trees of least cost may contain, and those of them that are cut.
//!
//! Many parts of a line occur in no tree of least cost, so their costs are not needed. The questions on the path to a
//! part can be asked in another order without changing the parts below; where another order is cheaper, the tree was
//! not optimal. A value is *removed* from the parts below a question that tests only this value.
//!
//! If the cost of a question is the weight of the values that reach it, a part much heavier than its heaviest value
//! is cut first. Let a value of weight `w` be tested before a cut. If the side without the value weighs more than
//! `w`, testing the value after the cut is cheaper. Otherwise every cut on the path to the value separates a side of
//! at most `w`. No two of these sides lie to the left of the value, or to the right of it: one cut could separate
//! both, and would be cheaper unless the rest is lighter than they are. So after two cuts less than `3w` is left, or
//! a leaf. Hence all layers but the first only need the neighbourhoods of the removed values. (Exception: leaves
//! longer than [`MAX_LEAF_RUNS`] with heavy runs of their decision side by side; a test shows how rarely that
//! matters.)
//!
//! A part inside the line that is heavier than both the runs before it and those behind it is a leaf or tests a
//! value, but is never cut. Consider the questions on the path to it, beginning with the last cut on one side of the
//! part that is followed by a cut on its other side. If the part were cut before all of these, the runs that the
//! first of them separates would need one question more. But each half of the part would need one question less,
//! because every cut on the path concerns only one half. Values removed from the part were tested on the path too,
//! and count like separated runs.
//!
//! For the same reason, a part that begins with the line is never cut so that the left side is heavier than the runs
//! behind the part, and a part that ends with the line is never cut so that the right side is heavier than the runs
//! before it. Both rules hold for the trees of least cost, whatever their leaves cost, as long as mispredictions cost
//! nothing.

use std::ops::Range;

use super::layer::{Layer, MAX_BIT_RUNS};

/// A part that is heavier than a value by this factor is cut before the value is tested.
const CUT_FIRST: u32 = 8;

/// Parts of at most this many runs may test a value first, whatever their weight: they may need no cut, because the
/// rest may be a chain or a bit test. Few chains are longer.
const MAX_LEAF_RUNS: usize = MAX_BIT_RUNS;

/// A set of parts of a line: for each first run, the parts that end before a limit.
#[derive(Clone)]
pub(super) struct Parts {
    /// By first run, the limit.
    ends: Vec<usize>,
}

impl Parts {
    /// All parts of a line of `size` runs.
    pub(super) fn all(size: usize) -> Parts {
        Parts {
            ends: vec![size; size],
        }
    }

    /// The limit for parts that begin with a run: they end before this run.
    pub(super) fn end(&self, first: usize) -> usize {
        self.ends[first]
    }

    /// Whether the set contains a part.
    pub(super) fn has(&self, first: usize, last: usize) -> bool {
        last < self.ends[first]
    }

    /// Removes the parts with a value that are cut before the value is tested. `layer` still contains the value.
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

    /// The first runs of the parts that contain a run, descending.
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

/// The parts that begin at or before one run and end at or behind another.
#[derive(Clone, Copy)]
pub(super) struct Around {
    pub(super) first_at_most: usize,
    pub(super) last_at_least: usize,
}

impl Around {
    /// The parts that contain a run.
    pub(super) const fn run(run: usize) -> Around {
        Around {
            first_at_most: run,
            last_at_least: run,
        }
    }

    /// The first runs of such parts of a length, in a line of `size` runs, which is at least as long.
    pub(super) fn firsts(self, length: usize, size: usize) -> Range<usize> {
        let start = (self.last_at_least + 1).saturating_sub(length);
        start..(self.first_at_most + 1).min(size + 1 - length)
    }
}

/// The parts of a layer that are cut, and their cuts, in trees of least cost.
pub(super) struct Cuts<'a> {
    /// The weights of all runs before each run, in this layer.
    before: &'a [u32],
    /// The same in the layer where the trees begin.
    whole_before: &'a [u32],
    /// Parts that may be cut anywhere.
    anywhere: Parts,
}

impl<'a> Cuts<'a> {
    /// The cuts of some parts of a layer, in trees of the line that begin in the layer `whole`. Linear in the runs,
    /// times the number of removed values.
    pub(super) fn new(
        parts: &Parts,
        around: Around,
        layer: &'a Layer<'_>,
        whole: &'a Layer<'_>,
    ) -> Cuts<'a> {
        let mut cuts = Cuts {
            before: layer.weight_before(),
            whole_before: whole.weight_before(),
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
            // A part that is too heavy stays so with another run, unless that run is removed.
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

    /// The weight above which cuts are excluded: the heavier of the two pieces of the line outside the part, and the
    /// values removed from the part.
    fn most(&self, first: usize, end: usize) -> u32 {
        let (before, whole) = (self.before, self.whole_before);
        let [line_start, .., line_end] = whole else {
            return 0;
        };
        let taken = (whole[first] - line_start).max(line_end - whole[end]);
        let gone = (whole[end] - whole[first]) - (before[end] - before[first]);
        taken + gone
    }

    /// Whether a part may have any cut.
    pub(super) fn anywhere(&self, first: usize, last: usize) -> bool {
        self.anywhere.has(first, last)
    }

    /// The lengths of the left side, in runs, for a part that begins or ends with the line and is too heavy for
    /// arbitrary cuts.
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

/// By layer, the parts that matter: every value removed from such a part was worth testing before a cut. The parts of
/// a part that matters matter too.
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
