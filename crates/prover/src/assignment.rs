//! Inputs for given bits and given comparisons of two words.
//!
//! Words that must be equal form a class, whose fixed bits are those of all its words. The classes are assigned from
//! the smallest to the greatest, each the least value with its fixed bits that is greater than those of the classes
//! below it. So a conjunction of bits, equalities and strict comparisons has an assignment exactly if one is found;
//! only of words that have to differ in either direction one may be missed.

use tamis_abi::Word;
use tamis_rules::Input;

use crate::relation::Relation;

/// The number of a class of equal words.
type Class = usize;

/// Conditions on the words of an input.
#[derive(Default)]
pub(crate) struct Conditions {
    /// Each word that has a condition, with its class.
    words: Vec<(Word, Class)>,
    /// For each class its fixed bits, as a mask and a value.
    fixed: Vec<(u32, u32)>,
    /// Pairs of words of which the first must be greater.
    greater: Vec<(Word, Word)>,
    /// Pairs of words that must differ.
    different: Vec<(Word, Word)>,
    /// Pairs of words that must be equal.
    equal: Vec<(Word, Word)>,
}

impl Conditions {
    /// Requires a bit of a word.
    pub(crate) fn add_bit(&mut self, word: Word, bit: u32, is_set: bool) {
        let class = self.class_of(word);
        let (mask, value) = &mut self.fixed[class];
        *mask |= 1 << bit;
        *value |= u32::from(is_set) << bit;
    }

    /// Requires that a relation holds, or doesn't. The relation `Greater` occurs only for words that differ.
    pub(crate) fn add_relation(&mut self, relation: Relation, holds: bool) {
        for word in relation.words() {
            self.class_of(word);
        }
        match (relation, holds) {
            (Relation::Equal(a, b), true) => self.equal.push((a, b)),
            (Relation::Equal(a, b), false) => self.different.push((a, b)),
            (Relation::Greater(a, b), true) => self.greater.push((a, b)),
            (Relation::Greater(a, b), false) => self.greater.push((b, a)),
        }
    }

    fn class_of(&mut self, word: Word) -> Class {
        if self.words.iter().any(|(known, _)| *known == word) {
            return self.known_class(word);
        }
        let class = self.fixed.len();
        self.words.push((word, class));
        self.fixed.push((0, 0));
        class
    }

    /// The class of a word with a condition.
    fn known_class(&self, word: Word) -> Class {
        let mut words = self.words.iter();
        let known = words.find(|(known, _)| *known == word);
        known.expect("words of relations have a class").1
    }

    /// An input that meets them; words and bits without conditions are 0. `None` if there is none, or, with words
    /// that have to differ, none was found.
    pub(crate) fn input(mut self) -> Option<Input> {
        for (a, b) in std::mem::take(&mut self.equal) {
            let (a, b) = (self.class_of(a), self.class_of(b));
            self.merge(a, b)?;
        }
        let [greater, different] = [&self.greater, &self.different].map(|pairs| {
            let mut classes = Vec::with_capacity(pairs.len());
            for (a, b) in pairs {
                classes.push((self.known_class(*a), self.known_class(*b)));
            }
            classes
        });
        if different.iter().any(|(a, b)| a == b) {
            return None;
        }
        let values = self.values(&greater, &different)?;
        let words = self.words.iter();
        Some(words.fold(Input::default(), |input, (word, class)| {
            input.with_word(*word, values[*class])
        }))
    }

    /// Makes two classes one; `None` if their fixed bits contradict each other.
    fn merge(&mut self, a: Class, b: Class) -> Option<()> {
        let ((mask_a, value_a), (mask_b, value_b)) = (self.fixed[a], self.fixed[b]);
        if (value_a ^ value_b) & mask_a & mask_b != 0 {
            return None;
        }
        self.fixed[a] = (mask_a | mask_b, value_a | value_b);
        for (_, class) in &mut self.words {
            if *class == b {
                *class = a;
            }
        }
        Some(())
    }

