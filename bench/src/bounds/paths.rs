//! The best tree of a class that can be solved for all numbers: cuts anywhere, a few bit tests on each path, and
//! short ends.
//!
//! A bit test keeps the range of numbers, but only those with a bit, or only those without. So a part of a tree is
//! determined by neighbouring runs and by the tests before it, which are at most two masks with an outcome each. For
//! every such pair one table has the solutions of all parts of the line, by length of the part. A part of a line with
//! fewer tests may have any further test, at the cost of the same part in the tables of both sides.

use super::{Numbers, SIZE};

/// The longest chain of equality questions at the end of a path.
const MAX_CHAIN: usize = 5;

/// The most bits of a test that leaves lines.
const MAX_BITS: u32 = 3;

/// The number of words in a set of numbers.
const WORDS: usize = SIZE / 64 + 1;

/// The remaining numbers: a bit for each, and one for all numbers beyond the last.
type Set = [u64; WORDS];

/// The numbers that have none of some bits, and those that have any.
type Sides = [Set; 2];

/// The mean number of questions about the number in the best tree with at most this number of bit tests on a path,
/// each of at most three bits below 512. Each further test takes hundreds of times longer.
pub fn fewest_with_bit_tests(numbers: &Numbers, per_path: usize) -> f64 {
    let line = Line::new(numbers);
    let all = [u64::MAX; WORDS];
    let table = line.solve(&all, per_path);
    table.cost(0, line.runs.len() - 1)
}

/// The runs of numbers with one action, by first and last number.
struct Line<'a> {
    numbers: &'a Numbers,
    runs: Vec<(usize, usize)>,
    /// The sides of all bit tests.
    tests: Vec<Sides>,
}

/// The remaining part of a run.
struct Left {
    /// The index of the run.
    run: usize,
    answer: usize,
    weight: f64,
    values: Vec<usize>,
}

/// The least number of questions for every part of a line, weighted by the frequencies of numbers.
struct Table {
    /// By run of the line, the first remaining run at or behind it, and the number of remaining runs up to it.
    places: Vec<(usize, usize)>,
    stride: usize,
    /// By the number of remaining runs in a part, then by the first of them.
    costs: Vec<f64>,
    /// The weight of all runs before each run.
    before: Vec<f64>,
}

impl Table {
    fn cost(&self, first: usize, last: usize) -> f64 {
        let (start, end) = (self.places[first].0, self.places[last].1);
        if end <= start {
            return 0.0;
        }
        self.costs[(end - start) * self.stride + start]
    }

    fn weight(&self, first: usize, last: usize) -> f64 {
        self.before[self.places[last].1] - self.before[self.places[first].0]
    }
}

