//! Blinding: constants of a program don't appear in the machine code.
//!
//! An attacker who chooses the constants of a program chooses bytes of its code, and executed from the middle of an
//! instruction these may be other instructions. A blinded constant is stored as the exclusive or with a random number,
//! and computed when it is needed. Offsets of words and slots and distances of shifts are below 64 and stay, and so do
//! displacements of extended instructions, which have 16 bits.

/// The constants of one program: as they are, or blinded.
#[derive(Clone, Debug)]
pub(crate) struct Blinding {
    state: Option<u64>,
}

impl Blinding {
    /// Blinds with the random numbers that follow from a seed; without one not at all.
    pub(crate) fn new(seed: Option<u64>) -> Blinding {
        Blinding { state: seed }
    }

    /// Whether it blinds.
    pub(crate) fn is_on(&self) -> bool {
        self.state.is_some()
    }

    /// The random number for the next constant.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u32> {
        let state = self.state.as_mut()?;
        // SplitMix64: a counter with a good mixture of its bits.
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some((mixed ^ mixed >> 31) as u32)
    }
}
