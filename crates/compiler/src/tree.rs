//! Search trees: one word, many intervals, one decision per interval.
//!
//! System call numbers, architectures and argument values are all split the same way. The word's line
//! of values is cut into [`Run`]s of equal decision, and the tree that finds a value's run is built of
//! questions `>= k`, and `== k` where one value stands alone between two runs that agree. The tree
//! minimises the expected number of questions plus a small price per question, exactly (by dynamic
//! programming over contiguous runs) for up to `EXACT_RUNS` runs; longer lines are first cut at
//! their weighted median. Every run gets a share of the weight, so the depth stays logarithmic however
//! uneven the weights are.

use tamis_abi::Word;

use crate::dag::{Dag, NodeId, Question};

/// The longest line that is solved exactly; cubic time.
const EXACT_RUNS: usize = 48;

/// The longest chain of equality questions. Longer chains would be no deeper on average only if their
/// values had very different weights.
const MAX_CHAIN: usize = 4;

/// The price of one question of length, as a fraction of the whole weight: a tree may be 64 questions
/// longer if that saves one executed question on average.
const LENGTH_SHARE: u64 = 64;

/// Consecutive values of a word with one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first value; the run ends before the next one's first, the last at the largest value.
    pub first: u32,
    /// How much it counts that this run is found quickly.
    pub weight: u64,
    /// The decision.
    pub node: NodeId,
}

/// Adds the tree that decides by the value of `word`. The runs are ascending and begin with value 0;
/// adjacent runs of one decision are merged. `O(n log n)` for `n` runs, times a constant that is
/// quadratic in `EXACT_RUNS`.
pub fn search(dag: &mut Dag, word: Word, runs: &[Run]) -> NodeId {
    let merged = merge(runs);
    let floor = merged.iter().map(|run| run.weight).sum::<u64>() / merged.len() as u64 + 1;
    let weighed: Vec<Run> = merged
        .into_iter()
        .map(|run| Run {
            // Fixed point: the exact part must not lose small differences to the floor.
            weight: run.weight * 4 + floor,
            ..run
        })
        .collect();
    let whole: u64 = weighed.iter().map(|run| run.weight).sum();
    let line = Line {
        word,
        runs: &weighed,
        question_price: whole / LENGTH_SHARE + 1,
    };
    line.solve(dag, 0, weighed.len())
}

/// Merges adjacent runs of one decision.
pub fn merge(runs: &[Run]) -> Vec<Run> {
    let mut merged: Vec<Run> = Vec::with_capacity(runs.len());
    for run in runs {
        match merged.last_mut() {
            Some(last) if last.node == run.node => last.weight += run.weight,
            _ => merged.push(*run),
        }
    }
    merged
}

struct Line<'a> {
    word: Word,
    runs: &'a [Run],
    question_price: u64,
}

impl Line<'_> {
    fn solve(&self, dag: &mut Dag, from: usize, to: usize) -> NodeId {
        if to - from <= EXACT_RUNS {
            return Table::fill(self, from, to).build(dag, 0, to - from - 1);
        }
        let at = self.median(from, to);
        let no = self.solve(dag, from, at);
        let yes = self.solve(dag, at, to);
        dag.ask(self.word, Question::Ge(self.runs[at].first), yes, no)
    }

    /// The cut that leaves the sides most nearly equal; both sides keep at least one run.
    fn median(&self, from: usize, to: usize) -> usize {
        let whole: u64 = self.runs[from..to].iter().map(|run| run.weight).sum();
        let mut left = 0;
        for at in from..to - 1 {
            left += self.runs[at].weight;
            let with_next = left + self.runs[at + 1].weight;
            if whole.abs_diff(2 * left) <= whole.abs_diff(2 * with_next) {
                return at + 1;
            }
        }
        to - 1
    }

    fn is_single(&self, at: usize) -> bool {
        let first = self.runs[at].first;
        match self.runs.get(at + 1) {
            Some(next) => next.first - first == 1,
            None => first == u32::MAX,
        }
    }

    /// The last run of the longest chain from a run on: single values between runs of one decision, and
    /// not too many. `from` itself if there is none.
    fn chain_end(&self, from: usize) -> usize {
        let continues = |at: usize| {
            let after = self.runs.get(at + 2);
            after.is_some_and(|run| run.node == self.runs[from].node) && self.is_single(at + 1)
        };
        let places = (from..).step_by(2).take(MAX_CHAIN);
        from + 2 * places.take_while(|at| continues(*at)).count()
    }

    /// The single values of a chain, the heaviest first.
    fn links(&self, from: usize, to: usize) -> Vec<Run> {
        let mut links: Vec<Run> = (from + 1..to).step_by(2).map(|at| self.runs[at]).collect();
        links.sort_by_key(|run| std::cmp::Reverse(run.weight));
        links
    }

    fn chain_cost(&self, from: usize, to: usize) -> u64 {
        let links = self.links(from, to);
        let all = links.len() as u64;
        let outside: u64 = (from..=to).step_by(2).map(|at| self.runs[at].weight).sum();
        let inside: u64 = (1..)
            .zip(&links)
            .map(|(asked, run)| asked * run.weight)
            .sum();
        inside + all * (outside + self.question_price)
    }
}

/// What the best decision costs for every contiguous part of a line.
struct Table<'a> {
    line: &'a Line<'a>,
    /// The first run, as an index into the line; the table counts from there.
    from: usize,
    size: usize,
    weight_before: Vec<u64>,
    /// By first run, then by last.
    cost: Vec<u64>,
}

