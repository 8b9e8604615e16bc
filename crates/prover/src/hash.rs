//! A fast hash for tables whose keys are a few nodes or other small numbers.
//!
//! The standard hasher resists keys chosen by an attacker, at several times the cost. Here bad keys cost only time,
//! which the limits bound, and no answer depends on the order of a table.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hash table with the fast hash.
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// The state of one hash: multiply and rotate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FastHasher(u64);

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        /// The golden ratio as a fraction of 2^64.
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(ODD);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        // The tables use the low bits, which depend only on the low bits of the keys.
        self.0 ^ self.0 >> 32
    }
}
