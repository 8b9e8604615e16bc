//! Representations and searches that several passes share.

pub(super) mod chains;
pub(super) mod draft;
pub(super) mod numbers;
pub(super) mod pass_run;
pub(super) mod same_blocks;
pub(super) mod shape;

#[cfg(test)]
pub(super) mod testing;
