//! The checks, one file each, with the same structure: the problem, deliberate exceptions, the row of the registry, and
//! a function from the context to findings.

pub(crate) mod address_families;
pub(crate) mod af_alg;
mod compat_arches;
pub(crate) mod compat_gap;
pub(crate) mod dangerous_calls;
pub(crate) mod dead_code;
pub(crate) mod duplicate_rule;
pub(crate) mod enosys_expected;
pub(crate) mod essential_calls;
pub(crate) mod evadable_restriction;
pub(crate) mod foreign_arch;
pub(crate) mod idle_rule;
pub(crate) mod io_uring;
pub(crate) mod merged_bounds;
pub(crate) mod multiplexer;
mod needs;
pub(crate) mod never_holds;
pub(crate) mod outdated_list;
mod overlap;
pub(crate) mod permissive_default;
pub(crate) mod runtime;
pub(crate) mod shadowed_rule;
pub(crate) mod sign_extension;
pub(crate) mod start_up;
pub(crate) mod target_needs;
pub(crate) mod time64;
pub(crate) mod twins;
pub(crate) mod unchecked_arch;
pub(crate) mod unchecked_argument;
mod undecided;
pub(crate) mod unknown_numbers;
pub(crate) mod unreachable_rule;
mod upper_half;
pub(crate) mod wide_comparison;
pub(crate) mod x32_gap;
