//! From conditions to predicates: names become argument indices, widths become halves.
//!
//! An argument is compared at the kernel's width on the architecture. `low(x)`, `high(x)` and `full(x)` select other
//! bits. Comparisons are unsigned.
//!
//! Predicates test whole halves. A test of a 16-bit argument becomes tests of the lower half with masks: a range of
//! its values is the union of a few ranges with common upper bits.

use std::ops::Range;

use tamis_abi::signature::{self, Arg, Width};
use tamis_abi::{Arch, ArgIndex};
use tamis_diag::{Diagnostic, Span, suggest};
use tamis_rules::{self as rules, CmpOp, IntervalSet, Part, Predicate, Test};

use super::ast::{Condition, ConditionKind, Name, Operand, OperandName, Set, Value};
use super::names::{Checked, Meaning, suggest_from};
use super::value::{Number, Scope};
use super::variables::Use;
use crate::code;

/// The most values of a set compared with a masked argument, one test each.
const MAX_MASKED_VALUES: u64 = 4096;

/// The context of a condition.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// The scope for resolving names.
    pub(super) scope: Scope<'a>,
    /// The call; absent for calls by number.
    pub(super) call: Option<&'a str>,
    /// Its arguments, if known.
    pub(super) args: Option<&'static [Arg]>,
}

/// An operand with its description in diagnostics.
struct Typed {
    operand: rules::Operand,
    width: Width,
    /// The reason for its width, if it is from the kernel's signature.
    reason: Option<String>,
}

