//! Checks for available memory before an operation.
//!
//! Rust aborts the process when an allocation fails. So each function first allocates and releases more than it can
//! need, and fails if that is impossible. The bound derives from the *weight* of a filter: its rules with their
//! conditions, on each architecture. Another thread may take the memory in between; nothing prevents that.

use std::hint;

use crate::status::Status;

/// The weight of a rule or a priority on one architecture; each condition has weight 1 in addition.
pub(crate) const RULE_WEIGHT: usize = 1;

/// The bound for every function; larger than any program.
const LEAST_BYTES: usize = 1 << 16;

/// The bound per rule or condition in a growing tree, in a copy of the tree, or as text.
const BYTES_PER_RULE: usize = 1 << 10;

/// The bound for every compilation, and the addition per rule or condition.
const COMPILATION_BYTES: usize = 3 << 20;
const COMPILATION_BYTES_PER_RULE: usize = 1 << 11;

/// Checks for the memory to add a rule to calls of this weight, or to copy or print a filter of this weight. Sizes are
/// powers of two, because each new size costs the C library a mapping.
pub(crate) fn require(weight: usize) -> Result<(), Status> {
    let size_bytes = LEAST_BYTES.saturating_add(weight.saturating_mul(BYTES_PER_RULE));
    require_bytes(size_bytes.checked_next_power_of_two().unwrap_or(size_bytes))
}

/// Checks for the memory to compile a filter of this weight.
pub(crate) fn require_for_compilation(weight: usize) -> Result<(), Status> {
    let for_rules = weight.saturating_mul(COMPILATION_BYTES_PER_RULE);
    require_bytes(COMPILATION_BYTES.saturating_add(for_rules))
}

fn require_bytes(size_bytes: usize) -> Result<(), Status> {
    let mut memory: Vec<u8> = Vec::new();
    let reserved = memory.try_reserve_exact(size_bytes);
    // Without `black_box` the compiler removes the unused allocation.
    hint::black_box(&mut memory);
    reserved.map_err(|_| Status::NoMemory)
}
