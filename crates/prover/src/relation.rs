//! Comparisons of two input words.
//!
//! As functions of the bits they would need exponentially many nodes, because all bits of one word come before
//! those of the other. Instead they become separate variables: one for the equality of the words and one for the
//! first being greater. Equal diagrams still mean equal functions. Different diagrams may differ only where the
//! variables contradict the words, so a witness is checked against the words (see [`witness`](crate::witness)).

use tamis_abi::Word;
use tamis_rules::Input;

use crate::diagram::{Diagram, FALSE, LimitReached, Node, TRUE, Variable};
use crate::order::INPUT_BITS;

/// A comparison of two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Greater,
    GreaterOrEqual,
}

/// The compared pairs of words, in the order of first use; the smaller word first.
#[derive(Default)]
pub(crate) struct Relations {
    pairs: Vec<(Word, Word)>,
}

/// The meaning of a relation variable for its pair of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They are equal.
    Equal(Word, Word),
    /// The first is greater; tested only if they aren't equal.
    Greater(Word, Word),
}

impl Relation {
    /// The pair.
    pub fn words(self) -> [Word; 2] {
        match self {
            Relation::Equal(a, b) | Relation::Greater(a, b) => [a, b],
        }
    }

    /// Whether the relation holds for an input.
    pub fn holds(self, input: &Input) -> bool {
        match self {
            Relation::Equal(a, b) => input.word(a) == input.word(b),
            Relation::Greater(a, b) => input.word(a) > input.word(b),
        }
    }
}

impl Relations {
    /// The condition that a comparison of two words holds.
    pub(crate) fn compare(
        &mut self,
        diagram: &mut Diagram,
        comparison: Comparison,
        a: Word,
        b: Word,
    ) -> Result<Node, LimitReached> {
        match comparison {
            Comparison::Equal => self.equal(diagram, a, b),
            Comparison::Greater => self.greater(diagram, a, b),
            Comparison::GreaterOrEqual => {
                let less = self.greater(diagram, b, a)?;
                diagram.not(less)
            }
        }
    }

    fn equal(&mut self, diagram: &mut Diagram, a: Word, b: Word) -> Result<Node, LimitReached> {
        if a == b {
            return Ok(TRUE);
        }
        let pair = self.pair(a, b);
        diagram.variable(equal_variable(pair))
    }

    fn greater(&mut self, diagram: &mut Diagram, a: Word, b: Word) -> Result<Node, LimitReached> {
        if a == b {
            return Ok(FALSE);
        }
        let pair = self.pair(a, b);
        let equal = diagram.variable(equal_variable(pair))?;
        let first_greater = diagram.variable(Variable(equal_variable(pair).0 + 1))?;
        let greater = if a < b {
            first_greater
        } else {
            diagram.not(first_greater)?
        };
        diagram.ite(equal, FALSE, greater)
    }

    /// The relation of a variable after the input bits.
    ///
    /// # Panics
    /// If the variable is from another space.
    pub(crate) fn of_variable(&self, variable: Variable) -> Relation {
        let number = (variable.0 - INPUT_BITS) as usize;
        let (a, b) = self.pairs[number / 2];
        if number.is_multiple_of(2) {
            Relation::Equal(a, b)
        } else {
            Relation::Greater(a, b)
        }
    }

    fn pair(&mut self, a: Word, b: Word) -> usize {
        let pair = (a.min(b), a.max(b));
        self.pairs
            .iter()
            .position(|known| *known == pair)
            .unwrap_or_else(|| {
                self.pairs.push(pair);
                self.pairs.len() - 1
            })
    }
}

fn equal_variable(pair: usize) -> Variable {
    Variable(INPUT_BITS + 2 * pair as u32)
}
