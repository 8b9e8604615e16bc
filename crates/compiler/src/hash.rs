//! A fast hash for small, trusted keys.
//!
//! The graphs of the compiler are full of hash tables keyed by a few integers. The standard hasher
//! resists keys chosen by an attacker, at several times the price. Here a bad choice of keys costs time
//! in a process that the attacker's policy could slow down by being long, just as well.
//!
//! Multiply and rotate, as in Firefox's `FxHasher`; the final multiplication brings the high bits,
//! which the tables use, into play.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A hash table with the fast hash.
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// A hash set with the fast hash.
pub(crate) type FastSet<K> = HashSet<K, BuildHasherDefault<FastHasher>>;

/// The fast hash of a value.
pub(crate) fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = FastHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The fast hash of words into which a value is packed: for keys that are looked up very often.
#[inline]
pub(crate) fn hash_of_words(words: impl IntoIterator<Item = u64>) -> u64 {
    let mut hasher = FastHasher::default();
    words.into_iter().for_each(|word| hasher.write_u64(word));
    hasher.finish()
}

/// Where things lie in a list that somebody else keeps, found by a hash of what they are: a table of places
/// with linear probing. Clearing it keeps the room, so one table serves many short lists without any allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// A power of two of slots, at most half of them taken: part of the hash, and the place.
    slots: Vec<(u32, u32)>,
    taken: usize,
}

impl Places {
    const FEWEST_SLOTS: usize = 64;
    /// No place.
    const NOWHERE: u32 = u32::MAX;
    const FREE: (u32, u32) = (0, Places::NOWHERE);

    /// A table with room for so many places.
    pub(crate) fn with_room(places: usize) -> Places {
        let slots = (2 * places).next_power_of_two().max(Places::FEWEST_SLOTS);
        Places {
            slots: vec![Places::FREE; slots],
            taken: 0,
        }
    }

    /// Forgets all places. A table much larger than its last list uses half of its room from
    /// then on, so that there is less to forget.
    pub(crate) fn clear(&mut self) {
        if self.slots.len() > Places::FEWEST_SLOTS && 16 * self.taken < self.slots.len() {
            self.slots.truncate(self.slots.len() / 2);
        }
        self.slots.fill(Places::FREE);
        self.taken = 0;
    }

    /// The place of the thing with this hash, if it was entered; `eq` looks at a place.
    #[inline]
    pub(crate) fn find(&self, hash: u64, eq: impl Fn(usize) -> bool) -> Option<usize> {
        let last = self.slots.len().checked_sub(1)?;
        let tag = Places::tag(hash);
        let mut at = tag as usize & last;
        loop {
            match self.slots[at] {
                (_, Places::NOWHERE) => return None,
                (known, place) if known == tag && eq(place as usize) => {
                    return Some(place as usize);
                }
                _ => at = (at + 1) & last,
            }
        }
    }

    /// Enters the place of a thing that is not in the table.
    pub(crate) fn insert(&mut self, hash: u64, place: usize) {
        self.find_or_insert(hash, place, |_| false);
    }

    /// The place of the thing with this hash; if it was not entered, its place is `new` from now on.
    #[inline]
    pub(crate) fn find_or_insert(
        &mut self,
        hash: u64,
        new: usize,
        eq: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        if 2 * self.taken >= self.slots.len() {
            self.grow();
        }
        let last = self.slots.len() - 1;
        let tag = Places::tag(hash);
        let mut at = tag as usize & last;
        loop {
            let slot = &mut self.slots[at];
            match *slot {
                (_, Places::NOWHERE) => {
                    *slot = (tag, new as u32);
                    self.taken += 1;
                    return None;
                }
                (known, place) if known == tag && eq(place as usize) => {
                    return Some(place as usize);
                }
                _ => at = (at + 1) & last,
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let slots = (2 * self.slots.len()).max(Places::FEWEST_SLOTS);
        let old = std::mem::replace(&mut self.slots, vec![Places::FREE; slots]);
        let last = slots - 1;
        for slot in old.into_iter().filter(|slot| *slot != Places::FREE) {
            let mut at = slot.0 as usize & last;
            while self.slots[at] != Places::FREE {
                at = (at + 1) & last;
            }
            self.slots[at] = slot;
        }
    }

    /// The high bits of a product depend on all bits of its factors.
    const fn tag(hash: u64) -> u32 {
        (hash >> 32) as u32
    }
}

/// An odd number with well-mixed bits: the golden ratio as a fraction of 2^64.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The state of one hash.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FastHasher {
    state: u64,
}

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.state = (self.state.rotate_left(5) ^ value).wrapping_mul(MULTIPLIER);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The tables take the index from the low bits and a tag from the high ones.
        self.state ^ self.state >> 32
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

    #[test]
    fn neighbouring_keys_spread_over_low_and_high_bits() {
        let keys = (0_u32..64).flat_map(|a| (0_u32..64).map(move |b| (a, b)));
        let hashes: Vec<u64> = keys.map(|key| hash_of(&key)).collect();
        let low: HashSet<u64> = hashes.iter().map(|hash| hash & 0xfff).collect();
        let high: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
        assert!(low.len() > 2000, "{}", low.len());
        assert_eq!(high.len(), 128);
    }
}
