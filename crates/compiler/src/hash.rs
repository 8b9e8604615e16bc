//! Lists without duplicates: a table of indices, found by a hash of the elements.
//!
//! The lists are stored elsewhere, so no element is stored twice, and one table serves many short lists. The hash is
//! that of `rustc-hash`. It does not resist chosen keys: these can cost time, as a longer policy would, and nothing
//! else.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxHasher;

/// The hash of a value.
pub(crate) fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The hash of a value packed into words, for keys with very frequent lookups.
#[inline]
pub(crate) fn hash_of_words(words: impl IntoIterator<Item = u64>) -> u64 {
    let mut hasher = FxHasher::default();
    words.into_iter().for_each(|word| hasher.write_u64(word));
    hasher.finish()
}

/// Indices of elements in a list that is stored elsewhere, found by a hash of the elements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(HashTable<(u64, u32)>);

impl Places {
    /// A table with capacity for this many indices.
    pub(crate) fn with_room(places: usize) -> Places {
        Places(HashTable::with_capacity(places))
    }

    /// Removes all indices and keeps the capacity.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The index of the element with this hash, if it is in the table; `eq` compares the element at an index.
    #[inline]
    pub(crate) fn find(&self, hash: u64, eq: impl Fn(usize) -> bool) -> Option<usize> {
        let found = self.0.find(hash, |(_, place)| eq(*place as usize));
        found.map(|(_, place)| *place as usize)
    }

    /// Adds the index of an element that is not in the table.
    pub(crate) fn insert(&mut self, hash: u64, place: usize) {
        self.0
            .insert_unique(hash, (hash, place as u32), |(hash, _)| *hash);
    }

    /// The index of the element with this hash. If it is not in the table, adds the index `new` and returns `None`.
    #[inline]
    pub(crate) fn find_or_insert(
        &mut self,
        hash: u64,
        new: usize,
        eq: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        match self
            .0
            .entry(hash, |(_, place)| eq(*place as usize), |(hash, _)| *hash)
        {
            Entry::Occupied(found) => Some(found.get().1 as usize),
            Entry::Vacant(vacant) => {
                vacant.insert((hash, new as u32));
                None
            }
        }
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
