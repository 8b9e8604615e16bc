//! Counts of the results of comparisons, so that a test can check that all kinds occur.

/// The number of each result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Equal for every input.
    pub equal: u32,
    /// Different for some input.
    pub different: u32,
    /// Undecided within the limits.
    pub unknown: u32,
}
