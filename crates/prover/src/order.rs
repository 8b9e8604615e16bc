//! The order of variables, which represent input bits.
//!
//! Filters test the architecture first, then the number, then arguments, and compare words from the highest bit.
//! With variables in this order a comparison with a constant has at most 32 nodes and is above the nodes of its
//! outcomes. The order of words is architecture, number, then for each 64-bit value the high half before the low,
//! those of the call before those of run-time variables. After the input bits come the variables for relations
//! between two words, see [`Relations`](crate::relation::Relations).

use tamis_abi::Word;

use crate::diagram::Variable;

/// The first variable that is not an input bit.
pub(crate) const INPUT_BITS: u32 = 32 * Word::COUNT_WITH_VARIABLES as u32;

/// The rank of a word in the order: architecture, number, then high and low halves.
const fn rank(word: Word) -> u32 {
    // In the order of `Word` every pair is (first, second): nr and arch, low and high.
    (word.index() ^ 1) as u32
}

/// The variable of one bit of a word; bit 0 is the least significant.
pub(crate) const fn variable(word: Word, bit: u32) -> Variable {
    Variable(rank(word) * 32 + (31 - bit))
}

/// The word and bit of a variable; `None` for a relation.
pub(crate) fn input_bit(variable: Variable) -> Option<(Word, u32)> {
    let word = Word::from_index((variable.0 as usize / 32) ^ 1)?;
    Some((word, 31 - variable.0 % 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_input_bit_has_its_own_variable() {
        for word in (0..).map_while(Word::from_index) {
            for bit in 0..32 {
                assert_eq!(input_bit(variable(word, bit)), Some((word, bit)));
                assert!(variable(word, bit).0 < INPUT_BITS);
            }
        }
        assert_eq!(input_bit(Variable(INPUT_BITS)), None);
        assert!(variable(Word::ARCH, 0) < variable(Word::NR, 31));
        assert!(variable(Word::IP_HIGH, 0) < variable(Word::IP_LOW, 31));
    }
}
