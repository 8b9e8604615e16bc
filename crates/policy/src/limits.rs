//! Limits of front ends against hostile or mistaken input. Exceeding one is an error.
//!
//! Real policies are two orders of magnitude below each limit.

pub use tamis_diag::limits::{MAX_DIAGNOSTICS, MAX_TOKENS};

/// The most source text of one policy, in bytes, all files together.
pub const MAX_SOURCE_BYTES: usize = 16 << 20;

/// The deepest nesting of brackets, of operators in a condition and of JSON values. The parsers recurse: built without
/// optimisation they need half of a thread's usual stack of 2 MiB here.
pub const MAX_NESTING: usize = 128;

/// The deepest chain of files that include each other; the root counts as the first.
pub const MAX_INCLUDE_DEPTH: usize = 16;

/// The most files that one policy may include, each counted as often as it is included.
pub const MAX_FILES: usize = 1 << 10;

/// The most rules of a ruleset, all architectures together.
pub const MAX_RULES: usize = 1 << 17;

/// The most calls, sets and numbers that the rules of one policy may name.
pub const MAX_TARGETS: usize = 1 << 15;

/// The most tokens of TOML in a matrix of options: those of tables, keys and values, and ends of lines, including those
/// within texts. Its parser takes a hundred bytes or more for each.
pub const MAX_MATRIX_SIGNS: usize = 1 << 17;

/// The most names that `let` and `set` statements may define.
pub const MAX_NAMES: usize = 1 << 15;

/// The most elements of all sets that a policy defines; an element of a nested set counts in each set that contains
/// it.
pub const MAX_SET_ELEMENTS: usize = 1 << 20;
