//! Whether there is memory for what a function is about to do.
//!
//! Rust ends a process that has no memory. So each function asks first for more than it can need, gives it back, and
//! refuses if there isn't any. What it can need is bounded by the *weight* of a filter: its rules, each with its
//! conditions, on each architecture. Other threads may take the memory in between; nothing prevents that.

use std::hint;

use crate::status::Status;

/// What a rule or a priority of one architecture counts, apart from its conditions, which count one each.
pub(crate) const RULE_WEIGHT: usize = 1;

/// What every function may need; more than the bytes of a program.
const LEAST_BYTES: usize = 1 << 16;

/// What a rule or a condition may need in a tree that grows, in a copy of the tree, or as text.
const BYTES_PER_RULE: usize = 1 << 10;

/// What every compilation may need, and what it may need in addition for each rule or condition.
const COMPILATION_BYTES: usize = 3 << 20;
const COMPILATION_BYTES_PER_RULE: usize = 1 << 11;

/// Asks for the memory to add a rule to calls of this weight, or to copy or print a filter of this weight. Sizes are
/// powers of two: each size that the C library hasn't seen costs a mapping.
pub(crate) fn require(weight: usize) -> Result<(), Status> {
    let size_bytes = LEAST_BYTES.saturating_add(weight.saturating_mul(BYTES_PER_RULE));
    require_bytes(size_bytes.checked_next_power_of_two().unwrap_or(size_bytes))
}

/// Asks for the memory to compile a filter of this weight.
pub(crate) fn require_for_compilation(weight: usize) -> Result<(), Status> {
    let for_rules = weight.saturating_mul(COMPILATION_BYTES_PER_RULE);
    require_bytes(COMPILATION_BYTES.saturating_add(for_rules))
}

fn require_bytes(size_bytes: usize) -> Result<(), Status> {
    let mut memory: Vec<u8> = Vec::new();
    let reserved = memory.try_reserve_exact(size_bytes);
    // Without an observer the compiler removes an allocation that is only given back.
    hint::black_box(&mut memory);
    reserved.map_err(|_| Status::NoMemory)
}
