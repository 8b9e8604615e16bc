//! From predicates to conditions in the language.
//!
//! A predicate's operands have explicit bits; the language states them only if they differ from the bits that the
//! kernel reads. Comparisons that always or never hold, which the language rejects, become `true` and `false`.

use tamis_abi::signature::{self, Width};
use tamis_abi::{Arch, ArgIndex, Family, family};
use tamis_diag::{SourceId, Sources, Span};
use tamis_rules::{self as rules, CmpOp, IntervalSet, Part, Predicate, Test};

use super::{Style, TamisExportError};
use tamis_policy::tamis::ast::{
    Condition, ConditionKind, Element, Operand, OperandName, Set, Value, ValueKind,
};

/// The language's limit of values in a mask.
const MAX_MASKED_VALUES: usize = 4096;
/// Ranges of up to this many values are listed if each value has a name.
const MAX_NAMED_RANGE: u64 = 8;
/// Smaller numbers are written in decimal.
const MIN_HEXADECIMAL: u64 = 1024;

/// The context of a condition.
#[derive(Clone, Copy)]
struct Context<'a> {
    arch: Arch,
    /// The call, unless it is one by number.
    call: Option<&'a str>,
    style: Style,
    /// An empty span, as the text has no source.
    span: Span,
}

/// The text of a condition in the parentheses after a call.
pub(super) fn text(
    arch: Arch,
    call: Option<&str>,
    when: &Predicate,
    style: Style,
) -> Result<String, TamisExportError> {
    let source: SourceId = Sources::new().add("", "");
    let span = Span::new(source, 0, 0);
    let condition = Context {
        arch,
        call,
        style,
        span,
    }
    .condition(when)?;
    let ConditionKind::All(parts) = &condition.kind else {
        return Ok(condition.to_string());
    };
    // The comma is the loosest "and" and the most readable.
    let parts = parts.iter().map(|part| match part.kind {
        ConditionKind::Any(_) => format!("({part})"),
        _ => part.to_string(),
    });
    Ok(parts.collect::<Vec<_>>().join(", "))
}

