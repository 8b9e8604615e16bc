//! The probable call for an unknown name.

use tamis_abi::{entry_point, syscall};
use tamis_diag::suggest;

/// The call with this name in the kernel, otherwise the call with the nearest name.
pub(crate) fn nearest_call(typed: &str) -> Option<&'static str> {
    let call = entry_point::call_of(typed).filter(|call| *call != typed);
    call.or_else(|| suggest::nearest(typed, syscall::names()))
}
