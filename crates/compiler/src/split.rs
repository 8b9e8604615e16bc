//! Splits: the value of one word, by intervals and by bits.
//!
//! Values that a policy names are often flags: `{0, 1, 0x80, 0x81}` are four intervals, and one question
//! about bits. A *cube* is the set of values with given bits under a mask; a question about a cube cuts
//! a line of runs into what can be inside and what can be outside, and on either side the values of the
//! other are nobody's: runs that they separated grow together. This file tries the cubes that the
//! decisions suggest and keeps what costs least; without any it is a search tree.

use tamis_abi::{SeccompData, Word};

use crate::cost::{keeps_word, question_steps};
use crate::dag::{Dag, Node, NodeId, Question};
use crate::tree::{Run, merge, search};

/// The shortest and the longest line for which cubes are tried: two runs are one question, and the time
/// is quadratic.
const CUBE_RUNS: std::ops::RangeInclusive<usize> = 4..=96;

/// How many questions about cubes follow each other at most, where the best decision is wanted.
const MAX_DEPTH: u32 = 3;

/// The most cubes that are tried at one place.
const MAX_CUBES: usize = 8;

/// The most aligned blocks of one decision that are combined.
const MAX_BLOCKS: usize = 32;

/// What a question of length costs, as a fraction of the whole weight.
const LENGTH_SHARE: u64 = 16;

/// How hard to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Intervals only: for finding out which order of words is the best.
    Quick,
    /// Cubes too.
    Thorough,
}

/// A value of the word, and how often it is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) value: u32,
    pub(crate) weight: u64,
}

/// The values whose bits under the mask are these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cube {
    mask: u32,
    value: u32,
}

/// Adds the decision by the value of a word. The runs are first values with their decisions, ascending
/// from 0; the points are in any order.
pub(crate) fn split(
    dag: &mut Dag,
    word: Word,
    runs: &[(u32, NodeId)],
    points: &[Point],
    effort: Effort,
) -> NodeId {
    let mut points = points.to_vec();
    let runs = runs.iter().map(|(first, node)| Run {
        first: *first,
        weight: 0,
        node: *node,
    });
    let runs = merge(&runs.collect::<Vec<Run>>());
    let whole: u64 = points.iter().map(|point| point.weight).sum();
    // What was never seen is possible all the same.
    let floor = whole / 16 / runs.len() as u64 + 1;
    points.extend(runs.iter().map(|run| Point {
        value: run.first,
        weight: floor,
    }));
    points.sort_by_key(|point| point.value);
    let mut ends: Vec<NodeId> = runs.iter().map(|run| run.node).collect();
    ends.sort_unstable();
    ends.dedup();
    let splitter = Splitter { word, ends };
    match effort {
        Effort::Quick => splitter.tree(dag, &runs, &points),
        Effort::Thorough => splitter.best(dag, &runs, &points, MAX_DEPTH),
    }
}

struct Splitter {
    word: Word,
    /// The decisions, ascending.
    ends: Vec<NodeId>,
}

impl Splitter {
    fn best(&self, dag: &mut Dag, runs: &[Run], points: &[Point], depth: u32) -> NodeId {
        let mut best = self.tree(dag, runs, points);
        if depth == 0 || !CUBE_RUNS.contains(&runs.len()) {
            return best;
        }
        let mut best_cost = self.cost(dag, best, points);
        for cube in cubes(runs) {
            let inside = restrict(runs, |first, last| cube.meets(first, last));
            let outside = restrict(runs, |first, last| !cube.covers(first, last));
            // A question of the search tree leaves as many runs as there were, or one more.
            let most = runs.len() - usize::from(cube.value != 0);
            if inside.len() >= runs.len() || inside.len() + outside.len() > most {
                continue;
            }
            let (points_in, points_out): (Vec<Point>, Vec<Point>) =
                points.iter().partition(|point| cube.has(point.value));
            let yes = self.best(dag, &inside, &points_in, depth - 1);
            let no = self.best(dag, &outside, &points_out, depth - 1);
            let Cube { mask, value } = cube;
            let node = dag.ask(self.word, Question::Masked { mask, value }, yes, no);
            let cost = self.cost(dag, node, points);
            if cost < best_cost {
                (best, best_cost) = (node, cost);
            }
        }
        best
    }