impl Context<'_> {
    fn arch(self) -> Arch {
        self.scope.arch
    }

    /// The predicate of a condition.
    pub(super) fn predicate(self, condition: &Condition) -> Checked<Predicate> {
        match &condition.kind {
            ConditionKind::Literal(true) => Ok(Predicate::True),
            ConditionKind::Literal(false) => Ok(Predicate::False),
            ConditionKind::Not(inner) => Ok(not(self.predicate(inner)?)),
            ConditionKind::All(parts) => self.predicates(parts).map(Predicate::All),
            ConditionKind::Any(parts) => self.predicates(parts).map(Predicate::Any),
            ConditionKind::Compare(left, mask, op, value) => {
                self.compare(condition.span, left, mask.as_ref(), *op, value)
            }
            ConditionKind::Between(left, op, right) => {
                self.between(condition.span, left, *op, right)
            }
            ConditionKind::In(left, mask, set) => self.member(left, mask.as_ref(), set),
        }
    }

    fn predicates(self, parts: &[Condition]) -> Checked<Vec<Predicate>> {
        parts.iter().map(|part| self.predicate(part)).collect()
    }

    fn compare(
        self,
        span: Span,
        left: &Operand,
        mask: Option<&Value>,
        op: CmpOp,
        value: &Value,
    ) -> Checked<Predicate> {
        let typed = self.operand(left)?;
        let number = self.number(&typed, left, value)?;
        let Some(mask) = mask else {
            check_order(span, op, number)?;
            return Ok(typed.compare(op, number.bits));
        };
        let mask_bits = self.number(&typed, left, mask)?.bits;
        let equal = masked(typed.operand, mask_bits, number.bits);
        match op {
            CmpOp::Eq | CmpOp::Ne if number.bits & !mask_bits != 0 => {
                let (value, mask) = (number.bits, mask_bits);
                let diagnostic = constant(span, "a masked argument never equals this value");
                Err(Box::new(diagnostic.note(format!(
                    "{value:#x} has bits outside the mask {mask:#x}"
                ))))
            }
            CmpOp::Eq => Ok(equal),
            CmpOp::Ne => Ok(not(equal)),
            CmpOp::Lt | CmpOp::Le | CmpOp::Gt | CmpOp::Ge => Err(Box::new(
                Diagnostic::error(code::TAMIS_SYNTAX, "an ordered comparison with a mask")
                    .label(span, "")
                    .help("masked arguments are compared with `==`, `!=` and `in`"),
            )),
        }
    }

    fn between(self, span: Span, left: &Operand, op: CmpOp, right: &Operand) -> Checked<Predicate> {
        match (self.variable(left)?, self.variable(right)?) {
            (None, None) => {}
            (None, Some(Use::Set(_))) | (Some(Use::Set(_)), None) => {
                let message = "comparison with a set of variables";
                let diagnostic = Diagnostic::error(code::VARIABLE_USE, message)
                    .label(span, "")
                    .help("test membership with `in`");
                return Err(Box::new(diagnostic));
            }
            (None, Some(variable)) => return self.with_variable(span, left, op, &variable),
            (Some(variable), None) => {
                return self.with_variable(span, right, op.swapped(), &variable);
            }
            (Some(_), Some(_)) => {
                let message = "comparison of two variables";
                let diagnostic = Diagnostic::error(code::VARIABLE_USE, message)
                    .label(span, "")
                    .help("compare an argument of the call with each of them");
                return Err(Box::new(diagnostic));
            }
        }
        let (left_typed, right_typed) = (self.operand(left)?, self.operand(right)?);
        let (left_bits, right_bits) = (left_typed.width.bits(), right_typed.width.bits());
        if left_typed.width == Width::Bits16 || right_typed.width == Width::Bits16 {
            return Err(Box::new(
                Diagnostic::error(
                    code::WIDTHS_DIFFER,
                    "comparison of a 16-bit argument with another argument",
                )
                .label(span, format!("on {}", self.arch()))
                .note("a filter reads arguments in 32-bit halves and cannot truncate both operands")
                .help("compare it with constants, or compare the whole lower half with `low(…)`"),
            ));
        }
        if left_bits != right_bits {
            return Err(Box::new(
                Diagnostic::error(
                    code::WIDTHS_DIFFER,
                    format!("comparison of {left_bits} bits with {right_bits}"),
                )
                .label(span, format!("on {}", self.arch()))
                .help("select the bits with `low(…)`, `high(…)` or `full(…)`"),
            ));
        }
        Ok(Predicate::Test(Test::Between {
            left: left_typed.operand,
            op,
            right: right_typed.operand,
        }))
    }

    fn member(self, left: &Operand, mask: Option<&Value>, set: &Set) -> Checked<Predicate> {
        if let Set::Named(name) = set
            && let Some(variables) = self.scope.names.variables().get(&name.text)
        {
            if mask.is_some() {
                let message = "a masked argument in a set of variables";
                let diagnostic = Diagnostic::error(code::VARIABLE_USE, message)
                    .label(left.span.to(name.span), "")
                    .help("compare the whole argument");
                return Err(Box::new(diagnostic));
            }
            return self.with_variable(name.span, left, CmpOp::Eq, &variables);
        }
        let typed = self.operand(left)?;
        let values = self
            .set(set, typed.width)
            .map_err(|diagnostic| typed.explain(diagnostic, left))?;
        let span = match set {
            Set::Braced(_, span) => *span,
            Set::Named(name) => name.span,
        };
        if values.is_empty() {
            let diagnostic = constant(span, "the set is empty");
            return Err(Box::new(diagnostic));
        }
        let Some(mask) = mask else {
            return typed.member(values, span);
        };
        let mask = self.number(&typed, left, mask)?.bits;
        let count = values
            .intervals()
            .iter()
            .fold(0, |count: u64, (first, last)| {
                count.saturating_add(last - first).saturating_add(1)
            });
        if count > MAX_MASKED_VALUES {
            return Err(too_many_values(span));
        }
        let each = values
            .intervals()
            .iter()
            .flat_map(|(first, last)| *first..=*last);
        Ok(Predicate::Any(
            each.map(|value| masked(typed.operand, mask, value))
                .collect(),
        ))
    }

    /// The variable of an operand, unless the call has an argument with that name.
    fn variable(self, operand: &Operand) -> Checked<Option<Use>> {
        let OperandName::Named(name) = &operand.name else {
            return Ok(None);
        };
        let Some(variable) = self.scope.names.variables().get(name) else {
            return Ok(None);
        };
        let args = self.args.unwrap_or_default();
        if args.iter().any(|arg| arg.name() == name) {
            let diagnostic = Diagnostic::error(
                code::VARIABLE_USE,
                format!("`{name}` is ambiguous: a variable or an argument"),
            )
            .label(operand.span, "")
            .help("rename the variable");
            return Err(Box::new(diagnostic));
        }
        if operand.part.is_some() {
            let diagnostic = Diagnostic::error(code::VARIABLE_USE, "part of a variable")
                .label(operand.span, "")
                .help("compare part of an argument with a variable of 32 bits");
            return Err(Box::new(diagnostic));
        }
        Ok(Some(variable))
    }

    /// A comparison of an argument with a variable, or with each variable of a set.
    fn with_variable(
        self,
        span: Span,
        left: &Operand,
        op: CmpOp,
        variables: &Use,
    ) -> Checked<Predicate> {
        let typed = self.operand(left)?;
        let right = match variables {
            Use::One(variable) => std::slice::from_ref(variable),
            Use::Set(variables) => variables.as_slice(),
        };
        let is_wide = right.iter().any(|variable| variable.part == Part::Full);
        if typed.width == Width::Bits16 || is_wide && typed.width != Width::Bits64 {
            let bits = typed.width.bits();
            let diagnostic = Diagnostic::error(
                code::VARIABLE_USE,
                format!("comparison of a {bits}-bit argument with a wider variable"),
            )
            .label(span, format!("on {}", self.arch()))
            .note(
                "binding fills in one or two 32-bit constants, and can't check that other bits are 0",
            )
            .help(
                "declare the variable as `u32`, or compare `low(…)` or `full(…)` of the argument",
            );
            return Err(Box::new(diagnostic));
        }
        let left = typed.operand;
        let test = |right: &rules::Operand| {
            let right = *right;
            Predicate::Test(Test::Between { left, op, right })
        };
        Ok(match right {
            [variable] => test(variable),
            variables => Predicate::Any(variables.iter().map(test).collect()),
        })
    }

    fn set(self, set: &Set, width: Width) -> Checked<IntervalSet<u64>> {
        let name = match set {
            Set::Braced(elements, _) => return self.scope.set(elements, width),
            Set::Named(name) => name,
        };
        match self.scope.names.constant(&name.text, self.arch(), width) {
            Some(Ok(Meaning::Set(set))) => Ok(set.clone()),
            Some(Err(diagnostic)) => Err(diagnostic.clone()),
            _ => Err(self.no_set(name)),
        }
    }

    fn no_set(self, name: &Name) -> Box<Diagnostic> {
        let message = format!("`{name}` is not a set of values");
        let diagnostic = Diagnostic::error(code::NOT_A_VALUE, message).label(name.span, "");
        let help = match suggest::nearest(&name.text, self.scope.names.variables().names()) {
            Some(variable) => format!("did you mean `{variable}`?"),
            None if name.text.contains(|c: char| c.is_ascii_lowercase()) => {
                format!("declare a set of variables: `let {name}: u32[4]`")
            }
            None => format!("write `in {{{name}}}` or define it: `let {name} = {{…}}`"),
        };
        Box::new(diagnostic.help(help))
    }

    fn number(self, typed: &Typed, operand: &Operand, value: &Value) -> Checked<Number> {
        self.scope
            .value(value, typed.width)
            .map_err(|diagnostic| typed.explain(diagnostic, operand))
    }

    /// Resolves the argument and the selected bits.
    fn operand(self, operand: &Operand) -> Checked<Typed> {
        let index = match &operand.name {
            OperandName::Ip => None,
            OperandName::Indexed(index) => ArgIndex::new(*index as u8),
            OperandName::Named(name) => Some(self.position(name, operand.span)?),
        };
        let source = index.map_or(rules::OperandSource::Ip, rules::OperandSource::Arg);
        let declared = index.and_then(|index| self.declared_at(index));
        let (part, width, reason) = match (operand.part, index) {
            (Some(part @ Part::Full), _) => (part, Width::Bits64, None),
            (Some(part @ (Part::Low | Part::High)), _) => (part, Width::Bits32, None),
            (None, None) => (Part::Full, Width::Bits64, None),
            (None, Some(_)) => {
                let (width, reason) = self.width(declared);
                let part = match width {
                    Width::Bits16 | Width::Bits32 => Part::Low,
                    Width::Bits64 => Part::Full,
                };
                (part, width, Some(reason))
            }
        };
        Ok(Typed {
            operand: rules::Operand { source, part },
            width,
            reason,
        })
    }

    /// The width of an argument in the kernel, and the reason; the argument may be undeclared.
    fn width(self, declared: Option<&Arg>) -> (Width, String) {
        let (arch, call) = (self.arch(), self.call.unwrap_or_default());
        let Some(arg) = declared else {
            let width = Width::of_registers(arch);
            let reason = format!("on {arch} arguments have {} bits", width.bits());
            return (width, reason);
        };
        let width = signature::width(arch, call, arg);
        let reason = format!(
            "on {arch} the kernel reads argument `{}` of `{call}`, a `{}`, as {} bits",
            arg.name(),
            arg.c_type(),
            width.bits(),
        );
        (width, reason)
    }

    /// The kernel's argument at a position on this architecture.
    fn declared_at(self, index: ArgIndex) -> Option<&'static Arg> {
        let call = self.call?;
        let stands_there =
            |arg: &&Arg| signature::index(self.arch(), call, arg.name()) == Some(index);
        self.args?.iter().find(|arg| stands_there(arg))
    }

    /// The position of an argument by its name or by `argN`.
    fn position(self, name: &str, span: Span) -> Checked<ArgIndex> {
        let args = self.args.unwrap_or_default();
        let declared = args.iter().position(|arg| arg.name() == name);
        let numbered = name
            .strip_prefix("arg")
            .and_then(|digit| digit.parse().ok())
            .filter(|index: &u8| name.len() == 4 && *index < 6);
        match (declared, numbered) {
            (Some(declared), Some(numbered)) if declared != usize::from(numbered) => {
                Err(self.ambiguous(name, span, declared, numbered))
            }
            (_, Some(numbered)) => {
                ArgIndex::new(numbered).ok_or_else(|| self.unknown_argument(name, span))
            }
            (Some(_), None) => self
                .call
                .and_then(|call| signature::index(self.arch(), call, name))
                .ok_or_else(|| self.without_place(name, span)),
            (None, None) => Err(self.unknown_argument(name, span)),
        }
    }

    fn without_place(self, name: &str, span: Span) -> Box<Diagnostic> {
        let (call, arch) = (self.call.unwrap_or_default(), self.arch());
        Box::new(
            Diagnostic::error(
                code::UNKNOWN_ARGUMENT,
                format!("`{name}` of `{call}` is not passed in a register of its own on {arch}"),
            )
            .label(span, "")
            .note(
                "32-bit architectures split 64-bit arguments, and some old calls take a pointer to their \
                 arguments, which a filter cannot dereference",
            )
            .help(format!(
                "move the condition to an `on` block without {arch}, or write `arg[N]`"
            )),
        )
    }

    fn ambiguous(self, name: &str, span: Span, declared: usize, index: u8) -> Box<Diagnostic> {
        let call = self.call.unwrap_or_default();
        Box::new(
            Diagnostic::error(
                code::UNKNOWN_ARGUMENT,
                format!("`{name}` of `{call}` is ambiguous: two arguments match"),
            )
            .label(span, "")
            .note(format!(
                "by position from 0 it is `arg[{index}]`, by the kernel's name `arg[{declared}]`"
            ))
            .help(format!("write `arg[{declared}]` or `arg[{index}]`")),
        )
    }

    fn unknown_argument(self, name: &str, span: Span) -> Box<Diagnostic> {
        let Some(call) = self.call else {
            return Box::new(
                Diagnostic::error(
                    code::UNKNOWN_ARGUMENT,
                    format!("`{name}`: arguments of a call given by number have no names"),
                )
                .label(span, "")
                .help("write `arg0` to `arg5`"),
            );
        };
        let diagnostic = Diagnostic::error(
            code::UNKNOWN_ARGUMENT,
            format!("`{call}` has no argument `{name}`"),
        )
        .label(span, "");
        if self.scope.names.variables().get(name).is_some() {
            let note = format!("`{name}` is a variable: compare an argument with it");
            return Box::new(diagnostic.note(note));
        }
        let names: Vec<&str> = self
            .args
            .unwrap_or_default()
            .iter()
            .map(Arg::name)
            .collect();
        let diagnostic = match names.as_slice() {
            [] => diagnostic.note(format!("no argument names are known for `{call}`")),
            names => diagnostic.note(format!("its arguments are {}", names.join(", "))),
        };
        Box::new(suggest_from(
            diagnostic,
            name,
            names
                .iter()
                .copied()
                .chain(["ip"])
                .chain(self.scope.names.variables().names()),
        ))
    }
}

