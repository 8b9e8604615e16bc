//! Prices: what the kernel takes for what is counted, in nanoseconds. `tamis bench --explain-gap` measures them.

/// A predicted instruction of the kernel: the middle of the measured 0.1 to 0.3 ns.
pub const STEP_NS: f64 = 0.2;

/// A mispredicted branch. A random branch, of which every other is mispredicted, took 3.2 ns.
pub const MISPREDICTION_NS: f64 = 6.4;

/// The time added by running the smallest filter, compared with a bitmap hit.
pub const UNCACHED_NS: f64 = 17.0;

/// The time added by every further filter that a call has to pass.
pub const FURTHER_FILTER_NS: f64 = 20.0;
