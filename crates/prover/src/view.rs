//! Inspecting functions and composing others from them.
//!
//! Deciding needs none of this. Tools that explain a filter walk its diagram ([`Space::view`]) and compose
//! functions of its parts; every function composed here is canonical.

use std::collections::BTreeSet;

use tamis_abi::Word;
use tamis_abi::hash::{WordHashMap, WordHashSet};
use tamis_rules::{IntervalSet, Predicate};

use crate::diagram::{self, FALSE, LimitReached, Node, TRUE, Variable};
use crate::order;
use crate::piecewise::Piecewise;
use crate::relation::Relation;
use crate::space::{Function, Limits, Space};

/// The root of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The function is constant with this value.
    Leaf(u32),
    /// A variable; both branches depend on later variables only.
    Branch {
        /// The variable.
        variable: Variable,
        /// The function if it is 0.
        low: Function,
        /// The function if it is 1.
        high: Function,
    },
}

/// The meaning of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableKind {
    /// A bit of a word of the input; 0 is the least significant.
    Bit(Word, u32),
    /// A comparison of two words of the input.
    Relation(Relation),
}

impl Function {
    /// The condition that never holds, and the filter that always returns 0.
    pub const FALSE: Function = Function(FALSE);
    /// The condition that always holds: conditions are functions with the values 0 and 1.
    pub const TRUE: Function = Function(TRUE);
}

impl Variable {
    /// The variable of one bit of a word. Bits of a word come from the highest to the lowest, the
    /// architecture's before the number's, then the words of each 64-bit value, high before low.
    ///
    /// # Panics
    /// If a word has no such bit.
    pub fn of_bit(word: Word, bit: u32) -> Variable {
        assert!(bit < u32::BITS, "a word has 32 bits, not bit {bit}");
        order::variable(word, bit)
    }
}

impl Space {
    /// The root of a function.
    pub fn view(&self, function: Function) -> View {
        match self.diagram.view(function.0) {
            diagram::View::Leaf(value) => View::Leaf(value),
            diagram::View::Branch {
                variable,
                low,
                high,
            } => View::Branch {
                variable,
                low: Function(low),
                high: Function(high),
            },
        }
    }

    /// The meaning of a variable.
    ///
    /// # Panics
    /// If the variable is from another space, which may compare fewer words.
    pub fn kind(&self, variable: Variable) -> VariableKind {
        match order::input_bit(variable) {
            Some((word, bit)) => VariableKind::Bit(word, bit),
            None => VariableKind::Relation(self.relations.of_variable(variable)),
        }
    }

    /// The function if a variable is 0 and if it is 1, if it depends on no earlier variable; else twice the
    /// function itself.
    pub fn cofactors(&self, function: Function, variable: Variable) -> (Function, Function) {
        let (low, high) = self.diagram.cofactors(function.0, variable);
        (Function(low), Function(high))
    }

    /// The values of a function, ascending; with comparisons of two words some may occur for no input. Proportional
    /// to the diagram.
    pub fn values(&self, function: Function) -> BTreeSet<u32> {
        let mut values = BTreeSet::new();
        let mut seen = WordHashSet::from_iter([function]);
        let mut open = vec![function];
        while let Some(function) = open.pop() {
            match self.view(function) {
                View::Leaf(value) => {
                    values.insert(value);
                }
                View::Branch { low, high, .. } => {
                    open.extend([low, high].into_iter().filter(|next| seen.insert(*next)));
                }
            }
        }
        values
    }

    /// The limits of the space.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The condition that a variable is 1.
    ///
    /// # Errors
    /// If the space is full.
    pub fn variable(&mut self, variable: Variable) -> Result<Function, LimitReached> {
        self.diagram.variable(variable).map(Function)
    }

    /// The function that is `low` if a variable is 0 and `high` if it is 1.
    ///
    /// # Errors
    /// If the space is full.
    pub fn branch(
        &mut self,
        variable: Variable,
        low: Function,
        high: Function,
    ) -> Result<Function, LimitReached> {
        let holds = self.variable(variable)?;
        self.choose(holds, high, low)
    }

