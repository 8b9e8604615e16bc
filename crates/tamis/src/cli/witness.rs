//! A call for which two subjects differ, as in documents.

use serde::Serialize;
use tamis_abi::{Action, SeccompData, call};

/// A call for which the sides differ.
#[derive(Serialize)]
pub(crate) struct Witness {
    pub(crate) call: String,
    pub(crate) left: String,
    pub(crate) right: String,
    left_ret: u32,
    right_ret: u32,
}

impl Witness {
    /// The call and what the two sides return.
    pub(crate) fn new(data: &SeccompData, left: u32, right: u32) -> Witness {
        Witness {
            call: call::describe_briefly(data),
            left: Action::from_ret(left).to_string(),
            right: Action::from_ret(right).to_string(),
            left_ret: left,
            right_ret: right,
        }
    }
}
