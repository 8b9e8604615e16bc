//! Arguments with values from the conditions of a ruleset: calls that take each alternative.

use tamis_abi::{Nr, SeccompData};
use tamis_profile::Args;
use tamis_rules::{Part, Predicate, Section, Test};

/// The most argument lists per number.
const MAX_LISTS: usize = 64;

/// Argument lists with the values in the conditions of a section's rules for a number; the first is all zero.
pub(crate) fn named(section: &Section, nr: Nr) -> Vec<Args> {
    let zero = SeccompData::default();
    let mut lists = vec![zero.args];
    for rule in &section.rules {
        if !rule.syscalls.contains(nr.0) {
            continue;
        }
        if rule.when == Predicate::True {
            break;
        }
        let choices = choices(&rule.when).min(MAX_LISTS);
        lists.extend((0..choices).map(|choice| with(&rule.when, choice, zero).args));
    }
    lists.truncate(MAX_LISTS);
    lists
}

/// The number of alternatives of a predicate.
fn choices(predicate: &Predicate) -> usize {
    let most = |parts: &[Predicate]| parts.iter().map(choices).max().unwrap_or(1);
    match predicate {
        Predicate::Test(Test::In { set, .. }) => set.intervals().len().max(1),
        Predicate::Any(parts) => most(parts).saturating_mul(parts.len().max(1)),
        Predicate::All(parts) => most(parts),
        Predicate::Not(inner) => choices(inner),
        Predicate::True | Predicate::False | Predicate::Test(_) => 1,
    }
}

/// The call with the values of one alternative.
fn with(predicate: &Predicate, choice: usize, call: SeccompData) -> SeccompData {
    let (operand, value) = match predicate {
        Predicate::True | Predicate::False | Predicate::Test(Test::Between { .. }) => return call,
        Predicate::Not(inner) => return with(inner, choice, call),
        Predicate::All(parts) => {
            let with_part = |call, part| with(part, choice, call);
            return parts.iter().fold(call, with_part);
        }
        Predicate::Any(parts) => {
            return match parts.get(choice % parts.len().max(1)) {
                Some(part) => with(part, choice / parts.len(), call),
                None => call,
            };
        }
        Predicate::Test(
            Test::Compare { operand, value, .. } | Test::Masked { operand, value, .. },
        ) => (operand, *value),
        Predicate::Test(Test::In { operand, set }) => {
            let intervals = set.intervals();
            match intervals.get(choice % intervals.len().max(1)) {
                Some((first, _)) => (operand, *first),
                None => return call,
            }
        }
    };
    let (low, high) = operand.words();
    match operand.part {
        Part::Full => call
            .with_word(low, value as u32)
            .with_word(high, (value >> 32) as u32),
        Part::Low => call.with_word(low, value as u32),
        Part::High => call.with_word(high, value as u32),
    }
}
