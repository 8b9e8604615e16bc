//! Passes over blocks of instructions, after layout or of a program of another tool.

pub(super) mod drop_implied_branches;
pub(super) mod drop_redundant_loads;
pub(super) mod drop_unreachable;
pub(super) mod drop_unused_results;
pub(super) mod fold_constants;
pub(super) mod join_blocks;
pub(super) mod merge_blocks;
pub(super) mod merge_equal_targets;
pub(super) mod merge_tails;
pub(super) mod skip_known_loads;
pub(super) mod thread_jumps;
