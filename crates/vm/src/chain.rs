//! Lists of comparisons of one value with constants, as filters have them for numbers of calls.
//!
//! Hundreds of consecutive `jeq` compare A with constants; this is replaced by one lookup in a hash table. The
//! position of the match in the list determines the branches taken: the matching one, and *no* for all before it.

use crate::code::Next;

/// A list of constants with their successors.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// Open addressing: the constant and its index in the list, [`FREE`] for empty slots.
    table: Vec<(u32, u32)>,
    /// The right shift of a hash to an index of the table.
    shift: u32,
    /// The successor of each constant; the last is for all other values.
    next: Vec<Next>,
    /// The mark of the first constant.
    mark: u32,
}

const FREE: u32 = u32::MAX;

impl Chain {
    /// A list of constants; of equal ones the first is used. `other` is for all other values.
    pub(crate) fn new(list: &[(u32, Next)], other: Next, mark: u32) -> Chain {
        let len = (2 * list.len()).next_power_of_two().max(2);
        let mut chain = Chain {
            table: vec![(0, FREE); len],
            shift: 32 - len.trailing_zeros(),
            next: list.iter().map(|(_, next)| *next).chain([other]).collect(),
            mark,
        };
        for (index, (constant, _)) in list.iter().enumerate() {
            let slot = chain.slot(*constant);
            if chain.table[slot].1 == FREE {
                chain.table[slot] = (*constant, index as u32);
            }
        }
        chain
    }

    /// The count of marks.
    pub(crate) fn marks(&self) -> u32 {
        self.next.len() as u32
    }

    /// The mark of a value, and its successor.
    pub(crate) fn find(&self, value: u32) -> (u32, Next) {
        let (_, index) = self.table[self.slot(value)];
        let index = index.min(self.marks() - 1);
        (self.mark + index, self.next[index as usize])
    }

    /// The slot of a constant in the table, or for it.
    fn slot(&self, constant: u32) -> usize {
        let hash = constant.wrapping_mul(0x9e37_79b1) >> self.shift;
        let mut slot = hash as usize;
        loop {
            let (key, index) = self.table[slot];
            if key == constant || index == FREE {
                return slot;
            }
            slot = (slot + 1) & (self.table.len() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_constants_counts_and_the_rest_goes_elsewhere() {
        let list: Vec<(u32, Next)> = (0..100).map(|n| (n % 60 * 7, Next(n))).collect();
        let chain = Chain::new(&list, Next(500), 1000);
        for value in 0..500 {
            let place = list.iter().position(|(constant, _)| *constant == value);
            let expected = match place {
                Some(place) => (1000 + place as u32, list[place].1),
                None => (1100, Next(500)),
            };
            assert_eq!(chain.find(value), expected, "{value}");
        }
    }
}