impl Typed {
    /// `operand op value`, on the selected bits.
    fn compare(&self, op: CmpOp, value: u64) -> Predicate {
        if self.width != Width::Bits16 {
            return Predicate::compare(self.operand, op, value);
        }
        let max = self.width.max();
        let range = match op {
            CmpOp::Eq => return masked(self.operand, max, value),
            CmpOp::Ne => return not(masked(self.operand, max, value)),
            CmpOp::Lt => 0..value,
            CmpOp::Le => 0..value + 1,
            CmpOp::Gt => value + 1..max + 1,
            CmpOp::Ge => value..max + 1,
        };
        Predicate::Any(self.blocks(range).collect())
    }

    /// Membership, on the selected bits.
    fn member(&self, set: IntervalSet<u64>, span: Span) -> Checked<Predicate> {
        let operand = self.operand;
        if self.width != Width::Bits16 {
            return Ok(Predicate::Test(Test::In { operand, set }));
        }
        let ranges = set
            .intervals()
            .iter()
            .map(|(first, last)| *first..*last + 1);
        let blocks: Vec<Predicate> = ranges.flat_map(|range| self.blocks(range)).collect();
        if blocks.len() as u64 > MAX_MASKED_VALUES {
            return Err(too_many_values(span));
        }
        Ok(Predicate::Any(blocks))
    }

