//! Splits: the value of one word, by intervals and by bits.
//!
//! Values that a policy names are often flags: `{0, 1, 0x80, 0x81}` are four intervals, and one question
//! about bits. A *cube* is the set of values with given bits under a mask; a question about a cube cuts
//! a line of runs into what can be inside and what can be outside, and on either side the values of the
//! other are nobody's: runs that they separated grow together. This file tries the cubes that the
//! decisions suggest and keeps what costs least; without any it is a search tree.

use tamis_abi::Word;

use crate::cost::{Prices, keeps_word, question_steps};
use crate::dag::{Dag, NodeId, Question};
use crate::options::Objective;
use crate::tree::{Run, search};

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

/// The values that are expected of a word.
pub(crate) trait Expected {
    /// The weight of all points.
    fn whole(&self) -> u64;

    /// The points, in any order.
    fn points(&self) -> impl Iterator<Item = Point>;

    /// Adds to each run the weight of the points in it.
    fn weigh(&self, runs: &mut [Run]) {
        for point in self.points() {
            let at = runs.partition_point(|run| run.first <= point.value);
            runs[at - 1].weight += point.weight;
        }
    }
}

/// The values that are expected of a word in many decisions: in order, so that a run is weighed in logarithmic
/// time.
#[derive(Debug)]
pub(crate) struct Points {
    list: Vec<Point>,
    /// The weight of all points before each, and of all.
    weight_before: Vec<u64>,
}

impl Points {
    /// These points.
    pub(crate) fn new(mut list: Vec<Point>) -> Points {
        list.sort_by_key(|point| point.value);
        let mut before = 0;
        let mut weight_before = vec![0];
        weight_before.extend(list.iter().map(|point| {
            before += point.weight;
            before
        }));
        Points {
            list,
            weight_before,
        }
    }
}

impl Expected for Points {
    fn whole(&self) -> u64 {
        self.weight_before[self.list.len()]
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        self.list.iter().copied()
    }

    fn weigh(&self, runs: &mut [Run]) {
        let before = |first: u32| {
            let at = self.list.partition_point(|point| point.value < first);
            self.weight_before[at]
        };
        let mut end = self.whole();
        for run in runs.iter_mut().rev() {
            let start = before(run.first);
            run.weight += end - start;
            end = start;
        }
    }
}

/// Adds the decision by the value of a word. The runs are first values with their decisions, ascending
/// from 0.
pub(crate) fn split(
    dag: &mut Dag,
    word: Word,
    runs: impl Iterator<Item = (u32, NodeId)>,
    expected: &impl Expected,
    effort: Effort,
) -> NodeId {
    let mut line: Vec<Run> = Vec::with_capacity(runs.size_hint().0);
    for (first, node) in runs {
        if line.last().is_none_or(|last| last.node != node) {
            line.push(Run {
                first,
                weight: 0,
                node,
            });
        }
    }
    if !has_choice(&line, |run| (run.first, run.node)) {
        return balanced(dag, word, &line);
    }
    let whole = expected.whole();
    // What was never seen is possible all the same.
    let floor = whole / 16 / line.len() as u64 + 1;
    for run in &mut line {
        run.weight = 1 + floor;
    }
    expected.weigh(&mut line);
    if line.len() <= 3 || effort == Effort::Quick {
        return balanced(dag, word, &line);
    }
    let mut points: Vec<Point> = expected.points().collect();
    points.extend(line.iter().map(|run| Point {
        value: run.first,
        weight: floor,
    }));
    points.sort_by_key(|point| point.value);
    let (_, plan) = plan(&line, &points, whole / LENGTH_SHARE + 1, MAX_DEPTH);
    plan.build(dag, word, &line, &points)
}

/// How a line is decided.
enum Plan {
    /// By a search tree.
    Tree,
    /// By a question about a cube, then inside and outside of it.
    Cube(Cube, Box<Plan>, Box<Plan>),
}

impl Plan {
    fn build(&self, dag: &mut Dag, word: Word, runs: &[Run], points: &[Point]) -> NodeId {
        match self {
            Plan::Tree => search(dag, word, runs, Prices::of(Objective::Steps)),
            Plan::Cube(cube, inside, outside) => {
                let [runs_in, runs_out] = cube.sides(runs);
                let (points_in, points_out) = cube.partition(points);
                let runs_in = weighed(&runs_in, &points_in);
                let runs_out = weighed(&runs_out, &points_out);
                let yes = inside.build(dag, word, &runs_in, &points_in);
                let no = outside.build(dag, word, &runs_out, &points_out);
                {
                    let Cube { mask, value } = *cube;
                    dag.ask(word, Question::Masked { mask, value }, yes, no)
                }
            }
        }
    }
}

