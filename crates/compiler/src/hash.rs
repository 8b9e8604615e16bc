//! A fast hash for small keys that the compiler makes itself.
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

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.state = (self.state.rotate_left(5) ^ value).wrapping_mul(MULTIPLIER);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        // The tables take the index from the low bits and a tag from the high ones.
        self.state ^ self.state >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
