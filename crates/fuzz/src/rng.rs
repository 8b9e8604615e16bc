//! A small random number generator for tests and fuzzing: seeded, portable, not for secrets.
//!
//! The algorithm is SplitMix64 (Steele, Lea and Flood, 2014): one addition and three mixing steps per value, full
//! period, and no bad seeds. Tests use fixed seeds. A fuzzer gives its own bytes, which are returned first, so that
//! it can change single choices.

use std::ops::RangeInclusive;

/// A random number generator. The same seed gives the same values on every machine.
///
/// ```
/// use tamis_fuzz::rng::Rng;
/// let mut rng = Rng::new(7);
/// let roll = rng.range(1..=6);
/// assert!((1..=6).contains(&roll));
/// assert_eq!(Rng::new(7).range(1..=6), roll);
/// ```
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
    /// The values returned before those of the algorithm, the last first.
    given: Vec<u64>,
}

impl Rng {
    /// A generator with this seed.
    pub const fn new(seed: u64) -> Rng {
        Rng {
            state: seed,
            given: Vec::new(),
        }
    }

    /// A generator that returns these bytes, eight per value, and then random values that depend on all of them.
    pub fn from_bytes(bytes: &[u8]) -> Rng {
        let value = |chunk: &[u8]| {
            let bytes = chunk.iter().rev();
            bytes.fold(0, |value, byte| value << 8 | u64::from(*byte))
        };
        let mut given: Vec<u64> = bytes.chunks(8).map(value).collect();
        let mix = |seed, value: &u64| Rng::new(seed ^ value).next_u64();
        let seed = given.iter().fold(bytes.len() as u64, mix);
        given.reverse();
        Rng { state: seed, given }
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        if let Some(value) = self.given.pop() {
            return value;
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A number of the range; the probability of each differs from the uniform one by less than 2⁻⁶⁴.
    ///
    /// # Panics
    /// If the range is empty.
    pub fn range(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (first, last) = range.into_inner();
        assert!(first <= last, "a range to choose from is not empty");
        let span = u128::from(last - first) + 1;
        let scaled = (u128::from(self.next_u64()) * span) >> 64;
        first + scaled as u64
    }

    /// An index below `len`.
    ///
    /// # Panics
    /// If `len` is zero.
    pub fn index(&mut self, len: usize) -> usize {
        assert!(len > 0, "there is something to choose from");
        self.range(0..=len as u64 - 1) as usize
    }

    /// One of the items, with equal probability.
    ///
    /// # Panics
    /// If there are none.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// True with probability `wins / tries`.
    ///
    /// # Panics
    /// If `tries` is zero.
    pub fn chance(&mut self, wins: u64, tries: u64) -> bool {
        assert!(tries > 0, "a chance needs at least one try");
        self.range(0..=tries - 1) < wins
    }

    /// A number of a kind that often shows bugs: often small, often near a power of two, sometimes arbitrary.
    pub fn interesting_u64(&mut self) -> u64 {
        match self.range(0..=3) {
            0 => self.range(0..=16),
            1 => 1_u64 << self.range(0..=63),
            2 => (1_u64 << self.range(0..=63)).wrapping_sub(self.range(0..=2)),
            _ => self.next_u64(),
        }
    }

    /// An independent generator: if one draws more values from it, the values of this one do not change.
    #[must_use]
    pub fn split(&mut self) -> Rng {
        Rng::new(self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_values_are_those_of_the_published_algorithm() {
        // Seed 1234567, from the reference implementation of SplitMix64.
        let mut rng = Rng::new(1_234_567);
        let first = [rng.next_u64(), rng.next_u64(), rng.next_u64()];
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn given_bytes_come_first_and_all_of_them_decide_what_follows() {
        let mut rng = Rng::from_bytes(&[1, 0, 0, 0, 0, 0, 0, 0x80, 7]);
        assert_eq!([rng.next_u64(), rng.next_u64()], [0x8000_0000_0000_0001, 7]);
        let mut other = Rng::from_bytes(&[2, 0, 0, 0, 0, 0, 0, 0x80, 7]);
        assert_eq!(
            [other.next_u64(), other.next_u64()],
            [0x8000_0000_0000_0002, 7]
        );
        assert_ne!(rng.next_u64(), other.next_u64());
    }

    #[test]
    fn every_number_of_a_small_range_appears_and_no_other() {
        let mut rng = Rng::new(1);
        let mut seen = [false; 6];
        for _ in 0..1000 {
            seen[rng.range(1..=6) as usize - 1] = true;
        }
        assert_eq!(seen, [true; 6]);
    }

    #[test]
    fn the_widest_range_does_not_overflow() {
        let mut rng = Rng::new(2);
        let values: Vec<u64> = (0..100).map(|_| rng.range(0..=u64::MAX)).collect();
        assert!(values.iter().any(|value| *value > u64::MAX / 2));
        assert_eq!(rng.range(u64::MAX..=u64::MAX), u64::MAX);
    }

    #[test]
    fn certain_and_impossible_chances_are_so() {
        let mut rng = Rng::new(3);
        for _ in 0..100 {
            assert!(rng.chance(1, 1));
            assert!(!rng.chance(0, 1));
        }
    }
}
