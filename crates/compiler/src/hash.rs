//! Lists without duplicates: a table of indices, found by a hash of the elements.
//!
//! The lists are stored elsewhere, so no element is stored twice, and one table serves many short lists.

use std::hash::{Hash, Hasher};

use tamis_abi::hash::WordHasher;

/// The hash of a value.
pub(crate) fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = WordHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The hash of a value packed into words, for keys with very frequent lookups.
#[inline]
pub(crate) fn hash_of_words(words: impl IntoIterator<Item = u64>) -> u64 {
    let mut hasher = WordHasher::default();
    words.into_iter().for_each(|word| hasher.write_u64(word));
    hasher.finish()
}

/// Indices of elements in a list that is stored elsewhere, found by a hash of the elements: a table with open
/// addressing, at most half full.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// A power of two of slots, or none.
    slots: Vec<Slot>,
    /// The number of indices.
    len: usize,
    /// How often the table was cleared; the slots of earlier rounds are empty.
    round: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    hash: u64,
    place: u32,
    /// The round in which the slot was filled, plus one.
    filled: u32,
}

impl Places {
    /// A table with capacity for this many indices.
    pub(crate) fn with_room(places: usize) -> Places {
        let slots = match places {
            0 => 0,
            _ => (2 * places).next_power_of_two(),
        };
        Places {
            slots: vec![Slot::default(); slots],
            len: 0,
            round: 0,
        }
    }

    /// Removes all indices and keeps the capacity.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.round += 1;
        if self.round == u32::MAX {
            self.round = 0;
            self.slots.fill(Slot::default());
        }
    }

    /// The index of the element with this hash, if it is in the table; `eq` compares the element at an index.
    #[inline]
    pub(crate) fn find(&self, hash: u64, eq: impl Fn(usize) -> bool) -> Option<usize> {
        self.slot(hash, eq).ok()
    }

    /// Adds the index of an element that is not in the table.
    pub(crate) fn insert(&mut self, hash: u64, place: usize) {
        if let Err(empty) = self.slot(hash, |_| false) {
            self.fill(empty, hash, place);
        }
    }

    /// Stores an index in the empty slot that was found for it, in another if the table grows.
    fn fill(&mut self, empty: Option<usize>, hash: u64, place: usize) {
        let Some(empty) = empty.filter(|_| 2 * (self.len + 1) <= self.slots.len()) else {
            self.grow();
            return self.insert(hash, place);
        };
        self.slots[empty] = Slot {
            hash,
            place: place as u32,
            filled: self.round + 1,
        };
        self.len += 1;
    }

    /// The index of the element with this hash. If it is not in the table, adds the index `new` and returns `None`.
    #[inline]
    pub(crate) fn find_or_insert(
        &mut self,
        hash: u64,
        new: usize,
        eq: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        match self.slot(hash, eq) {
            Ok(place) => Some(place),
            Err(empty) => {
                self.fill(empty, hash, new);
                None
            }
        }
    }

    /// The index of the element with this hash, otherwise the empty slot for it; none in a table without slots.
    #[inline]
    fn slot(&self, hash: u64, eq: impl Fn(usize) -> bool) -> Result<usize, Option<usize>> {
        let Some(mask) = self.slots.len().checked_sub(1) else {
            return Err(None);
        };
        let mut at = hash as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.filled != self.round + 1 {
                return Err(Some(at));
            }
            if slot.hash == hash && eq(slot.place as usize) {
                return Ok(slot.place as usize);
            }
            at = (at + 1) & mask;
        }
    }

    /// Doubles the slots.
    fn grow(&mut self) {
        let mut grown = Places::with_room(self.slots.len().max(4));
        let filled = self
            .slots
            .iter()
            .filter(|slot| slot.filled == self.round + 1);
        filled.for_each(|slot| grown.insert(slot.hash, slot.place as usize));
        *self = grown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_found_by_what_lies_there_and_not_after_clearing() {
        let things: Vec<u32> = (0..1000).map(|n| n * n).collect();
        let mut places = Places::default();
        for round in 0..3 {
            let of_round = &things[..things.len() >> (4 * round)];
            let find = |places: &Places, thing: u32| {
                places.find(hash_of(&thing), |place| of_round[place] == thing)
            };
            for (place, thing) in of_round.iter().enumerate() {
                assert_eq!(find(&places, *thing), None);
                places.insert(hash_of(thing), place);
            }
            for (place, thing) in of_round.iter().enumerate() {
                assert_eq!(find(&places, *thing), Some(place));
            }
            assert_eq!(find(&places, 3), None);
            places.clear();
        }
    }
}
