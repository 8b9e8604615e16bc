//! Splits: the decision by the value of one word, by intervals and by bits.
//!
//! Values in a policy are often flags: `{0, 1, 0x80, 0x81}` are four intervals, but one question about bits. A *cube*
//! is the set of values with given bits under a mask. A question about a cube divides a line of runs into those that
//! can be inside and those that can be outside. On either side the values of the other are don't-cares, so runs that
//! they separated merge. This file tries the cubes suggested by the decisions and keeps the cheapest plan; without a
//! cube it is a search tree.

use std::ops::Range;

use tamis_abi::Word;

use crate::cost::{Prices, keeps_word, question_steps};
use crate::dag::{Dag, NodeId, Question};
use crate::options::Objective;
use crate::tree::{Run, search};

/// The lengths of lines that are searched for cubes: two runs take one question, and the time is quadratic.
const CUBE_RUNS: std::ops::RangeInclusive<usize> = 4..=96;

/// The most questions about cubes on one path, with the thorough effort.
const MAX_DEPTH: u32 = 3;

/// The most cubes that are tried for one line.
const MAX_CUBES: usize = 8;

/// The most aligned blocks of one decision that are combined.
const MAX_BLOCKS: usize = 32;

/// The cost of one more question in the program, as a divisor of the whole weight.
const LENGTH_SHARE: u64 = 16;

/// The longest line, in runs, that the efforts `Thorough` and `Short` decide alike.
const SHORT_LINE: usize = 512;

/// The effort of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Intervals only: for comparing orders of words.
    Quick,
    /// Intervals and cubes.
    Thorough,
    /// The same, but few questions for lines that are longer than [`SHORT_LINE`].
    Short,
}

/// A value of the word, with its expected frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) value: u32,
    pub(crate) weight: u64,
}

/// The values that have these bits under the mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cube {
    mask: u32,
    value: u32,
}

/// The expected values of a word.
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

/// The expected values of a word in many decisions, sorted, so that a run is weighed in logarithmic time.
#[derive(Debug)]
pub(crate) struct Points {
    list: Vec<Point>,
    /// The weight of all points before each one, and of all.
    weight_before: Vec<u64>,
}

impl Points {
    /// A sorted list of these points.
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

/// Adds the decision by the value of a word. The runs are first values with their decisions, ascending from 0.
pub(crate) fn split(
    dag: &mut Dag,
    word: Word,
    runs: impl Iterator<Item = (u32, NodeId)> + Clone,
    expected: &impl Expected,
    effort: Effort,
) -> NodeId {
    if let Some(node) = at_once(dag, word, different(runs.clone())) {
        return node;
    }
    let mut line: Vec<Run> = Vec::with_capacity(runs.size_hint().0);
    line.extend(different(runs).map(|(first, node)| Run {
        first,
        weight: 0,
        node,
    }));
    let whole = expected.whole();
    // Values that were not recorded are still possible.
    let floor = whole / 16 / line.len() as u64 + 1;
    for run in &mut line {
        run.weight = 1 + floor;
    }
    expected.weigh(&mut line);
    if line.len() <= 3 || effort == Effort::Quick {
        return balanced(dag, word, &line, weight(&line));
    }
    if effort == Effort::Short && line.len() > SHORT_LINE {
        return search(dag, word, &line, Prices::for_objective(Objective::Length));
    }
    let mut points: Vec<Point> = expected.points().collect();
    points.extend(line.iter().map(|run| Point {
        value: run.first,
        weight: floor,
    }));
    let mut planner = Planner {
        runs: line,
        points,
        question_price: whole / LENGTH_SHARE + 1,
    };
    let all = planner.all();
    let (_, plan) = planner.plan(&all, MAX_DEPTH, u64::MAX);
    planner.build(dag, word, &all, &plan)
}

/// The runs whose decision differs from that of the run before.
fn different(
    runs: impl Iterator<Item = (u32, NodeId)> + Clone,
) -> impl Iterator<Item = (u32, NodeId)> + Clone {
    let mut last = None;
    runs.filter(move |(_, node)| last.replace(*node) != Some(*node))
}

/// The decision by runs that differ from their neighbours, if there is [only one way](has_choice).
fn at_once(
    dag: &mut Dag,
    word: Word,
    mut runs: impl Iterator<Item = (u32, NodeId)>,
) -> Option<NodeId> {
    let before = runs.next()?;
    let Some(single) = runs.next() else {
        return Some(before.1);
    };
    let Some(after) = runs.next() else {
        return Some(dag.ask(word, Question::Ge(single.0), single.1, before.1));
    };
    let is_single = runs.next().is_none() && !has_choice(&[before, single, after], |run| *run);
    is_single.then(|| dag.ask(word, Question::Eq(single.0), single.1, before.1))
}

/// A plan for the decision of a line.
enum Plan {
    /// By a search tree.
    Tree,
    /// By a question about a cube, and a plan for either side.
    Cube(Cube, Box<[Plan; 2]>),
}

/// The search for a plan. While a cube is evaluated, the runs and points of its two sides are stored behind those of
/// the line it divides.
struct Planner {
    runs: Vec<Run>,
    points: Vec<Point>,
    question_price: u64,
}

/// A line of runs and the points in them, ascending.
struct Part {
    runs: Range<usize>,
    points: Range<usize>,
    /// The weight of the points.
    whole: u64,
}

impl Planner {
    /// The whole line, with points of equal value merged.
    fn all(&mut self) -> Part {
        self.points.sort_unstable_by_key(|point| point.value);
        self.points.dedup_by(|next, point| {
            let is_equal = next.value == point.value;
            point.weight += if is_equal { next.weight } else { 0 };
            is_equal
        });
        Part {
            runs: 0..self.runs.len(),
            points: 0..self.points.len(),
            whole: self.points.iter().map(|point| point.weight).sum(),
        }
    }