impl Context<'_> {
    fn node(self, kind: ConditionKind) -> Condition {
        Condition {
            kind,
            span: self.span,
        }
    }

    fn literal(self, holds: bool) -> Condition {
        self.node(ConditionKind::Literal(holds))
    }

    fn condition(self, predicate: &Predicate) -> Result<Condition, TamisExportError> {
        Ok(match predicate {
            Predicate::True => self.literal(true),
            Predicate::False => self.literal(false),
            Predicate::Not(inner) => return self.not(inner),
            Predicate::All(parts) if parts.is_empty() => self.literal(true),
            Predicate::Any(parts) if parts.is_empty() => self.literal(false),
            Predicate::All(parts) => {
                let parts: Result<Vec<Condition>, TamisExportError> =
                    parts.iter().map(|part| self.condition(part)).collect();
                self.joined(parts?, ConditionKind::All)
            }
            Predicate::Any(parts) => self.any(parts)?,
            Predicate::Test(test) => self.test(test)?,
        })
    }

    fn joined(
        self,
        mut parts: Vec<Condition>,
        join: fn(Vec<Condition>) -> ConditionKind,
    ) -> Condition {
        match parts.len() {
            1 => parts.remove(0),
            _ => self.node(join(parts)),
        }
    }

    fn not(self, inner: &Predicate) -> Result<Condition, TamisExportError> {
        if let Predicate::Test(Test::Masked {
            operand,
            mask,
            value,
        }) = inner
        {
            return self.masked(*operand, *mask, *value, CmpOp::Ne);
        }
        let inner = self.condition(inner)?;
        Ok(self.node(ConditionKind::Not(Box::new(inner))))
    }

    /// A disjunction; tests of the same operand with the same mask become one.
    fn any(self, parts: &[Predicate]) -> Result<Condition, TamisExportError> {
        let masked = |part: &Predicate| match part {
            Predicate::Test(Test::Masked {
                operand,
                mask,
                value,
            }) if value & !mask == 0 && *mask <= (*operand).max() && *mask != 0 => {
                Some((*operand, *mask, *value))
            }
            _ => None,
        };
        let mut conditions = Vec::new();
        let mut at = 0;
        while at < parts.len() {
            let Some((operand, mask, _)) = masked(&parts[at]) else {
                conditions.push(self.condition(&parts[at])?);
                at += 1;
                continue;
            };
            let values: Vec<u64> = parts[at..]
                .iter()
                .map_while(masked)
                .take_while(|(other, other_mask, _)| (*other, *other_mask) == (operand, mask))
                .map(|(.., value)| value)
                .collect();
            at += values.len();
            if values.len() > MAX_MASKED_VALUES {
                return Err(TamisExportError::Values);
            }
            conditions.push(match values.as_slice() {
                [value] => self.masked(operand, mask, *value, CmpOp::Eq)?,
                values => {
                    let written = self.written(operand, mask);
                    let namer = &written.namer;
                    let elements = values.iter().map(|value| namer.masked_value(mask, *value));
                    let set = Set::Braced(elements.map(Element::Value).collect(), self.span);
                    let mask = (!written.is_whole(mask)).then(|| namer.mask(mask));
                    self.node(ConditionKind::In(written.operand, mask, set))
                }
            });
        }
        Ok(self.joined(conditions, ConditionKind::Any))
    }

    fn test(self, test: &Test) -> Result<Condition, TamisExportError> {
        match test {
            Test::Compare { operand, op, value } => Ok(self.compare(*operand, *op, *value)),
            Test::Masked {
                operand,
                mask,
                value,
            } => self.masked(*operand, *mask, *value, CmpOp::Eq),
            Test::In { operand, set } => Ok(self.member(*operand, set)),
            Test::Between { left, op, right } => Ok(self.between(*left, *op, *right)),
        }
    }

    fn compare(self, operand: rules::Operand, op: CmpOp, value: u64) -> Condition {
        let max = operand.max();
        let constant = match op {
            CmpOp::Eq if value > max => Some(false),
            CmpOp::Ne | CmpOp::Lt | CmpOp::Le if value > max => Some(true),
            CmpOp::Gt | CmpOp::Ge if value > max => Some(false),
            CmpOp::Lt if value == 0 => Some(false),
            CmpOp::Ge if value == 0 => Some(true),
            _ => None,
        };
        if let Some(holds) = constant {
            return self.literal(holds);
        }
        let written = self.written(operand, u64::MAX);
        let value = match op {
            CmpOp::Eq | CmpOp::Ne => written.namer.value(value),
            // Negative constants can't be compared by order.
            CmpOp::Lt | CmpOp::Le | CmpOp::Gt | CmpOp::Ge => written.namer.number(value),
        };
        self.node(ConditionKind::Compare(written.operand, None, op, value))
    }

    fn masked(
        self,
        operand: rules::Operand,
        mask: u64,
        value: u64,
        op: CmpOp,
    ) -> Result<Condition, TamisExportError> {
        let is_equal = op == CmpOp::Eq;
        if value & !mask != 0 || value > operand.max() {
            return Ok(self.literal(!is_equal));
        }
        let mask = mask & operand.max();
        if mask == 0 {
            return Ok(self.literal(is_equal));
        }
        let written = self.written(operand, mask);
        let namer = &written.namer;
        if written.is_whole(mask) {
            let value = namer.value(value);
            return Ok(self.node(ConditionKind::Compare(written.operand, None, op, value)));
        }
        // A single bit is compared with 0 instead of itself.
        let (op, value) = match (mask.is_power_of_two() && value == mask, is_equal) {
            (true, true) => (CmpOp::Ne, 0),
            (true, false) => (CmpOp::Eq, 0),
            (false, _) => (op, value),
        };
        let value = namer.masked_value(mask, value);
        let mask = Some(namer.mask(mask));
        Ok(self.node(ConditionKind::Compare(written.operand, mask, op, value)))
    }

    fn member(self, operand: rules::Operand, set: &IntervalSet<u64>) -> Condition {
        let fitting = IntervalSet::from_iter([0..=operand.max()]);
        let set = set.intersection(&fitting);
        if set.is_empty() || set == fitting {
            return self.literal(set == fitting);
        }
        let written = self.written(operand, u64::MAX);
        let namer = &written.namer;
        let mut elements = Vec::new();
        for (first, last) in set.intervals() {
            let names: Option<Vec<Element>> = (last - first < MAX_NAMED_RANGE)
                .then(|| {
                    (*first..=*last)
                        .map(|value| namer.named_element(value))
                        .collect()
                })
                .flatten();
            match names {
                Some(names) => elements.extend(names),
                None if last - first <= 1 => {
                    elements.extend((*first..=*last).map(|value| namer.element(value)));
                }
                None => elements.push(Element::Range(namer.number(*first), namer.number(*last))),
            }
        }
        let set = Set::Braced(elements, self.span);
        self.node(ConditionKind::In(written.operand, None, set))
    }

    /// A comparison of two operands; if their widths differ, the lower halves are compared and the upper half is
    /// tested for 0.
    fn between(self, left: rules::Operand, op: CmpOp, right: rules::Operand) -> Condition {
        let is_full = |operand: rules::Operand| operand.part == Part::Full;
        let half = |operand: rules::Operand, part| rules::Operand { part, ..operand };
        let plain = |left, op, right| {
            self.node(ConditionKind::Between(
                self.written(left, u64::MAX).operand,
                op,
                self.written(right, u64::MAX).operand,
            ))
        };
        if is_full(left) == is_full(right) {
            return plain(left, op, right);
        }
        let wide_is_left = is_full(left);
        let wide = if wide_is_left { left } else { right };
        let narrow = |operand| {
            if is_full(operand) {
                half(operand, Part::Low)
            } else {
                operand
            }
        };
        let low = plain(narrow(left), op, narrow(right));
        let high = half(wide, Part::High);
        // Whether the comparison holds for a wide value above 32 bits.
        let holds_beyond = match op {
            CmpOp::Eq => false,
            CmpOp::Ne => true,
            CmpOp::Gt | CmpOp::Ge => wide_is_left,
            CmpOp::Lt | CmpOp::Le => !wide_is_left,
        };
        if holds_beyond {
            self.node(ConditionKind::Any(vec![
                self.compare(high, CmpOp::Ne, 0),
                low,
            ]))
        } else {
            self.node(ConditionKind::All(vec![
                self.compare(high, CmpOp::Eq, 0),
                low,
            ]))
        }
    }

    /// An operand as written in a test of some of its bits.
    fn written(&self, operand: rules::Operand, mask: u64) -> Written<'_> {
        let (name, width) = match operand.source {
            rules::OperandSource::Ip => (OperandName::Ip, Width::Bits64),
            rules::OperandSource::Arg(index) => (self.argument(index), self.width(index)),
            rules::OperandSource::Variable(index) => {
                let name = format!("var{}", index.index());
                let width = match operand.part {
                    Part::Full => Width::Bits64,
                    Part::Low | Part::High => Width::Bits32,
                };
                (OperandName::Named(name), width)
            }
        };
        let is_implied = match width {
            // If no bits are selected, the others are ignored.
            Width::Bits16 => operand.part == Part::Low && mask <= width.max(),
            Width::Bits32 => operand.part == Part::Low,
            Width::Bits64 => operand.part == Part::Full,
        };
        let is_implied = is_implied && self.style == Style::Named;
        let bits = match operand.part {
            _ if is_implied => width.bits(),
            Part::Full => 64,
            Part::Low | Part::High => 32,
        };
        Written {
            operand: Operand {
                name,
                part: (!is_implied).then_some(operand.part),
                span: self.span,
            },
            namer: self.namer(operand, bits),
        }
    }

    /// The language's default width of comparisons of an argument.
    fn width(self, index: ArgIndex) -> Width {
        match self.call.zip(self.declared(index)) {
            Some((call, declared)) => signature::width(self.arch, call, declared),
            None => Width::of_registers(self.arch),
        }
    }

    /// The name of an argument, or its index if the kernel's name would be ambiguous.
    fn argument(self, index: ArgIndex) -> OperandName {
        let position = OperandName::Indexed(index.index() as u64);
        match self.declared(index) {
            Some(declared) if self.style != Style::Literal => {
                let name = declared.name();
                let digit: Option<usize> = name
                    .strip_prefix("arg")
                    .and_then(|digit| digit.parse().ok());
                match digit {
                    Some(digit) if digit != index.index() => position,
                    _ => OperandName::Named(name.to_owned()),
                }
            }
            _ => position,
        }
    }

    /// The kernel's argument at an index.
    fn declared(self, index: ArgIndex) -> Option<&'static signature::Arg> {
        let call = self.call?;
        signature::args(call)?
            .iter()
            .find(|arg| signature::index(self.arch, call, arg.name()) == Some(index))
    }

    /// Names for the values of an operand compared on this many bits.
    fn namer(&self, operand: rules::Operand, bits: u32) -> Namer<'_> {
        let is_named = self.style != Style::Literal && operand.part != Part::High;
        let arg = match operand.source {
            rules::OperandSource::Arg(index) if is_named => self.declared(index),
            _ => None,
        };
        let of_call = self.call.zip(arg.map(signature::Arg::name));
        Namer {
            context: self,
            bits,
            family: of_call.and_then(|(call, name)| family::for_argument(call, name)),
            is_ioctl: of_call == Some(("ioctl", "cmd")),
            is_mode: arg.is_some_and(signature::Arg::is_mode),
        }
    }
}