    fn tree(&self, dag: &mut Dag, runs: &[Run], points: &[Point]) -> NodeId {
        let mut weighed = runs.to_vec();
        for point in points {
            let at = weighed.partition_point(|run| run.first <= point.value);
            weighed[at.saturating_sub(1)].weight += point.weight;
        }
        search(dag, self.word, &weighed)
    }

    /// Expected steps and length of a decision about the word, in units of the points' weight.
    fn cost(&self, dag: &Dag, root: NodeId, points: &[Point]) -> u64 {
        let whole: u64 = points.iter().map(|point| point.weight).sum();
        let steps: u64 = points
            .iter()
            .map(|point| point.weight * self.steps(dag, root, point.value))
            .sum();
        steps + self.length(dag, root) * (whole / LENGTH_SHARE + 1)
    }

    fn question(&self, dag: &Dag, id: NodeId) -> Option<(Question, NodeId, NodeId)> {
        match dag.node(id) {
            Node::Ask {
                word,
                question,
                yes,
                no,
            } if word == self.word && self.ends.binary_search(&id).is_err() => {
                Some((question, yes, no))
            }
            _ => None,
        }
    }

    fn steps(&self, dag: &Dag, root: NodeId, value: u32) -> u64 {
        let data = SeccompData::default().with_word(self.word, value);
        let (mut id, mut steps, mut reload) = (root, 0, 0);
        while let Some((question, yes, no)) = self.question(dag, id) {
            steps += question_steps(question) + reload;
            reload = u64::from(!keeps_word(question));
            id = if question.holds(self.word, &data) {
                yes
            } else {
                no
            };
        }
        steps
    }

    fn length(&self, dag: &Dag, root: NodeId) -> u64 {
        let mut open = vec![root];
        let mut seen = Vec::new();
        let mut length = 0;
        while let Some(id) = open.pop() {
            if let Some((question, yes, no)) = self.question(dag, id)
                && !seen.contains(&id)
            {
                seen.push(id);
                length += question_steps(question) + u64::from(!keeps_word(question));
                open.extend([yes, no]);
            }
        }
        length
    }
}

impl Cube {
    fn has(self, value: u32) -> bool {
        value & self.mask == self.value
    }

    /// Whether an element is in `first..=last`.
    fn meets(self, first: u32, last: u32) -> bool {
        self.next(first).is_some_and(|value| value <= last)
    }

    /// Whether all of `first..=last` are elements.
    fn covers(self, first: u32, last: u32) -> bool {
        self.has(first) && self.mask & up_to_highest(first ^ last) == 0
    }

    /// The smallest element that is at least this.
    fn next(self, from: u32) -> Option<u32> {
        let wrong = (from & self.mask) ^ self.value;
        if wrong == 0 {
            return Some(from);
        }
        let wrong_bits = up_to_highest(wrong);
        let highest = wrong_bits ^ (wrong_bits >> 1);
        if self.value & highest != 0 {
            return Some(from & !wrong_bits | self.value & wrong_bits);
        }
        // A free zero above must become one.
        let free = !self.mask & !from & !wrong_bits;
        let raised = free & free.wrapping_neg();
        (raised != 0).then(|| from & !(raised | (raised - 1)) | raised | self.value & (raised - 1))
    }

    /// The cube of all values between the two that has the fewest elements.
    fn around(first: u32, last: u32) -> Cube {
        let mask = !up_to_highest(first ^ last);
        Cube {
            mask,
            value: first & mask,
        }
    }

    /// The smallest cube that holds both.
    fn hull(self, other: Cube) -> Cube {
        let mask = self.mask & other.mask & !(self.value ^ other.value);
        Cube {
            mask,
            value: self.value & mask,
        }
    }
}

/// All bits from the highest set one down.
fn up_to_highest(bits: u32) -> u32 {
    u32::MAX.checked_shr(bits.leading_zeros()).unwrap_or(0)
}

