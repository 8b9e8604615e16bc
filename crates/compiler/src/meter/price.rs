//! Prices: the time that the kernel, or an evaluator in user space, takes per counted event, in nanoseconds. `tamis bench --explain-gap` measures
//! them.

/// A predicted instruction in the kernel: the middle of the measured 0.1 to 0.3 ns.
pub const STEP_NS: f64 = 0.2;

/// A mispredicted branch. A random branch, mispredicted every other time, took 3.2 ns.
pub const MISPREDICTION_NS: f64 = 6.4;

/// The time added by running the smallest filter, compared with a bitmap hit.
pub const UNCACHED_NS: f64 = 17.0;

/// The time added by every further filter of a call.
pub const FURTHER_FILTER_NS: f64 = 20.0;

/// An instruction that an evaluator in user space executes: that of the threaded interpreter, to the nearest nanosecond.
pub const USER_STEP_NS: f64 = 1.0;

/// A mispredicted branch in an evaluator in user space, in proportion to its instruction. It was chosen among 0 to 32 by what
/// the filters take that are made with it: see the book on costs.
pub const USER_MISPREDICTION_NS: f64 = 4.0;
