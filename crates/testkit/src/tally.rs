//! Counting what became of comparisons, so that a test can tell that it didn't ask for one answer only.

/// How often each answer was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The same for every input.
    pub equal: u32,
    /// Told apart by an input.
    pub different: u32,
    /// Neither, within the limits.
    pub unknown: u32,
}