/// The cheapest plan, with its cost in units of the points' weight. Trees are estimated, because exact
/// ones take long to find.
fn plan(runs: &[Run], points: &[Point], question_price: u64, depth: u32) -> (u64, Plan) {
    let whole: u64 = points.iter().map(|point| point.weight).sum();
    let (weight, questions) = balanced_cost(runs);
    let mut best = (weight + questions * question_price, Plan::Tree);
    if depth == 0 || !CUBE_RUNS.contains(&runs.len()) {
        return best;
    }
    for cube in cubes(runs) {
        let question = cube.question();
        let reload = u64::from(!keeps_word(question));
        let own = (question_steps(question) + reload) * (whole + question_price);
        if own >= best.0 {
            continue;
        }
        let [inside, outside] = cube.sides(runs);
        // A question of the search tree leaves as many runs as there were, or one more.
        let most = runs.len() - usize::from(cube.value != 0);
        if inside.len() >= runs.len() || inside.len() + outside.len() > most {
            continue;
        }
        let (points_in, points_out) = cube.partition(points);
        let inside = plan(
            &weighed(&inside, &points_in),
            &points_in,
            question_price,
            depth - 1,
        );
        if own + inside.0 >= best.0 {
            continue;
        }
        let outside = plan(
            &weighed(&outside, &points_out),
            &points_out,
            question_price,
            depth - 1,
        );
        let sides = inside.0 + outside.0;
        if own + sides < best.0 {
            let plan = Plan::Cube(cube, Box::new(inside.1), Box::new(outside.1));
            best = (own + sides, plan);
        }
    }
    best
}

/// The runs, with the weight of the points in them.
fn weighed(runs: &[Run], points: &[Point]) -> Vec<Run> {
    let mut weighed: Vec<Run> = runs.iter().map(|run| Run { weight: 1, ..*run }).collect();
    let mut at = 0;
    for point in points {
        while weighed
            .get(at + 1)
            .is_some_and(|next| next.first <= point.value)
        {
            at += 1;
        }
        weighed[at].weight += point.weight;
    }
    weighed
}

/// Whether there are two ways to decide by these runs, each of which has a first value and a decision: one
/// question may be all that it takes.
pub(crate) fn has_choice<R, N: PartialEq>(runs: &[R], parts: impl Fn(&R) -> (u32, N)) -> bool {
    match runs {
        [] | [_] | [_, _] => false,
        [before, single, after] => {
            let [before, single, after] = [before, single, after].map(parts);
            before.1 != after.1 || after.0 - single.0 != 1
        }
        _ => true,
    }
}

/// Where a tree is cut that is not the best and is found at once: a value alone between equal decisions,
/// or else so that both sides weigh nearly the same.
enum Cut {
    Single,
    At(usize),
}

fn cut(runs: &[Run]) -> Option<Cut> {
    if runs.len() < 2 {
        return None;
    }
    if runs.len() == 3 && !has_choice(runs, |run| (run.first, run.node)) {
        return Some(Cut::Single);
    }
    let whole: u64 = runs.iter().map(|run| run.weight).sum();
    let mut left = 0;
    let at = runs[..runs.len() - 1].iter().position(|run| {
        let is_middle = 2 * left + run.weight >= whole;
        left += run.weight;
        is_middle
    });
    Some(Cut::At(at.unwrap_or(runs.len() - 1).max(1)))
}

/// Executed questions times weight, and questions, of [`balanced`].
fn balanced_cost(runs: &[Run]) -> (u64, u64) {
    let whole: u64 = runs.iter().map(|run| run.weight).sum();
    match cut(runs) {
        None => (0, 0),
        Some(Cut::Single) => (whole, 1),
        Some(Cut::At(at)) => {
            let (left, right) = (balanced_cost(&runs[..at]), balanced_cost(&runs[at..]));
            (left.0 + right.0 + whole, left.1 + right.1 + 1)
        }
    }
}

fn balanced(dag: &mut Dag, word: Word, runs: &[Run]) -> NodeId {
    match cut(runs) {
        None => runs[0].node,
        Some(Cut::Single) => {
            let single = Question::Eq(runs[1].first);
            dag.ask(word, single, runs[1].node, runs[0].node)
        }
        Some(Cut::At(at)) => {
            let no = balanced(dag, word, &runs[..at]);
            let yes = balanced(dag, word, &runs[at..]);
            dag.ask(word, Question::Ge(runs[at].first), yes, no)
        }
    }
}

