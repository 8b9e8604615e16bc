//! What calls allow by one argument alone, for languages that can restrict it and nothing else.

use tamis_abi::Action;

use super::alternatives::{Alternative, Form, Values};
use super::calls::Answers;

/// What an architecture allows of a call whatever the arguments other than this one are.
pub(super) struct Kept {
    /// The values of the argument; `None` for all.
    pub(super) values: Vec<Option<Values>>,
    /// Whether that is all that it allows.
    pub(super) is_all: bool,
    /// The largest value of an argument.
    pub(super) max: u64,
}

impl Kept {
    pub(super) fn of(answers: &Answers<'_>, argument: u8) -> Kept {
        let form = Form {
            is_wide: answers.arch.has_64_bit_registers(),
            max_number: u64::MAX,
            may_cut: true,
            is_explicit: false,
        };
        let mut kept = Kept {
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

    /// Whether it allows this value.
    pub(super) fn allows(&self, value: u64) -> bool {
        let mut values = self.values.iter();
        values.any(|values| values.is_none_or(|values| values.contains(value)))
    }
}

fn values(alternative: &Alternative, argument: u8) -> Option<Values> {
    alternative.get(&argument).copied()
}
