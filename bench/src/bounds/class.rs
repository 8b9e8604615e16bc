//! The best tree of a class that can be solved for all numbers: cuts, one bit test per path, and short
//! ends.

use super::{Numbers, SIZE};

/// The longest chain of equality questions at an end.
const MAX_CHAIN: usize = 5;

/// Neighbouring numbers with one answer, as far as a bit test left them.
#[derive(Clone)]
struct Run {
    answer: usize,
    weight: f64,
    /// How many numbers there are: one can be asked for.
    count: usize,
    /// The bits that one of them has, and the numbers themselves.
    values: Vec<usize>,
    has_no_end: bool,
}

/// By first run, then by last.
type Table = Vec<f64>;

/// The mean number of questions about the number in the best tree of the class.
pub fn best_of_class(numbers: &Numbers) -> f64 {
    let runs = runs(numbers);
    let count = runs.len();
    let mut with_bits = vec![f64::INFINITY; count * count];
    for bits in 1..SIZE {
        let [clear, set] = [false, true].map(|is_set| {
            let left = restricted(&runs, numbers, |nr| (nr & bits != 0) == is_set);
            table(&left, None)
        });
        for first in 0..count {
            let mut weight = 0.0;
            for (last, run) in runs.iter().enumerate().skip(first) {
                weight += run.weight;
                let at = first * count + last;
                with_bits[at] = with_bits[at].min(weight + clear[at] + set[at]);
            }
        }
    }
    table(&runs, Some(&with_bits))[count - 1]
}

fn runs(numbers: &Numbers) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (nr, answer) in numbers.answer.iter().enumerate() {
        if runs.last().is_none_or(|last| last.answer != *answer) {
            runs.push(Run {
                answer: *answer,
                weight: 0.0,
                count: 0,
                values: Vec::new(),
                has_no_end: false,
            });
        }
        if let Some(run) = runs.last_mut() {
            run.weight += numbers.weight[nr];
            run.count += 1;
            run.values.push(nr);
            run.has_no_end |= nr == SIZE;
        }
    }
    runs
}

/// The runs with the numbers that are left; what is beyond the last number is always left.
fn restricted(runs: &[Run], numbers: &Numbers, is_left: impl Fn(usize) -> bool) -> Vec<Run> {
    let restrict = |run: &Run| {
        let mut left = run.clone();
        left.values.retain(|nr| *nr == SIZE || is_left(*nr));
        left.weight = left.values.iter().map(|nr| numbers.weight[*nr]).sum();
        left.count = left.values.len();
        left
    };
    runs.iter().map(restrict).collect()
}

/// The least questions for every part of a line, each number as often as it is frequent, if parts may
/// also be decided at these costs.
fn table(runs: &[Run], others: Option<&Table>) -> Table {
    let count = runs.len();
    let mut least = vec![0.0; count * count];
    for first in (0..count).rev() {
        for last in first..count {
            let part = &runs[first..=last];
            let mut answers: Vec<usize> = present(part).map(|run| run.answer).collect();
            answers.sort_unstable();
            answers.dedup();
            if answers.len() <= 1 {
                continue;
            }
            let weight: f64 = part.iter().map(|run| run.weight).sum();
            let at = first * count + last;
            let mut best = others.map_or(f64::INFINITY, |others| others[at]);
            for cut in first + 1..=last {
                let sides = least[first * count + cut - 1] + least[cut * count + last];
                best = best.min(weight + sides);
            }
            for answer in &answers {
                best = best.min(chain(part, *answer, weight).unwrap_or(f64::INFINITY));
                if answers.len() == 2 && is_told_by_bits(part, *answer) {
                    best = best.min(weight);
                }
            }
            least[at] = best;
        }
    }
    least
}

fn present(part: &[Run]) -> impl Iterator<Item = &Run> {
    part.iter().filter(|run| run.count > 0)
}

/// The questions of a chain after which the others have this answer.
fn chain(part: &[Run], answer: usize, weight: f64) -> Option<f64> {
    let mut links: Vec<f64> = Vec::new();
    for run in present(part).filter(|run| run.answer != answer) {
        if run.count > 1 || run.has_no_end || links.len() == MAX_CHAIN {
            return None;
        }
        links.push(run.weight);
    }
    links.sort_by(|a, b| b.total_cmp(a));
    let mut left = weight;
    let mut questions = 0.0;
    for link in links {
        questions += left;
        left -= link;
    }
    Some(questions)
}

/// Whether the numbers with this answer have none of some bits, and all others one.
fn is_told_by_bits(part: &[Run], answer: usize) -> bool {
    let of = |is_clear: bool| {
        let runs = present(part).filter(move |run| (run.answer == answer) == is_clear);
        runs.flat_map(|run| run.values.iter().copied())
    };
    let used = of(true).fold(0, |bits, nr| bits | nr);
    !present(part).any(|run| run.has_no_end) && of(false).all(|nr| nr & !used != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_numbers_in_a_neighbourhood_take_little_more_than_one_question() {
        let mut numbers = Numbers {
            answer: vec![0; SIZE + 1],
            weight: vec![0.0; SIZE + 1],
        };
        for nr in 0..103 {
            numbers.weight[nr] = 1.0 / 103.0;
        }
        for nr in [41, 56] {
            numbers.answer[nr] = 1;
        }
        // Sixteen have none of bits 1, 2 and 6; eleven of them are below 41, then come 41 and 56.
        let expected = 1.0 + (16.0 + 5.0 + 4.0) / 103.0;
        let best = best_of_class(&numbers);
        assert!((best - expected).abs() < 1e-9, "{best} {expected}");
    }
}