impl Cube {
    fn has(self, value: u32) -> bool {
        value & self.mask == self.value
    }

    fn question(self) -> Question {
        let Cube { mask, value } = self;
        if value == 0 {
            Question::AnySet(mask)
        } else {
            Question::Masked { mask, value }
        }
    }

    /// The line as it matters to elements, and to other values.
    fn sides(self, runs: &[Run]) -> [Vec<Run>; 2] {
        [
            restrict(runs, |first, last| self.meets(first, last)),
            restrict(runs, |first, last| !self.covers(first, last)),
        ]
    }

    /// The elements, and the other values.
    fn partition(self, points: &[Point]) -> (Vec<Point>, Vec<Point>) {
        points.iter().partition(|point| self.has(point.value))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::direct;
    use tamis_abi::SeccompData;
    use tamis_rules::IntervalSet;

    const WORD: Word = Word::IP_LOW;

    fn set(values: &[u32]) -> IntervalSet<u32> {
        values.iter().map(|value| *value..=*value).collect()
    }

    /// The decision for membership; 1 inside and 0 outside.
    fn member(dag: &mut Dag, set: &IntervalSet<u32>, effort: Effort) -> NodeId {
        let (yes, no) = (dag.ret(1), dag.ret(0));
        let points: Vec<Point> = set
            .intervals()
            .iter()
            .map(|(first, _)| Point {
                value: *first,
                weight: 1000,
            })
            .collect();
        let runs = direct::runs(set, yes, no);
        split(dag, WORD, runs.into_iter(), &Points::new(points), effort)
    }

    fn questions(dag: &Dag, root: NodeId) -> usize {
        let below = dag.below([root]);
        below
            .into_iter()
            .filter(|id| matches!(dag.node(*id), crate::dag::Node::Ask { .. }))
            .count()
    }

    #[test]
    fn values_that_differ_in_free_bits_are_one_question() {
        for (values, expected) in [
            (vec![0, 1, 0x80, 0x81], Question::AnySet(!0x81)),
            (
                vec![0x10, 0x14, 0x90, 0x94],
                Question::Masked {
                    mask: !0x84,
                    value: 0x10,
                },
            ),
        ] {
            let mut dag = Dag::new();
            let root = member(&mut dag, &set(&values), Effort::Thorough);
            let (yes, no) = (dag.ret(1), dag.ret(0));
            let by_hand = match expected {
                Question::AnySet(_) => dag.ask(WORD, expected, no, yes),
                _ => dag.ask(WORD, expected, yes, no),
            };
            assert_eq!(root, by_hand, "{values:x?}");
        }
    }

    #[test]
    fn values_beside_a_cube_cost_only_their_own_questions() {
        let mut dag = Dag::new();
        let values = set(&[0, 1, 0x80, 0x81, 0x1005, 0x2000_0000]);
        let root = member(&mut dag, &values, Effort::Thorough);
        assert!(questions(&dag, root) <= 4, "{}", questions(&dag, root));
    }

    #[test]
    fn every_value_is_decided_as_the_set_says() {
        let mut state = 1_u32;
        let mut next = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        for round in 0..400 {
            let (count, bits) = (1 + next(24), 2 + next(7));
            let scale = next(24);
            let values: Vec<u32> = (0..count).map(|_| next(1 << bits) << scale).collect();
            let set = set(&values);
            for effort in [Effort::Quick, Effort::Thorough] {
                let mut dag = Dag::new();
                let root = member(&mut dag, &set, effort);
                let near = |value: u32| [value.wrapping_sub(1), value, value.wrapping_add(1)];
                for value in (0..1 << bits).flat_map(|value: u32| near(value << scale)) {
                    let data = SeccompData::default().with_word(WORD, value);
                    let expected = u32::from(set.contains(value));
                    assert_eq!(dag.evaluate(root, &data), expected, "{round} {value:#x}");
                }
            }
        }
    }

    #[test]
    fn the_next_element_of_a_cube_is_the_smallest_that_is_not_smaller() {
        for mask in 0..32_u32 {
            let wide = mask | !31;
            for value in (0..32).filter(|value| value & !mask == 0) {
                let cube = Cube { mask: wide, value };
                for from in 0..33 {
                    let expected = (from..32).find(|element| cube.has(*element));
                    assert_eq!(cube.next(from), expected, "{cube:?} {from}");
                    for last in from..32 {
                        let covers = (from..=last).all(|element| cube.has(element));
                        assert_eq!(cube.covers(from, last), covers, "{cube:?} {from} {last}");
                    }
                }
            }
        }
    }
}