    /// The cheapest plan, with its cost in units of the points' weight; if it costs the limit or more, there may be a
    /// cheaper one. Trees are estimated, because exact ones take long to find.
    fn plan(&mut self, part: &Part, depth: u32, limit: u64) -> (u64, Plan) {
        let runs = &self.runs[part.runs.clone()];
        let (weight, questions) = balanced_cost(runs, weight(runs));
        let mut best = (weight + questions * self.question_price, Plan::Tree);
        if depth == 0 || !CUBE_RUNS.contains(&runs.len()) {
            return best;
        }
        let cubes = cubes(runs);
        let kept = (self.runs.len(), self.points.len());
        for cube in cubes {
            let limit = best.0.min(limit);
            let question = cube.question();
            let reload = u64::from(!keeps_word(question));
            let own = (question_steps(question) + reload) * (part.whole + self.question_price);
            if own >= limit {
                continue;
            }
            if let Some(sides) = self.sides(part, cube, limit - own)
                && let Some((cost, plans)) = self.plan_sides(&sides, depth - 1, limit - own)
            {
                best = (own + cost, Plan::Cube(cube, Box::new(plans)));
            }
            self.runs.truncate(kept.0);
            self.points.truncate(kept.1);
        }
        best
    }

    /// The cheapest plans for both sides, if their sum is below the limit.
    fn plan_sides(
        &mut self,
        [inside, outside]: &[Part; 2],
        depth: u32,
        limit: u64,
    ) -> Option<(u64, [Plan; 2])> {
        let least_outside = self.least_cost(outside);
        let limit_inside = limit.checked_sub(least_outside)?;
        let (cost_inside, inside) = self.plan(inside, depth, limit_inside);
        if cost_inside >= limit_inside {
            return None;
        }
        let limit_outside = limit - cost_inside;
        let (cost_outside, outside) = self.plan(outside, depth, limit_outside);
        (cost_outside < limit_outside).then(|| (cost_inside + cost_outside, [inside, outside]))
    }

    /// A lower bound of the cost of any plan: one question, if there are two decisions.
    fn least_cost(&self, part: &Part) -> u64 {
        match part.runs.len() {
            0 | 1 => 0,
            runs => part.whole + runs as u64 + self.question_price,
        }
    }

    /// The parts of a line inside and outside of a cube; `None` if the question saves nothing, or if any plan costs
    /// at least the limit.
    fn sides(&mut self, part: &Part, cube: Cube, limit: u64) -> Option<[Part; 2]> {
        let meets = |first, last| cube.meets(first, last);
        let inside = restrict(&mut self.runs, part.runs.clone(), meets);
        let misses = |first, last| !cube.covers(first, last);
        let outside = restrict(&mut self.runs, part.runs.clone(), misses);
        // A question of the search tree divides the line into parts with as many runs together, or one more.
        let most = part.runs.len() - usize::from(cube.value != 0);
        if inside.len() >= part.runs.len() || inside.len() + outside.len() > most {
            return None;
        }
        let of_part = self.points[part.points.clone()].iter();
        let of_inside = of_part.filter(|point| cube.has(point.value));
        let whole_inside: u64 = of_inside.map(|point| point.weight).sum();
        let side = |runs, is_inside| Part {
            runs,
            points: 0..0,
            whole: match is_inside {
                true => whole_inside,
                false => part.whole - whole_inside,
            },
        };
        let mut sides = [side(inside, true), side(outside, false)];
        let [inside, outside] = &sides;
        if self.least_cost(inside) + self.least_cost(outside) >= limit {
            return None;
        }
        for (side, is_inside) in sides.iter_mut().zip([true, false]) {
            let start = self.points.len();
            for at in part.points.clone() {
                let point = self.points[at];
                if cube.has(point.value) == is_inside {
                    self.points.push(point);
                }
            }
            side.points = start..self.points.len();
        }
        for side in &sides {
            let points = &self.points[side.points.clone()];
            weigh(&mut self.runs[side.runs.clone()], points);
        }
        Some(sides)
    }