    /// The values of a range of a 16-bit argument, as the fewest tests of its upper bits.
    fn blocks(&self, mut range: Range<u64>) -> impl Iterator<Item = Predicate> {
        let (operand, max) = (self.operand, self.width.max());
        std::iter::from_fn(move || {
            let fitting = range.end.checked_sub(range.start)?.checked_ilog2()?;
            let size = 1 << range.start.trailing_zeros().min(fitting);
            let block = masked(operand, max & !(size - 1), range.start);
            range.start += size;
            Some(block)
        })
    }

    /// Adds the reason for the operand's width to an error about a value.
    fn explain(&self, mut diagnostic: Box<Diagnostic>, operand: &Operand) -> Box<Diagnostic> {
        if let Some(reason) = &self.reason
            && diagnostic.code == code::VALUE_DOES_NOT_FIT
        {
            *diagnostic = diagnostic.note(reason.as_str());
            if let OperandName::Named(name) = &operand.name {
                *diagnostic = diagnostic.help(match self.width {
                    Width::Bits16 => format!("compare 32 bits with `low({name})`"),
                    Width::Bits32 | Width::Bits64 => {
                        format!("compare all 64 bits with `full({name})`")
                    }
                });
            }
        }
        diagnostic
    }
}

fn not(predicate: Predicate) -> Predicate {
    Predicate::Not(Box::new(predicate))
}

