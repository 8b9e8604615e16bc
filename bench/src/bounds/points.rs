//! The fewest questions that distinguish a few numbers, by dynamic programming over all sets of them.

use super::{Numbers, heaviest, neighbours};

/// The number of numbers considered; time and memory are exponential in it.
const POINTS: usize = 22;

/// A set of points.
type Set = usize;

/// A lower bound of the mean number of questions about the number in any program of comparisons and bit tests.
pub fn fewest_questions(numbers: &Numbers) -> f64 {
    let points = points(numbers);
    let weight: Vec<f64> = points.iter().map(|nr| numbers.weight[*nr]).collect();
    let questions = questions(&points);
    let all = (1 << points.len()) - 1;
    let mut least = vec![0.0_f64; all + 1];
    for set in 1..=all {
        let members = || (0..points.len()).filter(|at| set >> at & 1 == 1);
        let first = members().next().map(|at| numbers.answer[points[at]]);
        if members().all(|at| Some(numbers.answer[points[at]]) == first) {
            continue;
        }
        let mut below = f64::INFINITY;
        for question in &questions {
            let (yes, no) = (set & question, set & !question);
            if yes != 0 && no != 0 {
                below = below.min(least[yes] + least[no]);
            }
        }
        least[set] = below + members().map(|at| weight[at]).sum::<f64>();
    }
    // Other numbers need at least one question, because not all numbers have one action.
    least[all] + 1.0 - weight.iter().sum::<f64>()
}

/// The most frequent numbers, each with its neighbours, up to the limit.
fn points(numbers: &Numbers) -> Vec<usize> {
    let mut points: Vec<usize> = Vec::new();
    for nr in heaviest(numbers) {
        for point in [nr].into_iter().chain(neighbours(numbers, nr)) {
            if points.len() < POINTS && !points.contains(&point) {
                points.push(point);
            }
        }
    }
    points.sort_unstable();
    points
}

/// The distinct outcomes of questions: the points for which the answer is yes.
fn questions(points: &[usize]) -> Vec<Set> {
    let of = |test: &dyn Fn(usize) -> bool| -> Set {
        let yes = points.iter().enumerate().filter(|(_, nr)| test(**nr));
        yes.fold(0, |set, (at, _)| set | 1 << at)
    };
    let mut questions: Vec<Set> = Vec::new();
    for point in points {
        questions.push(of(&|nr| nr >= *point));
        questions.push(of(&|nr| nr == *point));
    }
    for bits in 1..super::SIZE {
        questions.push(of(&|nr| nr & bits != 0));
    }
    questions.sort_unstable();
    questions.dedup();
    questions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::SIZE;

    fn numbers(denied: &[usize], weights: &[(usize, f64)]) -> Numbers {
        let mut numbers = Numbers {
            answer: vec![0; SIZE + 1],
            weight: vec![0.0; SIZE + 1],
        };
        for nr in denied {
            numbers.answer[*nr] = 1;
        }
        for (nr, weight) in weights {
            numbers.weight[*nr] = *weight;
        }
        numbers
    }

    #[test]
    fn one_number_that_stands_out_takes_one_question() {
        let numbers = numbers(&[7], &[(3, 0.5), (7, 0.25), (9, 0.25)]);
        assert_eq!(fewest_questions(&numbers), 1.0);
    }

    #[test]
    fn bits_are_asked_for_where_comparisons_would_take_more() {
        // Even numbers against odd ones: one bit.
        let odd: Vec<usize> = (0..8).map(|at| 2 * at + 1).collect();
        let weights: Vec<(usize, f64)> = (0..16).map(|nr| (nr, 1.0 / 16.0)).collect();
        assert_eq!(fewest_questions(&numbers(&odd, &weights)), 1.0);
        // No single bit and no single comparison distinguishes these.
        let weights = [(1, 0.25), (2, 0.25), (4, 0.25), (6, 0.25)];
        let one_after_the_other = 1.0 + 0.75;
        assert_eq!(
            fewest_questions(&numbers(&[1, 6], &weights)),
            one_after_the_other
        );
    }
}
