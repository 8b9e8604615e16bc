//! A ruleset as gates, translated from its definition.

use tamis_abi::Word;
use tamis_rules::{CmpOp, IntervalSet, Operand, Part, Predicate, Ruleset, Section, Test};

use super::graph::{Gate, Gates};
use super::words::{self, Bits};
use crate::diagram::Limited;

/// The return value of a ruleset.
pub(super) fn returned(gates: &mut Gates, ruleset: &Ruleset) -> Limited<Bits> {
    let nr = words::input(gates, Word::NR)?;
    let arch = words::input(gates, Word::ARCH)?;
    let mut returned = words::constant(ruleset.bad_arch.ret());
    for section in ruleset.sections() {
        let audit = words::constant(section.arch.audit());
        let is_arch = words::equal(gates, &arch, &audit)?;
        let is_own = in_set(gates, &nr, &Section::domain(section.arch))?;
        let applies = gates.and(is_arch, is_own)?;
        let mut answer = words::constant(section.default.ret());
        for rule in section.rules.iter().rev() {
            let number_matches = in_set(gates, &nr, &rule.syscalls)?;
            let holds = predicate(gates, &rule.when)?;
            let matches = gates.and(number_matches, holds)?;
            let action = words::constant(rule.action.ret());
            answer = words::select(gates, matches, &action, &answer)?;
        }
        returned = words::select(gates, applies, &answer, &returned)?;
    }
    Ok(returned)
}

/// The condition that a word is in a set.
pub(super) fn in_set(gates: &mut Gates, word: &Bits, set: &IntervalSet<u32>) -> Limited<Gate> {
    let zero = words::constant(0);
    let intervals = set.intervals().iter();
    let wide = intervals.map(|(first, last)| u64::from(*first)..=u64::from(*last));
    in_wide_set(gates, &[*word, zero], &wide.collect())
}

/// A 64-bit value, the low half first.
type Wide = [Bits; 2];

fn wide_constant(value: u64) -> Wide {
    [value as u32, (value >> 32) as u32].map(words::constant)
}

fn wide_value(gates: &mut Gates, operand: Operand) -> Limited<Wide> {
    let (low, high) = operand.words();
    let zero = words::constant(0);
    Ok(match operand.part {
        Part::Full => [words::input(gates, low)?, words::input(gates, high)?],
        Part::Low => [words::input(gates, low)?, zero],
        Part::High => [words::input(gates, high)?, zero],
    })
}

fn compare(gates: &mut Gates, op: CmpOp, a: &Wide, b: &Wide) -> Limited<Gate> {
    let greater = |gates: &mut Gates, a: &Wide, b: &Wide, tie| {
        let low = words::greater(gates, &a[0], &b[0], tie)?;
        words::greater(gates, &a[1], &b[1], low)
    };
    match op {
        CmpOp::Eq | CmpOp::Ne => {
            let low = words::equal(gates, &a[0], &b[0])?;
            let high = words::equal(gates, &a[1], &b[1])?;
            let equal = gates.and(low, high)?;
            Ok(if op == CmpOp::Eq { equal } else { equal.not() })
        }
        CmpOp::Gt => greater(gates, a, b, Gate::FALSE),
        CmpOp::Ge => greater(gates, a, b, Gate::TRUE),
        CmpOp::Lt => greater(gates, b, a, Gate::FALSE),
        CmpOp::Le => greater(gates, b, a, Gate::TRUE),
    }
}

fn in_wide_set(gates: &mut Gates, value: &Wide, set: &IntervalSet<u64>) -> Limited<Gate> {
    let intervals = set.intervals().iter();
    intervals
        .copied()
        .try_fold(Gate::FALSE, |any, (first, last)| {
            let from = compare(gates, CmpOp::Ge, value, &wide_constant(first))?;
            let until = compare(gates, CmpOp::Le, value, &wide_constant(last))?;
            let inside = gates.and(from, until)?;
            gates.or(any, inside)
        })
}

fn predicate(gates: &mut Gates, when: &Predicate) -> Limited<Gate> {
    match when {
        Predicate::True => Ok(Gate::TRUE),
        Predicate::False => Ok(Gate::FALSE),
        Predicate::Not(inner) => Ok(predicate(gates, inner)?.not()),
        Predicate::All(parts) => parts.iter().try_fold(Gate::TRUE, |all, part| {
            let part = predicate(gates, part)?;
            gates.and(all, part)
        }),
        Predicate::Any(parts) => parts.iter().try_fold(Gate::FALSE, |any, part| {
            let part = predicate(gates, part)?;
            gates.or(any, part)
        }),
        Predicate::Test(test) => holds(gates, test),
    }
}

fn holds(gates: &mut Gates, test: &Test) -> Limited<Gate> {
    match test {
        Test::Compare { operand, op, value } => {
            let left = wide_value(gates, *operand)?;
            compare(gates, *op, &left, &wide_constant(*value))
        }
        Test::Between { left, op, right } => {
            let left = wide_value(gates, *left)?;
            let right = wide_value(gates, *right)?;
            compare(gates, *op, &left, &right)
        }
        Test::In { operand, set } => {
            let value = wide_value(gates, *operand)?;
            in_wide_set(gates, &value, set)
        }
        Test::Masked {
            operand,
            mask,
            value,
        } => {
            let mut masked = wide_value(gates, *operand)?;
            for (bit, gate) in masked.iter_mut().flatten().enumerate() {
                if mask >> bit & 1 == 0 {
                    *gate = Gate::FALSE;
                }
            }
            compare(gates, CmpOp::Eq, &masked, &wide_constant(*value))
        }
    }
}