/// `operand & mask == value`; never holds if the value has bits outside the mask.
fn masked(operand: rules::Operand, mask: u64, value: u64) -> Predicate {
    Predicate::Test(Test::Masked {
        operand,
        mask,
        value,
    })
}

fn too_many_values(span: Span) -> Box<Diagnostic> {
    let message = format!("a masked argument in a set of more than {MAX_MASKED_VALUES} values");
    Box::new(
        Diagnostic::error(code::TAMIS_LIMIT, message)
            .label(span, "")
            .note("a 16-bit argument already has a mask")
            .help("compare the bits with a separate mask"),
    )
}

/// Rejects misleading comparisons.
fn check_order(span: Span, op: CmpOp, number: Number) -> Checked<()> {
    let diagnostic = match op {
        CmpOp::Lt if number.bits == 0 => constant(span, "this is always false"),
        CmpOp::Ge if number.bits == 0 => constant(span, "this is always true"),
        CmpOp::Lt | CmpOp::Le | CmpOp::Gt | CmpOp::Ge if number.negative => {
            constant(span, "ordered comparison with a negative number").help(format!(
                "write the unsigned value, {:#x}, if this is intended",
                number.bits
            ))
        }
        _ => return Ok(()),
    };
    Err(Box::new(diagnostic.note("comparisons are unsigned")))
}

fn constant(span: Span, message: &str) -> Diagnostic {
    Diagnostic::error(code::CONSTANT_CONDITION, message).label(span, "")
}