/// The first and last value of each run.
fn spans(runs: &[Run]) -> impl Iterator<Item = (u32, u32, NodeId)> {
    let lasts = runs[1..].iter().map(|run| run.first - 1);
    let pairs = runs.iter().zip(lasts.chain([u32::MAX]));
    pairs.map(|(run, last)| (run.first, last, run.node))
}

/// The line without the runs that need not be told apart from their neighbours: their values go to
/// whichever neighbour is longer than one value, and neighbours with one decision become one run.
fn restrict(runs: &[Run], is_needed: impl Fn(u32, u32) -> bool) -> Vec<Run> {
    let mut kept: Vec<Run> = Vec::with_capacity(runs.len());
    let (mut gap, mut previous_is_single) = (None, true);
    for (first, last, node) in spans(runs) {
        if !is_needed(first, last) {
            gap = gap.or(Some(first));
            continue;
        }
        let is_merged = kept.last().is_some_and(|run| run.node == node);
        if !is_merged {
            // The values between go to this run if only that leaves a single value before it.
            let start = match gap {
                Some(gap) if kept.is_empty() || previous_is_single && first < last => gap,
                _ => first,
            };
            kept.push(Run {
                first: if kept.is_empty() { 0 } else { start },
                weight: 0,
                node,
            });
        }
        previous_is_single = !is_merged && first == last;
        gap = None;
    }
    kept
}

/// The cubes worth trying, the most promising first: what all values of a decision have in common, what
/// all others have in common, bits that none of them has, and unions of aligned blocks of one decision.
fn cubes(runs: &[Run]) -> Vec<Cube> {
    let mut classes: Vec<NodeId> = runs.iter().map(|run| run.node).collect();
    classes.sort_unstable();
    classes.dedup();
    let hull_of = |wanted: &dyn Fn(NodeId) -> bool| {
        let of_class = spans(runs).filter(|(_, _, node)| wanted(*node));
        of_class
            .map(|(first, last, _)| Cube::around(first, last))
            .reduce(Cube::hull)
    };
    let mut cubes: Vec<Cube> = Vec::new();
    for class in &classes {
        for hull in [
            hull_of(&|node| node == *class),
            hull_of(&|node| node != *class),
        ] {
            let Some(hull) = hull else { continue };
            let zeros = Cube {
                mask: hull.mask & !hull.value,
                value: 0,
            };
            cubes.extend([hull, zeros]);
        }
    }
    for class in classes {
        cubes.extend(unions_of_blocks(runs, class));
    }
    let mut different: Vec<Cube> = Vec::new();
    for cube in cubes {
        if cube.mask != 0 && !different.contains(&cube) {
            different.push(cube);
        }
    }
    different.truncate(MAX_CUBES);
    different
}

/// Cubes of one decision's values that two or more of its aligned blocks make up, the largest first, by
/// combining cubes that differ in one bit (W. V. Quine, "A Way to Simplify Truth Functions", 1955).
fn unions_of_blocks(runs: &[Run], class: NodeId) -> Vec<Cube> {
    let mut level: Vec<Cube> = Vec::new();
    for (first, last, _) in spans(runs).filter(|(_, _, node)| *node == class) {
        let mut next = Some(first);
        while let Some(from) = next.filter(|from| *from <= last) {
            if level.len() == MAX_BLOCKS {
                return Vec::new();
            }
            let mut free: u32 = 0;
            while free != u32::MAX && from & (2 * free + 1) == 0 && from | (2 * free + 1) <= last {
                free = 2 * free + 1;
            }
            level.push(Cube {
                mask: !free,
                value: from,
            });
            next = (from | free).checked_add(1);
        }
    }
    let mut found = Vec::new();
    while level.len() > 1 && found.len() <= 4 * MAX_BLOCKS {
        let mut larger: Vec<Cube> = Vec::new();
        for (at, one) in level.iter().enumerate() {
            let partners = level[at + 1..].iter().filter(|other| {
                other.mask == one.mask && (other.value ^ one.value).is_power_of_two()
            });
            larger.extend(partners.map(|other| one.hull(*other)));
        }
        larger.sort_unstable();
        larger.dedup();
        found.extend(&larger);
        level = larger;
    }
    found.reverse();
    found
}
