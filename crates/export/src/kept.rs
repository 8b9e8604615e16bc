//! The part of a call that depends on a single argument, for languages that can restrict only this argument.

use tamis_abi::Action;

use super::alternatives::{Alternative, Form, Values};
use super::calls::Answers;

/// The values of an argument with which a call is allowed for all values of the other arguments.
pub(super) struct AllowedValues {
    /// The values of the argument; `None` for all.
    pub(super) values: Vec<Option<Values>>,
    /// Whether no further calls are allowed.
    pub(super) is_all: bool,
    /// The largest value of an argument.
    pub(super) max: u64,
}

impl AllowedValues {
    pub(super) fn from_answers(answers: &Answers<'_>, argument: u8) -> AllowedValues {
        let form = Form {
            is_wide: answers.arch.has_64_bit_registers(),
            max_number: u64::MAX,
            may_cut: true,
            is_explicit: false,
        };
        let mut kept = AllowedValues {
            values: Vec::new(),
            is_all: true,
            max: form.max(),
        };
        let allowed = answers.outcomes.iter();
        for (_, when) in allowed.filter(|(action, _)| *action == Action::ALLOW) {
            let Some(found) = when.and_then(|when| form.alternatives(when)) else {
                kept.is_all = false;
                continue;
            };
            kept.is_all &= !found.is_cut;
            for alternative in found.list {
                if alternative.keys().all(|own| *own == argument) {
                    kept.values.push(values(&alternative, argument));
                } else {
                    kept.is_all = false;
                }
            }
        }
        kept
    }

    /// Whether this value is allowed.
    pub(super) fn allows(&self, value: u64) -> bool {
        let mut values = self.values.iter();
        values.any(|values| values.is_none_or(|values| values.contains(value)))
    }
}

fn values(alternative: &Alternative, argument: u8) -> Option<Values> {
    alternative.get(&argument).copied()
}