impl<'a> Line<'a> {
    fn new(numbers: &'a Numbers) -> Line<'a> {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for nr in 0..=SIZE {
            match runs.last_mut() {
                Some(last) if numbers.answer[last.0] == numbers.answer[nr] => last.1 = nr,
                _ => runs.push((nr, nr)),
            }
        }
        // The last bit is any bit from there on.
        let masks = (1..2 * SIZE).filter(|bits| (bits % SIZE).count_ones() <= MAX_BITS);
        Line {
            numbers,
            runs,
            tests: masks.map(sides).collect(),
        }
    }

    /// Solves all parts of the remaining numbers, with this number of bit tests.
    fn solve(&self, set: &Set, tests: usize) -> Table {
        let left = self.left(set);
        let mut table = self.prepare(&left);
        if tests > 0 {
            for sides in &self.tests {
                let [clear, with] =
                    sides.map(|side| std::array::from_fn(|word| set[word] & side[word]));
                if clear != *set && with != *set {
                    let sides = [self.solve(&clear, tests - 1), self.solve(&with, tests - 1)];
                    take_test(&mut table, &left, &sides);
                }
            }
        }
        for (first, part) in (0..left.len()).map(|first| (first, &left[first..])) {
            leaves(part, |length, cost| {
                let at = length * table.stride + first;
                table.costs[at] = table.costs[at].min(cost);
            });
        }
        cut(&mut table, left.len());
        table
    }

    fn left(&self, set: &Set) -> Vec<Left> {
        let left = self.runs.iter().enumerate().map(|(run, (first, last))| {
            let is_left = |nr: &usize| set[nr / 64] >> (nr % 64) & 1 == 1;
            let values: Vec<usize> = (*first..=*last).filter(is_left).collect();
            Left {
                run,
                answer: self.numbers.answer[*first],
                weight: values.iter().map(|nr| self.numbers.weight[*nr]).sum(),
                values,
            }
        });
        left.filter(|left| !left.values.is_empty()).collect()
    }

    /// A table with infinite costs.
    fn prepare(&self, left: &[Left]) -> Table {
        let mut places = Vec::with_capacity(self.runs.len());
        let mut count = 0;
        for run in 0..self.runs.len() {
            let is_left = left.get(count).is_some_and(|left| left.run == run);
            places.push((count, count + usize::from(is_left)));
            count += usize::from(is_left);
        }
        let mut before = vec![0.0];
        before.extend(left.iter().scan(0.0, |sum, run| {
            *sum += run.weight;
            Some(*sum)
        }));
        let stride = left.len() + 1;
        Table {
            places,
            stride,
            costs: vec![f64::INFINITY; stride * stride],
            before,
        }
    }
}

/// The sides of a test of some bits. The numbers beyond the last one count as having the bits from there on, and
/// arbitrary other bits.
fn sides(bits: usize) -> Sides {
    let mut sides = [[0; WORDS]; 2];
    for nr in 0..=SIZE {
        let has_one = nr & bits != 0;
        let is_on = [!has_one || nr == SIZE && bits < SIZE, has_one || nr == SIZE];
        for (side, is_on) in sides.iter_mut().zip(is_on) {
            side[nr / 64] |= u64::from(is_on) << (nr % 64);
        }
    }
    sides
}

/// Lowers the cost of every part to that with a bit test, given both sides.
fn take_test(table: &mut Table, left: &[Left], sides: &[Table; 2]) {
    for (start, first) in left.iter().enumerate() {
        for (end, last) in left.iter().enumerate().skip(start) {
            let weight = table.weight(first.run, last.run);
            let [clear, with] = sides;
            let cost = weight + clear.cost(first.run, last.run) + with.cost(first.run, last.run);
            let at = (end + 1 - start) * table.stride + start;
            table.costs[at] = table.costs[at].min(cost);
        }
    }
}

/// Lowers the cost of every part to that of its best cut, the shortest parts first.
fn cut(table: &mut Table, count: usize) {
    let stride = table.stride;
    let mut best = vec![0.0; count];
    for length in 2..=count {
        let firsts = count + 1 - length;
        best[..firsts].fill(f64::INFINITY);
        for length_left in 1..length {
            let lefts = &table.costs[length_left * stride..][..firsts];
            let rights = &table.costs[(length - length_left) * stride + length_left..][..firsts];
            for ((best, left), right) in best.iter_mut().zip(lefts).zip(rights) {
                *best = f64::min(*best, left + right);
            }
        }
        for (first, best) in best[..firsts].iter().enumerate() {
            let weight = table.before[first + length] - table.before[first];
            let at = length * stride + first;
            table.costs[at] = table.costs[at].min(best + weight);
        }
    }
}

/// Calls `found` with the numbers of runs that need no cut, and with their costs.
fn leaves(runs: &[Left], mut found: impl FnMut(usize, f64)) {
    let one = runs[0].answer;
    let other = runs
        .iter()
        .map(|run| run.answer)
        .find(|answer| *answer != one);
    for base in [Some(one), other].into_iter().flatten() {
        let mut links: Vec<f64> = Vec::new();
        let mut weight = 0.0;
        for (at, run) in runs.iter().enumerate() {
            weight += run.weight;
            if run.answer != base {
                if run.values.len() > 1 || run.values[0] == SIZE || links.len() == MAX_CHAIN {
                    break;
                }
                let place = links.partition_point(|link| *link >= run.weight);
                links.insert(place, run.weight);
            }
            let chain = links.iter().scan(weight, |left, link| {
                let asked = *left;
                *left -= link;
                Some(asked)
            });
            found(at + 1, chain.sum());
        }
    }
    let two = [Some(one), other];
    let ends = runs.iter().position(|run| !two.contains(&Some(run.answer)));
    for count in 2..=ends.unwrap_or(runs.len()) {
        let part = &runs[..count];
        if two
            .into_iter()
            .flatten()
            .any(|clear| is_told_by_bits(part, clear))
        {
            found(count, part.iter().map(|run| run.weight).sum());
        }
    }
}

/// Whether the numbers with this action have none of some bits, and all others have any.
fn is_told_by_bits(part: &[Left], answer: usize) -> bool {
    let of = |is_clear: bool| {
        let runs = part
            .iter()
            .filter(move |run| (run.answer == answer) == is_clear);
        runs.flat_map(|run| run.values.iter().copied())
    };
    let used = of(true).fold(0, |bits, nr| bits | nr);
    // The numbers beyond the last one have arbitrary bits.
    used < SIZE && of(false).all(|nr| nr & !used != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers 0 to 102 with equal frequency, some of them with another action.
    fn numbers(others: &[usize]) -> Numbers {
        let mut numbers = Numbers {
            answer: vec![0; SIZE + 1],
            weight: vec![0.0; SIZE + 1],
        };
        numbers.weight[..103].fill(1.0 / 103.0);
        for nr in others {
            numbers.answer[*nr] = 1;
        }
        numbers
    }

    #[test]
    fn single_numbers_in_a_neighbourhood_take_little_more_than_one_question() {
        // Sixteen have none of bits 1, 2 and 6; eleven of them are below 41, then come 41 and 56.
        let expected = 1.0 + (16.0 + 5.0 + 4.0) / 103.0;
        let numbers = numbers(&[41, 56]);
        let best = fewest_with_bit_tests(&numbers, 1);
        assert!((best - expected).abs() < 1e-9, "{best} {expected}");
        let without = fewest_with_bit_tests(&numbers, 0);
        assert!(without > 1.5, "{without}");
    }
}