    /// The function that is `yes` if the condition is 1 and `no` if it is 0; the condition must have no other
    /// values.
    ///
    /// # Errors
    /// If the space is full.
    pub fn choose(
        &mut self,
        condition: Function,
        yes: Function,
        no: Function,
    ) -> Result<Function, LimitReached> {
        self.diagram.ite(condition.0, yes.0, no.0).map(Function)
    }

    /// The condition that a function has this value.
    ///
    /// # Errors
    /// If the space is full.
    pub fn returns(&mut self, function: Function, ret: u32) -> Result<Function, LimitReached> {
        let leaf = self.diagram.leaf(ret)?;
        let mut known = WordHashMap::from_iter([(leaf, TRUE)]);
        self.is_leaf(function.0, &mut known).map(Function)
    }

    /// The condition that a function reaches a leaf that is known to be `TRUE`.
    fn is_leaf(
        &mut self,
        node: Node,
        known: &mut WordHashMap<Node, Node>,
    ) -> Result<Node, LimitReached> {
        if let Some(condition) = known.get(&node) {
            return Ok(*condition);
        }
        self.diagram.tick()?;
        let diagram::View::Branch {
            variable,
            low,
            high,
        } = self.diagram.view(node)
        else {
            return Ok(FALSE);
        };
        let low = self.is_leaf(low, known)?;
        let high = self.is_leaf(high, known)?;
        let condition = self.diagram.branch(variable, low, high)?;
        known.insert(node, condition);
        Ok(condition)
    }

    /// The condition that a predicate holds.
    ///
    /// # Errors
    /// If the space is full.
    pub fn condition(&mut self, predicate: &Predicate) -> Result<Function, LimitReached> {
        self.predicate(predicate).map(Function)
    }

    /// The condition that a call has one of these audit values and one of these numbers.
    ///
    /// # Errors
    /// If the space is full.
    pub fn calls(
        &mut self,
        audits: &IntervalSet<u32>,
        numbers: &IntervalSet<u32>,
    ) -> Result<Function, LimitReached> {
        let in_numbers = self.word_in(Word::NR, numbers, TRUE)?;
        self.word_in(Word::ARCH, audits, in_numbers).map(Function)
    }

    /// The conjunction of another condition and of a word being in a set.
    fn word_in(
        &mut self,
        word: Word,
        set: &IntervalSet<u32>,
        inside: Node,
    ) -> Result<Node, LimitReached> {
        let mut values = Piecewise::everywhere(word, FALSE);
        for (first, last) in set.intervals() {
            values = values.with_all_from(*first, inside);
            if let Some(after) = last.checked_add(1) {
                values = values.with_all_from(after, FALSE);
            }
        }
        values.to_node(&mut self.diagram)
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::SeccompData;

    use super::*;

    fn with_number(nr: u32) -> SeccompData {
        SeccompData {
            nr,
            ..SeccompData::default()
        }
    }

    #[test]
    fn a_choice_takes_each_side_where_its_condition_says() {
        let mut space = Space::new(Limits::default());
        let bit = space.variable(Variable::of_bit(Word::NR, 0)).unwrap();
        let (five, six) = (space.constant(5).unwrap(), space.constant(6).unwrap());
        let chosen = space.choose(bit, five, six).unwrap();
        assert_eq!(space.value(chosen, &with_number(1).into()), 5);
        assert_eq!(space.value(chosen, &with_number(2).into()), 6);
        assert_eq!(space.values(chosen), BTreeSet::from([5, 6]));
        assert_eq!(space.returns(chosen, 5), Ok(bit));
        assert_eq!(space.returns(chosen, 7), Ok(Function::FALSE));
    }

    #[test]
    fn a_branch_below_what_it_chooses_from_is_canonical_too() {
        let mut space = Space::new(Limits::default());
        let [early, late] = [1, 0].map(|bit| Variable::of_bit(Word::NR, bit));
        let low = space.variable(early).unwrap();
        let swapped = space.branch(late, low, Function::TRUE).unwrap();
        let high = space.variable(late).unwrap();
        let ordered = space.branch(early, high, Function::TRUE).unwrap();
        assert_eq!(swapped, ordered);
        let View::Branch { variable, .. } = space.view(swapped) else {
            panic!("it depends on two bits");
        };
        assert_eq!(space.kind(variable), VariableKind::Bit(Word::NR, 1));
    }
}