    /// A value for each class; `None` if there are none.
    fn values(&self, greater: &[(Class, Class)], different: &[(Class, Class)]) -> Option<Vec<u32>> {
        let mut values: Vec<Option<u32>> = vec![None; self.fixed.len()];
        for _ in 0..values.len() {
            // A class all of whose smaller ones are assigned; in a cycle there is none.
            let is_next = |class: &Class| {
                let mut smaller = greater.iter().filter(|(above, _)| above == class);
                values[*class].is_none() && smaller.all(|(_, below)| values[*below].is_some())
            };
            let class = (0..values.len()).find(is_next)?;
            let below = greater.iter().filter(|(above, _)| *above == class);
            let below = below.filter_map(|(_, below)| values[*below]).max();
            let mut least = below.map_or(Some(0), |below| below.checked_add(1))?;
            let (mask, fixed) = self.fixed[class];
            values[class] = loop {
                let value = least_with(mask, fixed, least)?;
                let is_taken = different.iter().any(|(a, b)| {
                    *a == class && values[*b] == Some(value)
                        || *b == class && values[*a] == Some(value)
                });
                if !is_taken {
                    break Some(value);
                }
                least = value.checked_add(1)?;
            };
        }
        values.into_iter().collect()
    }
}

/// The least number that has these bits under the mask and is not below `least`.
fn least_with(mask: u32, fixed: u32, least: u32) -> Option<u32> {
    let candidate = least & !mask | fixed;
    let differing = candidate ^ least;
    if differing == 0 {
        return Some(candidate);
    }
    let highest = 31 - differing.leading_zeros();
    let below = |bit: u32| (1 << bit) - 1;
    if candidate >> highest & 1 == 1 {
        // Already above: the free bits under the difference may be 0.
        return Some(candidate & !(below(highest) & !mask));
    }
    // A fixed bit is too small: the next free bit above that is 0 becomes 1.
    let may_rise = !mask & !candidate & !below(highest);
    if may_rise == 0 {
        return None;
    }
    let risen = may_rise.trailing_zeros();
    Some((candidate | 1 << risen) & !(below(risen) & !mask))
}

#[cfg(test)]
mod tests {
    use tamis_abi::ArgIndex;

    use super::*;

    const A: Word = Word::arg_low(ArgIndex::ALL[0]);
    const B: Word = Word::arg_low(ArgIndex::ALL[1]);
    const C: Word = Word::arg_low(ArgIndex::ALL[2]);

    #[test]
    fn the_least_number_is_that_of_a_search() {
        // Patterns of four bits at both ends of a word, and all bounds near them.
        for shift in [0, 28] {
            for mask in 0..16_u32 {
                for fixed in (0..16).filter(|fixed| fixed & !mask == 0) {
                    for least in 0..16 {
                        let numbers = (least..16).find(|number| number & mask == fixed);
                        let rest = !(0xf << shift);
                        let found =
                            least_with(mask << shift | rest, fixed << shift, least << shift);
                        assert_eq!(found, numbers.map(|number| number << shift));
                    }
                }
            }
        }
        assert_eq!(least_with(0, 0, u32::MAX), Some(u32::MAX));
        assert_eq!(least_with(1, 0, u32::MAX), None);
    }

    #[test]
    fn chains_of_comparisons_have_an_input() {
        let mut conditions = Conditions::default();
        conditions.add_relation(Relation::Greater(A, B), true);
        conditions.add_relation(Relation::Greater(B, C), true);
        conditions.add_bit(C, 4, true);
        conditions.add_bit(B, 5, false);
        conditions.add_bit(B, 0, false);
        let input = conditions.input().unwrap();
        assert_eq!([A, B, C].map(|word| input.word(word)), [19, 18, 16]);
    }

    #[test]
    fn contradictions_have_none() {
        let with = |relations: &[(Relation, bool)]| {
            let mut conditions = Conditions::default();
            conditions.add_bit(A, 31, true);
            for (relation, holds) in relations {
                conditions.add_relation(*relation, *holds);
            }
            conditions.input()
        };
        let cycle = [
            (Relation::Greater(A, B), false),
            (Relation::Greater(B, C), false),
            (Relation::Greater(A, C), true),
        ];
        assert_eq!(with(&cycle), None);
        assert!(with(&cycle[..2]).is_some());
        let equal = (Relation::Equal(A, B), true);
        assert_eq!(with(&[equal, (Relation::Equal(A, B), false)]), None);
        assert_eq!(with(&[equal, (Relation::Greater(B, A), true)]), None);
        let found = with(&[equal, (Relation::Equal(A, C), false)]).unwrap();
        assert_eq!([A, B].map(|word| found.word(word)), [1 << 31; 2]);
    }
}
