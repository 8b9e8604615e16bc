//! A call for which two subjects differ, as in documents.

use serde::Serialize;
use tamis_abi::Action;
use tamis_rules::Input;

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
    pub(crate) fn new(input: &Input, left: u32, right: u32) -> Witness {
        Witness {
            call: input.describe_briefly(),
            left: Action::from_ret(left).to_string(),
            right: Action::from_ret(right).to_string(),
            left_ret: left,
            right_ret: right,
        }
    }
}
