//! Hash tables with a fast hash of words: for keys that are numbers or a few numbers.
//!
//! The hash is multiplicative: for each word a rotation, an exclusive or and a product with the golden ratio. It has no
//! seed, so the order of a table's elements is the same in every run. It does not resist chosen keys: these cost time,
//! as a longer policy would, and nothing else.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are hashed by [`WordHasher`].
pub type WordHashMap<K, V> = HashMap<K, V, BuildWordHasher>;

/// A set whose elements are hashed by [`WordHasher`].
pub type WordHashSet<T> = HashSet<T, BuildWordHasher>;

/// Makes [`WordHasher`]s.
pub type BuildWordHasher = BuildHasherDefault<WordHasher>;

/// The hash of a sequence of words.
///
/// ```
/// use std::hash::{BuildHasher, Hasher};
/// use tamis_abi::hash::{BuildWordHasher, WordHashMap, WordHasher};
///
/// let mut squares = WordHashMap::default();
/// squares.extend((0..100_u32).map(|n| (n, n * n)));
/// assert_eq!(squares[&7], 49);
///
/// let hash = |value: &str| BuildWordHasher::default().hash_one(value);
/// assert_eq!(hash("read"), hash("read"));
/// assert_ne!(hash("read"), hash("reads"));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct WordHasher(u64);

/// 2^64 divided by the golden ratio, made odd: multiples of it are spread evenly.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl WordHasher {
    #[inline]
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(GOLDEN);
    }
}

impl Hasher for WordHasher {
    /// Bytes in words of eight. The length is not part: `str` and slices write it, or an end, themselves.
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u8(&mut self, word: u8) {
        self.add(word.into());
    }

    #[inline]
    fn write_u16(&mut self, word: u16) {
        self.add(word.into());
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.add(word.into());
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }

    /// A product's high bits depend on all of its factor's and its low ones on few, and tables use the low ones.
    #[inline]
    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(GOLDEN);
        mixed ^ mixed >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    /// Pairs of small numbers, and multiples of powers of two, are the keys of most tables.
    #[test]
    fn places_of_regular_keys_are_spread() {
        const PLACES: u64 = 1 << 12;
        let hash = |key: (u32, u64)| BuildWordHasher::default().hash_one(key);
        for shift in [0, 3, 12, 32, 52] {
            let keys = (0..64).flat_map(|one| (0..64_u64).map(move |other| (one, other << shift)));
            let places: HashSet<u64> = keys.map(|key| hash(key) % PLACES).collect();
            // Of as many random places 63 % are different.
            assert!(
                places.len() as u64 > PLACES / 2,
                "shift {shift}: {}",
                places.len()
            );
        }
    }
}
