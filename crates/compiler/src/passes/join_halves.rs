//! Make one test of tests of both halves of an argument.
//!
//! # What
//! In a list of requirements, the upper half being one value and a set of values of the lower half become a
//! set of values of the whole.
//!
//! # Before/After
//! ```text
//! all(arg0.high == 0x0, arg0.low < 0x10)  ->  arg0 <= 0xf
//! ```
//!
//! # Why it is sound
//! A value is its two halves.
//!
//! # What it never does
//! It doesn't join halves if the upper one may have several values or the lower one is told by the values
//! that it may not have: the set of whole values would be larger.
//!
//! # Cost
//! Linear.
//!
//! # Prior art
//! The opposite, splitting values, is done by every compiler for classic BPF; conditions that come from such
//! a program have it to undo.

use std::collections::BTreeMap;

use tamis_rules::{IntervalSet, Operand, Part, Predicate, Section, Subject};

use super::shape::{Kind, rewrite_lists, test_of, values};
use super::{Changed, Claim, PassCx, PassInfo, Stage, rewrite_conditions};

/// About this pass.
pub(super) const INFO: PassInfo = PassInfo {
    name: "join-halves",
    summary: "make one test of tests of both halves of an argument",
    stage: Stage::Rules,
    claim: Claim {
        never_longer: true,
        never_slower: false,
    },
};

pub(super) fn run(section: &mut Section, cx: &mut PassCx) -> Changed {
    rewrite_conditions(section, cx, |when| rewrite_lists(when, &join))
}

/// The first tests of the halves of a subject: place and values.
#[derive(Default)]
struct Halves {
    low: Option<(usize, IntervalSet<u64>)>,
    high: Option<(usize, u64)>,
}

fn join(kind: Kind, mut parts: Vec<Predicate>) -> Predicate {
    if kind == Kind::Any {
        return kind.join(parts);
    }
    let mut found: BTreeMap<Subject, Halves> = BTreeMap::new();
    for (place, part) in parts.iter().enumerate() {
        let Predicate::Test(test) = part else {
            continue;
        };
        let Some((operand, set)) = values(test) else {
            continue;
        };
        let halves = found.entry(operand.subject).or_default();
        match (operand.part, set.intervals()) {
            (Part::Low, intervals)
                if halves.low.is_none()
                    && intervals.len() <= gaps(operand, &set).intervals().len() =>
            {
                halves.low = Some((place, set));
            }
            (Part::High, [(value, last)])
                if value == last && *value <= operand.max() && halves.high.is_none() =>
            {
                halves.high = Some((place, *value));
            }
            _ => {}
        }
    }
    for (subject, halves) in found {
        let (Some((low_place, low)), Some((high_place, high))) = (halves.low, halves.high) else {
            continue;
        };
        let operand = Operand {
            subject,
            part: Part::Full,
        };
        let (here, gone) = (low_place.min(high_place), low_place.max(high_place));
        parts[here] = test_of(operand, &placed(high, &low));
        parts[gone] = Predicate::True;
    }
    parts.retain(|part| *part != Predicate::True);
    kind.join(parts)
}

/// The values that an operand has where it is not in the set.
fn gaps(operand: Operand, set: &IntervalSet<u64>) -> IntervalSet<u64> {
    let possible: IntervalSet<u64> = [0..=operand.max()].into_iter().collect();
    possible.difference(set)
}

/// The values with this upper half and one of these lower halves.
fn placed(high: u64, lows: &IntervalSet<u64>) -> IntervalSet<u64> {
    let largest = u64::from(u32::MAX);
    let possible = lows.intersection(&[0..=largest].into_iter().collect());
    let intervals = possible.intervals().iter();
    intervals
        .map(|(first, last)| high << 32 | first..=high << 32 | last)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::RulePass;
    use super::super::testing::check_rules;

    const PASS: RulePass = RulePass {
        info: super::INFO,
        run: super::run,
    };

    #[test]
    fn halves_become_the_whole() {
        check_rules(
            PASS,
            "0 if all(arg0.high == 0x0, arg1 == 0x1, arg0.low < 0x10): allow\n\
             1 if all(arg0.low in {0x1, 0x3}, arg0.high == 0x7): allow\n\
             2 if all(arg0.high == 0x0, arg0.low & 0x80000000 == 0x0): allow",
            "0 if all(arg0 <= 0xf, arg1 == 0x1): allow\n\
             1 if arg0 in {0x700000001, 0x700000003}: allow\n\
             2 if arg0 <= 0x7fffffff: allow",
        );
    }

    #[test]
    fn halves_that_are_not_fixed_or_of_another_argument_stay() {
        let text = "0 if all(arg0.high <= 0x1, arg0.low == 0x1): allow\n\
                    1 if all(arg0.high == 0x1, arg1.low == 0x1): allow\n\
                    2 if any(arg0.high == 0x1, arg0.low == 0x1): allow";
        check_rules(PASS, text, text);
    }
}