impl Table<'_> {
    fn fill<'a>(line: &'a Line<'a>, from: usize, to: usize) -> Table<'a> {
        let size = to - from;
        let mut weight_before = vec![0];
        let mut before = 0;
        for run in &line.runs[from..to] {
            before += run.weight;
            weight_before.push(before);
        }
        let mut table = Table {
            line,
            from,
            size,
            weight_before,
            cost: vec![0; size * size],
        };
        for first in (0..size).rev() {
            table.fill_row(first);
        }
        table
    }

    /// Finds the costs of all parts that begin with a run, given those that begin later.
    fn fill_row(&mut self, first: usize) {
        let size = self.size;
        // So far the costs of both sides of the best cut.
        let mut row = vec![u64::MAX; size];
        row[first] = 0;
        let chain_end = self.line.chain_end(self.from + first) - self.from;
        for cut in first + 1..size {
            let left = row[cut - 1];
            let rights = &self.cost[cut * size + cut..(cut + 1) * size];
            for (sides, right) in row[cut..].iter_mut().zip(rights) {
                *sides = (*sides).min(left + right);
            }
            // No later cut is inside this part.
            let split = self.split_cost(first, cut, row[cut]);
            row[cut] = if cut <= chain_end && (cut - first).is_multiple_of(2) {
                split.min(self.line.chain_cost(self.from + first, self.from + cut))
            } else {
                split
            };
        }
        self.cost[first * size..][..size].copy_from_slice(&row);
    }

    /// What it costs to cut a part whose sides cost this.
    fn split_cost(&self, first: usize, last: usize, sides: u64) -> u64 {
        let weight = self.weight_before[last + 1] - self.weight_before[first];
        sides + weight + self.line.question_price
    }

    fn build(&self, dag: &mut Dag, first: usize, last: usize) -> NodeId {
        let (from, to) = (self.from + first, self.from + last);
        let mut node = self.line.runs[from].node;
        if first == last {
            return node;
        }
        let word = self.line.word;
        let is_chain = to <= self.line.chain_end(from) && (to - from).is_multiple_of(2);
        if is_chain && self.line.chain_cost(from, to) == self.cost[first * self.size + last] {
            for link in self.line.links(from, to).into_iter().rev() {
                node = dag.ask(word, Question::Eq(link.first), link.node, node);
            }
            return node;
        }
        let cut = self.best_cut(first, last);
        let no = self.build(dag, first, cut - 1);
        let yes = self.build(dag, cut, last);
        let start = self.line.runs[self.from + cut].first;
        dag.ask(word, Question::Ge(start), yes, no)
    }

    /// The run at which the right side of the best cut begins. Of equally good cuts the one nearest the
    /// middle, for depth.
    fn best_cut(&self, first: usize, last: usize) -> usize {
        let cost = |first: usize, last: usize| self.cost[first * self.size + last];
        let middle = (first + last).div_ceil(2);
        (first + 1..=last)
            .min_by_key(|cut| {
                let sides = cost(first, cut - 1) + cost(*cut, last);
                (sides, cut.abs_diff(middle))
            })
            .unwrap_or(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::Node;
    use tamis_abi::SeccompData;

    /// `count` runs of three alternating decisions, some of them single values.
    fn line(dag: &mut Dag, count: u32, weight: impl Fn(u32) -> u64) -> Vec<Run> {
        let mut first = 0;
        let mut run = |index: u32| {
            let node = dag.ret(if index.is_multiple_of(2) {
                0
            } else {
                1 + index % 3
            });
            let run = Run {
                first,
                weight: weight(index),
                node,
            };
            first += if index % 5 < 3 { 1 } else { 1 + index % 7 };
            run
        };
        (0..count).map(&mut run).collect()
    }

    fn steps(dag: &Dag, root: NodeId, word: Word, value: u32) -> (u32, usize) {
        let data = SeccompData::default().with_word(word, value);
        let mut id = root;
        let mut steps = 0;
        while let Node::Ask {
            word,
            question,
            yes,
            no,
        } = dag.node(id)
        {
            steps += 1;
            id = if question.holds(word, &data) { yes } else { no };
        }
        (dag.evaluate(id, &data), steps)
    }

    #[test]
    fn the_tree_finds_the_run_of_every_border_value() {
        for count in [1, 2, 3, 4, 5, 9, 47, 48, 49, 200, 3000] {
            let mut dag = Dag::new();
            let runs = line(&mut dag, count, |index| u64::from(index % 11));
            let root = search(&mut dag, Word::NR, &runs);
            for (index, run) in runs.iter().enumerate() {
                let last = runs.get(index + 1).map_or(u32::MAX, |next| next.first - 1);
                for value in [run.first, last] {
                    let (ret, _) = steps(&dag, root, Word::NR, value);
                    assert_eq!(Node::Ret(ret), dag.node(run.node), "{count} runs, {value}");
                }
            }
        }
    }

    #[test]
    fn depth_stays_logarithmic_with_the_most_uneven_weights() {
        let mut dag = Dag::new();
        let runs = line(&mut dag, 1000, |index| 1 << (index % 40));
        let root = search(&mut dag, Word::NR, &runs);
        let deepest = runs
            .iter()
            .map(|run| steps(&dag, root, Word::NR, run.first).1);
        assert!(deepest.max().unwrap() <= 2 * 10 + MAX_CHAIN);
    }

    #[test]
    fn a_value_alone_between_agreeing_runs_takes_one_question() {
        let mut dag = Dag::new();
        let (deny, allow) = (dag.ret(0), dag.ret(1));
        let run = |first, node| Run {
            first,
            weight: 1,
            node,
        };
        let runs = [run(0, deny), run(7, allow), run(8, deny)];
        let root = search(&mut dag, Word::NR, &runs);
        let by_hand = dag.ask(Word::NR, Question::Eq(7), allow, deny);
        assert_eq!(root, by_hand);
    }
}