    fn build(&mut self, dag: &mut Dag, word: Word, part: &Part, plan: &Plan) -> NodeId {
        match plan {
            Plan::Tree => {
                let runs = &self.runs[part.runs.clone()];
                search(dag, word, runs, Prices::for_objective(Objective::Steps))
            }
            Plan::Cube(cube, plans) => {
                let sides = self.sides(part, *cube, u64::MAX);
                let [inside, outside] = sides.expect("what was planned can be done");
                let yes = self.build(dag, word, &inside, &plans[0]);
                let no = self.build(dag, word, &outside, &plans[1]);
                let Cube { mask, value } = *cube;
                dag.ask(word, Question::Masked { mask, value }, yes, no)
            }
        }
    }
}

/// The weight of all runs.
fn weight(runs: &[Run]) -> u64 {
    runs.iter().map(|run| run.weight).sum()
}

/// Gives each run the weight of its points, which are ascending, and a little more.
fn weigh(runs: &mut [Run], points: &[Point]) {
    let mut rest = points;
    for at in 0..runs.len() {
        let end = runs.get(at + 1).map_or(rest.len(), |next| {
            rest.iter()
                .take_while(|point| point.value < next.first)
                .count()
        });
        let (own, behind) = rest.split_at(end);
        runs[at].weight = 1 + own.iter().map(|point| point.weight).sum::<u64>();
        rest = behind;
    }
}

/// Whether there is a choice between ways to decide by these runs, given as first values and decisions. There is none
/// if a single question is enough.
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

/// The place of a cut in a tree that is found without a search and need not be the best: a single value between equal
/// decisions, or else a cut with nearly equal weights on both sides; with the weight before the cut.
enum Cut {
    Single,
    At(usize, u64),
}

fn cut(runs: &[Run], whole: u64) -> Option<Cut> {
    if runs.len() < 2 {
        return None;
    }
    if runs.len() == 3 && !has_choice(runs, |run| (run.first, run.node)) {
        return Some(Cut::Single);
    }
    let mut left = runs[0].weight;
    let mut at = 1;
    // The run in the middle goes to the right side, unless it is the first.
    while at + 1 < runs.len() && 2 * left + runs[at].weight < whole {
        left += runs[at].weight;
        at += 1;
    }
    Some(Cut::At(at, left))
}

/// Executed questions times weight, and the number of questions, of [`balanced`].
fn balanced_cost(runs: &[Run], whole: u64) -> (u64, u64) {
    match cut(runs, whole) {
        None => (0, 0),
        Some(Cut::Single) => (whole, 1),
        Some(Cut::At(at, left)) => {
            let right = balanced_cost(&runs[at..], whole - left);
            let left = balanced_cost(&runs[..at], left);
            (left.0 + right.0 + whole, left.1 + right.1 + 1)
        }
    }
}

/// The decision by a tree that is found without a search.
fn balanced(dag: &mut Dag, word: Word, runs: &[Run], whole: u64) -> NodeId {
    match cut(runs, whole) {
        None => runs[0].node,
        Some(Cut::Single) => {
            let single = Question::Eq(runs[1].first);
            dag.ask(word, single, runs[1].node, runs[0].node)
        }
        Some(Cut::At(at, left)) => {
            let no = balanced(dag, word, &runs[..at], left);
            let yes = balanced(dag, word, &runs[at..], whole - left);
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

    /// Whether `first..=last` contains an element.
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
        // A free zero bit above must become one.
        let free = !self.mask & !from & !wrong_bits;
        let raised = free & free.wrapping_neg();
        (raised != 0).then(|| from & !(raised | (raised - 1)) | raised | self.value & (raised - 1))
    }

    /// The smallest cube that contains all values from `first` to `last`.
    fn around(first: u32, last: u32) -> Cube {
        let mask = !up_to_highest(first ^ last);
        Cube {
            mask,
            value: first & mask,
        }
    }

    /// The smallest cube that contains both.
    fn hull(self, other: Cube) -> Cube {
        let mask = self.mask & other.mask & !(self.value ^ other.value);
        Cube {
            mask,
            value: self.value & mask,
        }
    }
}

/// A mask of the highest set bit and all bits below it.
fn up_to_highest(bits: u32) -> u32 {
    u32::MAX.checked_shr(bits.leading_zeros()).unwrap_or(0)
}

/// The first and last value of each run.
fn spans(runs: &[Run]) -> impl Iterator<Item = (u32, u32, NodeId)> {
    let lasts = runs[1..].iter().map(|run| run.first - 1);
    let pairs = runs.iter().zip(lasts.chain([u32::MAX]));
    pairs.map(|(run, last)| (run.first, last, run.node))
}

/// Adds the line without the runs that are not needed: their values go to whichever neighbour is longer than one
/// value, and neighbours with one decision become one run.
fn restrict(
    runs: &mut Vec<Run>,
    line: Range<usize>,
    is_needed: impl Fn(u32, u32) -> bool,
) -> Range<usize> {
    let start = runs.len();
    let (mut gap, mut previous_is_single) = (None, true);
    for at in line.clone() {
        let Run { first, node, .. } = runs[at];
        let is_last = at + 1 == line.end;
        let last = if is_last {
            u32::MAX
        } else {
            runs[at + 1].first - 1
        };
        if !is_needed(first, last) {
            gap = gap.or(Some(first));
            continue;
        }
        let is_first = runs.len() == start;
        let is_merged = !is_first && runs.last().is_some_and(|run| run.node == node);
        if !is_merged {
            // The values in the gap go to this run only if the run before is a single value and this one is not.
            let from = match gap {
                _ if is_first => 0,
                Some(gap) if previous_is_single && first < last => gap,
                _ => first,
            };
            runs.push(Run {
                first: from,
                weight: 0,
                node,
            });
        }
        previous_is_single = !is_merged && first == last;
        gap = None;
    }
    start..runs.len()
}

/// The cubes worth trying, the most promising first: for each decision the bits common to all of its values, the bits
/// common to all other values, bits that none of them has, and unions of its aligned blocks.
fn cubes(runs: &[Run]) -> Vec<Cube> {
    let mut found: Vec<Cube> = Vec::with_capacity(MAX_CUBES);
    let mut add = |cube: Cube| {
        if found.len() < MAX_CUBES && cube.mask != 0 && !found.contains(&cube) {
            found.push(cube);
        }
        found.len() == MAX_CUBES
    };
    let mut classes: Vec<NodeId> = runs.iter().map(|run| run.node).collect();
    classes.sort_unstable();
    classes.dedup();
    let of_class = |class: NodeId| {
        let of_class = spans(runs).filter(move |(_, _, node)| *node == class);
        of_class.map(|(first, last, _)| Cube::around(first, last))
    };
    let hulls: Vec<Option<Cube>> = classes
        .iter()
        .map(|class| of_class(*class).reduce(Cube::hull))
        .collect();
    for (at, hull) in hulls.iter().enumerate() {
        let others = hulls[..at].iter().chain(&hulls[at + 1..]);
        let of_others = others.copied().flatten().reduce(Cube::hull);
        for hull in hull.iter().copied().chain(of_others) {
            let zeros = Cube {
                mask: hull.mask & !hull.value,
                value: 0,
            };
            if add(hull) | add(zeros) {
                return found;
            }
        }
    }
    for class in classes {
        for cube in unions_of_blocks(runs, class) {
            if add(cube) {
                return found;
            }
        }
    }
    found
}

/// Cubes that consist of two or more aligned blocks of one decision, the largest first, found by combining cubes that
/// differ in one bit (W. V. Quine, "A Way to Simplify Truth Functions", 1955).
fn unions_of_blocks(runs: &[Run], class: NodeId) -> Vec<Cube> {
    let mut level: Vec<Cube> = Vec::with_capacity(MAX_BLOCKS);
    for (first, last, _) in spans(runs).filter(|(_, _, node)| *node == class) {
        let mut next = Some(first);
        while let Some(from) = next.filter(|from| *from <= last) {
            if level.len() == MAX_BLOCKS {
                return Vec::new();
            }
            // The largest block that begins here: as aligned as its first value, and not longer than the run.
            let values = u64::from(last - from) + 1;
            let bits = from.trailing_zeros().min(values.ilog2());
            let free = ((1_u64 << bits) - 1) as u32;
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
    use crate::dag::{Node, Walk};
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
        split(dag, WORD, runs, &Points::new(points), effort)
    }

    fn questions(dag: &Dag, root: NodeId) -> usize {
        let mut walk = Walk::default();
        walk.go_below(dag, [root]);
        let is_question = |id: &&NodeId| matches!(dag.node(**id), Node::Ask { .. });
        walk.ids().iter().filter(is_question).count()
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
