//! The spinning time of a side that waits for the other.

/// The spinning time of a side that waits for the other, before it sleeps.
///
/// Spinning hands over in the time of a system call if both sides run on their own CPUs; if they share one, it takes
/// the CPU from the other side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spin {
    /// Sleep at once.
    Never,
    /// Spin for so many rounds, then sleep.
    Bounded(u32),
    /// Spin while that has lately been faster than sleeping, never if the other side runs on the same CPU.
    #[default]
    Adaptive,
}
