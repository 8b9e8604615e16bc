//! The value of a constant expression for one architecture at one width.
//!
//! Arithmetic is on unsigned integers of the width: `~x` inverts that many bits, `-x` is modulo 2^width. A literal
//! or constant with more bits is an error, not truncated.

use tamis_abi::signature::Width;
use tamis_abi::{Action, ActionKind, Arch, consts};
use tamis_diag::{Diagnostic, Span};
use tamis_rules::IntervalSet;

use super::ast::{Answer, Constant, Element, Value, ValueKind, Verb};
use super::names::{Checked, Meaning, Names, suggest_from};
use crate::code;

/// The value of an expression.
#[derive(Clone, Copy)]
pub(super) struct Number {
    /// The value as an unsigned integer of the width.
    pub(super) bits: u64,
    /// Whether it was written as a negative number, which can't be compared by an unsigned order.
    pub(super) negative: bool,
}

/// The scope for resolving names.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    /// The names that the policy defines.
    pub(super) names: &'a Names,
    /// The architecture of kernel constants.
    pub(super) arch: Arch,
}

impl Scope<'_> {
    /// The right-hand side of a `let`.
    pub(super) fn meaning(self, constant: &Constant, width: Width) -> Checked<Meaning> {
        match constant {
            Constant::Set(elements) => self.set(elements, width).map(Meaning::Set),
            // A `let` may give a second name to a set.
            Constant::Value(value) => match self.named_set(value, width) {
                Some(set) => Ok(Meaning::Set(set)),
                None => self.value(value, width).map(Meaning::Value),
            },
        }
    }

    /// The action of an answer.
    pub(super) fn action(self, answer: &Answer) -> Checked<Action> {
        /// `EPERM`, the same number everywhere.
        const EPERM: u16 = 1;
        /// `MAX_ERRNO`: the kernel caps larger values.
        const MAX_ERRNO: u64 = 4095;
        let kind = answer.verb.kind();
        let Some(data) = &answer.data else {
            let data = if answer.verb == Verb::Deny { EPERM } else { 0 };
            return Ok(Action::new(kind, data));
        };
        let number = self.value(data, Width::Bits32)?.bits;
        let max = match kind {
            ActionKind::Errno => MAX_ERRNO,
            _ => u64::from(u16::MAX),
        };
        if number > max {
            return Err(Box::new(
                Diagnostic::error(
                    code::VALUE_DOES_NOT_FIT,
                    format!("{number} is too large for `{}`", answer.verb.word()),
                )
                .label(data.span, format!("at most {max}")),
            ));
        }
        Ok(Action::new(kind, number as u16))
    }

    /// The value of an expression.
    pub(super) fn value(self, value: &Value, width: Width) -> Checked<Number> {
        let max = width.max();
        let plain = |bits| Number {
            bits,
            negative: false,
        };
        match &value.kind {
            ValueKind::Number(number, text) if *number > max => {
                Err(does_not_fit(value.span, &format!("`{text}`"), width))
            }
            ValueKind::Number(number, _) => Ok(plain(*number)),
            ValueKind::Name(name) => self.name(name, value.span, width),
            ValueKind::Negative(inner) => {
                let inner = self.value(inner, width)?.bits;
                if inner > 1 << (width.bits() - 1) {
                    return Err(does_not_fit(value.span, "this negative number", width));
                }
                Ok(Number {
                    bits: inner.wrapping_neg() & max,
                    negative: inner != 0,
                })
            }
            ValueKind::Complement(inner) => Ok(plain(!self.value(inner, width)?.bits & max)),
            ValueKind::Shift(left, right) => {
                let left = self.value(left, width)?.bits;
                let by = self.value(right, width)?.bits;
                let shifted = u128::from(left) << by.min(64);
                match u64::try_from(shifted) {
                    Ok(bits) if bits <= max => Ok(plain(bits)),
                    _ => Err(does_not_fit(value.span, "this shifted value", width)),
                }
            }
            ValueKind::And(operands) => self.fold(operands, width, |a, b| a & b),
            ValueKind::Or(operands) => self.fold(operands, width, |a, b| a | b),
        }
    }

    /// The elements of a set in braces.
    pub(super) fn set(self, elements: &[Element], width: Width) -> Checked<IntervalSet<u64>> {
        let mut ranges = Vec::with_capacity(elements.len());
        for element in elements {
            match element {
                Element::Value(value) => match self.named_set(value, width) {
                    Some(set) => ranges.extend(set.intervals().iter().map(|(a, b)| *a..=*b)),
                    None => {
                        let bits = self.value(value, width)?.bits;
                        ranges.push(bits..=bits);
                    }
                },
                Element::Range(first, last) => {
                    let span = first.span.to(last.span);
                    let (first, last) = (self.value(first, width)?, self.value(last, width)?);
                    if first.bits > last.bits || first.negative != last.negative {
                        return Err(empty_range(span));
                    }
                    ranges.push(first.bits..=last.bits);
                }
            }
        }
        Ok(ranges.into_iter().collect())
    }

    /// The set that a value names, if it is a name and names a set.
    fn named_set(self, value: &Value, width: Width) -> Option<IntervalSet<u64>> {
        let ValueKind::Name(name) = &value.kind else {
            return None;
        };
        match self.names.constant(name, self.arch, width) {
            Some(Ok(Meaning::Set(set))) => Some(set.clone()),
            _ => None,
        }
    }

    fn fold(self, operands: &[Value], width: Width, join: fn(u64, u64) -> u64) -> Checked<Number> {
        let mut bits = None;
        for operand in operands {
            let next = self.value(operand, width)?.bits;
            bits = Some(bits.map_or(next, |before| join(before, next)));
        }
        Ok(Number {
            bits: bits.unwrap_or(0),
            negative: false,
        })
    }

    fn name(self, name: &str, span: Span, width: Width) -> Checked<Number> {
        match self.names.constant(name, self.arch, width) {
            Some(Ok(Meaning::Value(number))) => return Ok(*number),
            Some(Ok(Meaning::Set(_))) => return Err(set_for_value(name, span)),
            Some(Err(diagnostic)) => {
                let mut diagnostic = diagnostic.clone();
                *diagnostic = diagnostic.label(span, "used here");
                return Err(diagnostic);
            }
            None => {}
        }
        let Some(value) = consts::value(self.arch, name) else {
            return Err(self.unknown(name, span));
        };
        let negative = value > i64::MAX as u64;
        let max = width.max();
        let is_small_negative = value >= !(max >> 1);
        if is_small_negative || value <= max {
            let bits = value & max;
            return Ok(Number { bits, negative });
        }
        Err(does_not_fit(span, &format!("`{name}`"), width))
    }

    fn unknown(self, name: &str, span: Span) -> Box<Diagnostic> {
        let arch = self.arch;
        if consts::is_known(name) {
            return Box::new(
                Diagnostic::error(
                    code::UNKNOWN_CONSTANT,
                    format!("`{name}` does not exist on {arch}"),
                )
                .label(span, format!("the rule also applies to {arch}"))
                .help("move the rule to an `on` block for the architectures that have it"),
            );
        }
        let diagnostic =
            Diagnostic::error(code::UNKNOWN_CONSTANT, format!("unknown constant `{name}`"))
                .label(span, "not a constant of the kernel and not defined above");
        let own = self.names.constants();
        let candidates = own.chain(consts::names(arch).map(|name| -> &str { name }));
        Box::new(suggest_from(diagnostic, name, candidates))
    }
}

fn does_not_fit(span: Span, what: &str, width: Width) -> Box<Diagnostic> {
    let bits = width.bits();
    Box::new(
        Diagnostic::error(
            code::VALUE_DOES_NOT_FIT,
            format!("{what} does not fit {bits} bits"),
        )
        .label(span, ""),
    )
}

fn empty_range(span: Span) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::error(
            code::CONSTANT_CONDITION,
            "a range that ends before it begins",
        )
        .label(span, "")
        .note("values are unsigned: negative numbers are the largest"),
    )
}

fn set_for_value(name: &str, span: Span) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::error(code::NOT_A_VALUE, format!("`{name}` is a set of values"))
            .label(span, "one value is expected here")
            .help(format!("test membership: `argument in {name}`")),
    )
}
