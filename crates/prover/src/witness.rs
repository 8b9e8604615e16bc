//! Witnesses: an input for which two functions differ.
//!
//! Two different nodes have a pair of branches that differ, down to two different leaves; the branches taken fix
//! some bits of the input and the others are free. If the path requires comparisons of two words, an input is solved
//! for (see [`assignment`](crate::assignment)) as soon as the path has the comparison, so that a contradiction ends
//! it; the next path is tried.

use tamis_rules::Input;

use crate::assignment::Conditions;
use crate::diagram::{Node, Variable, View};
use crate::order;
use crate::space::{Function, Space};

/// A search for an input for which two functions differ.
struct Search<'a> {
    space: &'a Space,
    functions: [Function; 2],
    path: Vec<(Variable, bool)>,
    paths_left: usize,
}

impl Space {
    /// An input for which the functions differ, checked against both; other bits are 0 unless needed. `None` if
    /// they are equal or no input was found within the limits.
    pub fn witness(&self, left: Function, right: Function) -> Option<Input> {
        let mut search = Search {
            space: self,
            functions: [left, right],
            path: Vec::new(),
            paths_left: self.limits.max_paths,
        };
        search.below(left.0, right.0)
    }

    /// An input that takes these branches, checked against them; other bits are 0 unless needed. `None` if none is
    /// found, which is possible only with comparisons of two words.
    pub fn input_on(&self, path: &[(Variable, bool)]) -> Option<Input> {
        let mut conditions = Conditions::default();
        for (variable, holds) in path {
            match order::input_bit(*variable) {
                Some((word, bit)) => conditions.add_bit(word, bit, *holds),
                None => conditions.add_relation(self.relations.of_variable(*variable), *holds),
            }
        }
        let input = conditions.input()?;
        let takes = |(variable, holds): &(Variable, bool)| match order::input_bit(*variable) {
            Some((word, bit)) => (input.word(word) >> bit & 1 == 1) == *holds,
            None => self.relations.of_variable(*variable).holds(&input) == *holds,
        };
        path.iter().all(takes).then_some(input)
    }
}

impl Search<'_> {
    /// Depth-first search of the paths on which `left` and `right` reach different leaves.
    fn below(&mut self, left: Node, right: Node) -> Option<Input> {
        if left == right || self.paths_left == 0 {
            return None;
        }
        let diagram = &self.space.diagram;
        let variable = match (diagram.view(left), diagram.view(right)) {
            (View::Leaf(_), View::Leaf(_)) => {
                let input = self.space.input_on(&self.path)?;
                let [left, right] = self.functions;
                let differs = self.space.value(left, &input) != self.space.value(right, &input);
                return differs.then_some(input);
            }
            (View::Branch { variable, .. }, View::Leaf(_))
            | (View::Leaf(_), View::Branch { variable, .. }) => variable,
            (View::Branch { variable: a, .. }, View::Branch { variable: b, .. }) => a.min(b),
        };
        let (left_low, left_high) = diagram.cofactors(left, variable);
        let (right_low, right_high) = diagram.cofactors(right, variable);
        for (value, left, right) in [(false, left_low, right_low), (true, left_high, right_high)] {
            self.path.push((variable, value));
            let found = match self.is_open() {
                true => self.below(left, right),
                false => None,
            };
            self.path.pop();
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Whether the path may have an input. One that ends in a comparison of two words is solved, and counted.
    fn is_open(&mut self) -> bool {
        let is_bit = |(variable, _): &(Variable, bool)| order::input_bit(*variable).is_some();
        if self.path.last().is_none_or(is_bit) {
            return true;
        }
        if self.paths_left == 0 || self.space.check_stop().is_err() {
            self.paths_left = 0;
            return false;
        }
        self.paths_left -= 1;
        self.space.input_on(&self.path).is_some()
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::{ArgIndex, Word};

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