/// An operand with the names of its values.
struct Written<'a> {
    operand: Operand,
    namer: Namer<'a>,
}

impl Written<'_> {
    /// Whether a mask is redundant because of the operand's width.
    fn is_whole(&self, mask: u64) -> bool {
        self.operand.part.is_none() && self.namer.bits == 16 && mask == Width::Bits16.max()
    }
}

/// Names for values of one operand.
struct Namer<'a> {
    context: &'a Context<'a>,
    bits: u32,
    family: Option<&'static Family>,
    is_ioctl: bool,
    /// Whether numbers are octal.
    is_mode: bool,
}

impl Namer<'_> {
    /// The constant with a value.
    fn name(&self, value: u64) -> Option<Value> {
        let arch = self.context.arch;
        let name = match self.family {
            Some(family) => family.name(arch, value, self.bits),
            None if self.is_ioctl => family::ioctl(arch, value, self.bits),
            None => None,
        }?;
        Some(self.constant(name))
    }

    fn constant(&self, name: &str) -> Value {
        Value {
            kind: ValueKind::Name(name.to_owned()),
            span: self.context.span,
        }
    }

    /// A value by name, else by the names of its bits, else as a number.
    fn value(&self, value: u64) -> Value {
        self.name(value)
            .or_else(|| self.bits(value))
            .unwrap_or_else(|| self.number(value))
    }

    fn number(&self, value: u64) -> Value {
        let is_decimal = value == 0 || value < MIN_HEXADECIMAL && !self.is_mode;
        match is_decimal {
            true => self.digits(value, value.to_string()),
            false => self.digits_of_bits(value),
        }
    }

    /// A number in a base that shows its bits.
    fn digits_of_bits(&self, value: u64) -> Value {
        let text = match self.is_mode {
            true => format!("{value:#o}"),
            false => format!("{value:#x}"),
        };
        self.digits(value, text)
    }

    fn digits(&self, value: u64, text: String) -> Value {
        Value {
            kind: ValueKind::Number(value, text),
            span: self.context.span,
        }
    }

    /// The constants that combine to a value.
    fn bits(&self, value: u64) -> Option<Value> {
        self.combined(&self.family?.flags(self.context.arch, value, self.bits)?)
    }

    fn combined(&self, names: &[&str]) -> Option<Value> {
        self.or(names.iter().map(|name| self.constant(name)).collect())
    }

    fn or(&self, mut parts: Vec<Value>) -> Option<Value> {
        match parts.len() {
            0 | 1 => parts.pop(),
            _ => Some(Value {
                kind: ValueKind::Or(parts),
                span: self.context.span,
            }),
        }
    }

    /// A value under a mask: a number by name only if the mask includes all of its bits.
    fn masked_value(&self, mask: u64, value: u64) -> Value {
        let mut family = self.family.into_iter();
        if value == 0 {
            return self.number(value);
        }
        match family.all(|own| own.tells_number(mask, value, self.bits)) {
            true => self.value(value),
            false => self.parts(value).unwrap_or_else(|| self.number(value)),
        }
    }

    /// Bits of a mask: those of a number in digits, flags by name.
    fn parts(&self, mask: u64) -> Option<Value> {
        let (number, names) = self.family?.mask(self.context.arch, mask, self.bits)?;
        let number = (number != 0).then(|| self.digits_of_bits(number));
        let names = names.into_iter().map(|name| self.constant(name));
        self.or(number.into_iter().chain(names).collect())
    }

    /// A mask; a mask of most bits is written as the complement of the others.
    fn mask(&self, mask: u64) -> Value {
        let bits = |bits: u64| {
            self.parts(bits)
                .unwrap_or_else(|| self.digits_of_bits(bits))
        };
        let rest = u64::MAX >> (64 - self.bits) & !mask;
        if rest == 0 || rest.count_ones() >= mask.count_ones() {
            return bits(mask);
        }
        Value {
            kind: ValueKind::Complement(Box::new(bits(rest))),
            span: self.context.span,
        }
    }

    fn element(&self, value: u64) -> Element {
        Element::Value(self.value(value))
    }

    fn named_element(&self, value: u64) -> Option<Element> {
        self.name(value)
            .or_else(|| self.bits(value))
            .map(Element::Value)
    }
}
