//! The call that an unknown name probably means.

use tamis_abi::{entry_point, syscall};
use tamis_diag::suggest;

/// The call whose function in the kernel has this name, else the call with the nearest name.
pub(crate) fn nearest_call(typed: &str) -> Option<&'static str> {
    entry_point::call_of(typed).or_else(|| suggest::nearest(typed, syscall::names()))
}
