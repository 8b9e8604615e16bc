//! Witnesses: an input for which two functions differ.
//!
//! Two different nodes have a pair of branches that differ, down to two different leaves; the branches taken fix
//! some bits of the input and the others are free. If the path requires a comparison of two words, free bits are
//! chosen to satisfy it and the result is checked; if no choice works, no input takes the path, and the next is
//! tried.

use tamis_abi::Word;
use tamis_rules::Input;

use crate::diagram::{Node, Variable, View};
use crate::order;
use crate::relation::Relation;
use crate::space::{Function, Space};

impl Space {
    /// An input for which the functions differ, checked against both; other bits are 0 unless needed. `None` if
    /// they are equal or no input was found within the limits.
    pub fn witness(&self, left: Function, right: Function) -> Option<Input> {
        let mut paths_left = self.limits.max_paths;
        self.search(
            left,
            right,
            left.0,
            right.0,
            &mut Vec::new(),
            &mut paths_left,
        )
    }

    /// Depth-first search of the paths on which `left` and `right` reach different leaves.
    fn search(
        &self,
        functions_left: Function,
        functions_right: Function,
        left: Node,
        right: Node,
        path: &mut Vec<(Variable, bool)>,
        paths_left: &mut usize,
    ) -> Option<Input> {
        if left == right || *paths_left == 0 {
            return None;
        }
        let variable = match (self.diagram.view(left), self.diagram.view(right)) {
            (View::Leaf(_), View::Leaf(_)) => {
                *paths_left -= 1;
                let input = self.input_on(path)?;
                let differs =
                    self.value(functions_left, &input) != self.value(functions_right, &input);
                return differs.then_some(input);
            }
            (View::Branch { variable, .. }, View::Leaf(_))
            | (View::Leaf(_), View::Branch { variable, .. }) => variable,
            (View::Branch { variable: a, .. }, View::Branch { variable: b, .. }) => a.min(b),
        };
        let (left_low, left_high) = self.diagram.cofactors(left, variable);
        let (right_low, right_high) = self.diagram.cofactors(right, variable);
        for (value, left, right) in [(false, left_low, right_low), (true, left_high, right_high)] {
            path.push((variable, value));
            let found = self.search(
                functions_left,
                functions_right,
                left,
                right,
                path,
                paths_left,
            );
            path.pop();
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// An input that takes these branches, checked against them; other bits are 0 unless needed. `None` if none is
    /// found, which is possible only with comparisons of two words.
    pub fn input_on(&self, path: &[(Variable, bool)]) -> Option<Input> {
        let mut fixed = Input::default();
        let mut input = Input::default();
        for (variable, value) in path {
            if let Some((word, bit)) = order::input_bit(*variable) {
                fixed = fixed.with_word(word, fixed.word(word) | 1 << bit);
                input = input.with_word(word, input.word(word) | u32::from(*value) << bit);
            }
        }
        for wanted in self.wanted_on(path) {
            (input, fixed) = satisfy(wanted, input, fixed);
        }
        let takes = |(variable, holds): &(Variable, bool)| match order::input_bit(*variable) {
            Some((word, bit)) => (input.word(word) >> bit & 1 == 1) == *holds,
            None => self.relations.of_variable(*variable).holds(&input) == *holds,
        };
        path.iter().all(takes).then_some(input)
    }

    /// The required comparisons of two words on the path. For a pair that only has to differ, the first word is
    /// made greater.
    fn wanted_on(&self, path: &[(Variable, bool)]) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for (variable, holds) in path {
            if order::input_bit(*variable).is_some() {
                continue;
            }
            let asks_greater_next = || {
                let next = Variable(variable.0 + 1);
                path.iter().any(|(variable, _)| *variable == next)
            };
            match (self.relations.of_variable(*variable), holds) {
                (Relation::Equal(a, b), true) => wanted.push(Wanted::Equal(a, b)),
                (Relation::Equal(..), false) if asks_greater_next() => {}
                (Relation::Equal(a, b), false) | (Relation::Greater(a, b), true) => {
                    wanted.push(Wanted::Greater(a, b));
                }
                (Relation::Greater(a, b), false) => wanted.push(Wanted::Greater(b, a)),
            }
        }
        wanted
    }
}

/// A required comparison of two words.
#[derive(Clone, Copy)]
enum Wanted {
    Equal(Word, Word),
    /// The first must be greater.
    Greater(Word, Word),
}

/// Chooses the free bits of the two words so that they compare as wanted, if possible. Returns the input and, in
/// the form of an input, the bits that are now fixed.
fn satisfy(wanted: Wanted, input: Input, fixed: Input) -> (Input, Input) {
    let (a, b, value_a, value_b) = match wanted {
        Wanted::Equal(a, b) => {
            // Each word gets the other's bits where only its own are free.
            let (value_a, value_b) = (input.word(a), input.word(b));
            let (free_a, free_b) = (!fixed.word(a), !fixed.word(b));
            (a, b, value_a | value_b & free_a, value_b | value_a & free_b)
        }
        // Free bits are 0, so the smaller word is minimal.
        Wanted::Greater(a, b) => (a, b, input.word(a) | !fixed.word(a), input.word(b)),
    };
    let input = input.with_word(a, value_a).with_word(b, value_b);
    let fixed = fixed.with_word(a, u32::MAX).with_word(b, u32::MAX);
    (input, fixed)
}

#[cfg(test)]
mod tests {
    use tamis_abi::ArgIndex;

    use super::*;
    use crate::relation::Comparison;
    use crate::{Limits, Space};

    const A: Word = Word::arg_low(ArgIndex::ALL[0]);
    const B: Word = Word::arg_low(ArgIndex::ALL[1]);

    fn space_with(comparisons: &[(Comparison, Word, Word)]) -> (Space, Vec<Function>) {
        let mut space = Space::new(Limits::default());
        let functions = comparisons
            .iter()
            .map(|(comparison, a, b)| {
                let condition = space
                    .relations
                    .compare(&mut space.diagram, *comparison, *a, *b);
                Function(condition.unwrap())
            })
            .collect();
        (space, functions)
    }

    #[test]
    fn equal_functions_have_no_witness() {
        let comparisons = [
            (Comparison::Greater, A, B),
            (Comparison::Greater, B, A),
            (Comparison::Equal, A, B),
            (Comparison::GreaterOrEqual, A, B),
        ];
        let (mut space, functions) = space_with(&comparisons);
        let [greater, less, equal, greater_or_equal] = functions[..] else {
            unreachable!("as many as comparisons");
        };
        let either = space.diagram.ite(greater.0, crate::diagram::TRUE, equal.0);
        assert_eq!(either, Ok(greater_or_equal.0));
        for (left, right) in [(greater, less), (greater, equal), (less, greater_or_equal)] {
            let input = space.witness(left, right).unwrap();
            assert_ne!(space.value(left, &input), space.value(right, &input));
        }
        assert_eq!(space.witness(less, less), None);
    }

    #[test]
    fn free_bits_are_chosen_so_that_words_compare_as_the_path_says() {
        let (mut space, functions) = space_with(&[(Comparison::Greater, B, A)]);
        let bit = space.diagram.variable(order::variable(A, 31)).unwrap();
        // A has its highest bit set, and B is still greater.
        let both = space
            .diagram
            .ite(bit, functions[0].0, crate::diagram::FALSE);
        let never = space.constant(0).unwrap();
        let input = space.witness(Function(both.unwrap()), never).unwrap();
        assert!(input.word(A) >= 1 << 31 && input.word(B) > input.word(A));
    }
}
