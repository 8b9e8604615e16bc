//! The meaning of the language's parts for languages that share them: definitions, conditions and actions.
//!
//! Such a language parses with [`Parser`](super::parser::Parser) and resolves names here, in the order of its text.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tamis_abi::{Action, Arch, signature, syscall};
use tamis_diag::{Diagnostic, Span};
use tamis_rules::Predicate;

use super::ast::{
    Answer, Condition, ConditionKind, Constant, Element, Name, Operand, OperandName, Set,
    StatementKind, Value, ValueKind,
};
use super::condition::Context;
use super::names::{self, Names};
use super::value::Scope;
use crate::sink::Sink;
use signature::Width;

/// The definitions so far, and the built-in ones.
pub struct Definitions {
    names: Names,
}

impl Definitions {
    /// The built-in definitions, for conditions on these architectures.
    pub fn new(arches: &[Arch]) -> Definitions {
        Definitions {
            names: Names::new(arches),
        }
    }

    /// Adds the definition of a constant; errors are reported.
    pub fn define_constant(&mut self, name: &Name, constant: &Constant, sink: &mut Sink) {
        self.names.define_constant(name, constant, sink);
    }

    /// Adds a `let` or a `set`; `false` for other statements.
    pub fn define(&mut self, statement: &StatementKind, sink: &mut Sink) -> bool {
        match statement {
            StatementKind::Let(name, constant) => self.define_constant(name, constant, sink),
            StatementKind::Set(name, members) => self.names.define_set(name, members, sink),
            _ => return false,
        }
        true
    }

    /// The calls of a set; an unknown one is reported.
    pub fn calls(&self, set: &Name, sink: &mut Sink) -> Option<Arc<BTreeSet<Arc<str>>>> {
        self.names.set(set, sink)
    }

    /// The predicate of a condition on a call, or on calls by number.
    ///
    /// # Errors
    /// If a name is unknown on the architecture, or a value doesn't fit.
    pub fn predicate(
        &self,
        condition: &Condition,
        call: Option<&str>,
        arch: Arch,
    ) -> Result<Predicate, Box<Diagnostic>> {
        let context = Context {
            scope: self.scope(arch),
            call,
            args: call.and_then(signature::args),
        };
        context.predicate(condition)
    }

    /// The action of an answer.
    ///
    /// # Errors
    /// If a name is unknown on the architecture, or a value doesn't fit.
    pub fn action(&self, answer: &Answer, arch: Arch) -> Result<Action, Box<Diagnostic>> {
        self.scope(arch).action(answer)
    }

    /// The value of a constant expression of 32 bits.
    ///
    /// # Errors
    /// If a name is unknown on the architecture, or the value doesn't fit.
    pub fn value(&self, value: &Value, arch: Arch) -> Result<u32, Box<Diagnostic>> {
        let number = self.scope(arch).value(value, Width::Bits32)?;
        Ok(number.bits as u32)
    }

    fn scope(&self, arch: Arch) -> Scope<'_> {
        Scope {
            names: &self.names,
            arch,
        }
    }
}

/// The error for a name that no architecture has as a call; `None` for a call.
pub fn unknown_call(name: &Name) -> Option<Diagnostic> {
    (!syscall::is_known(&name.text)).then(|| names::unknown_call(name))
}

/// The error for a name that is defined twice.
pub fn defined_twice(name: &Name, earlier: Span) -> Diagnostic {
    names::defined_twice(name, Some(earlier))
}

/// Whether a condition tests an argument of a call that no register holds on an architecture: it is in memory, or
/// its place depends on the convention for 64-bit values.
pub fn tests_memory(condition: &Condition, call: &str, arch: Arch) -> bool {
    let args = signature::args(call).unwrap_or_default();
    let mut is_in_memory = false;
    visit_operands(condition, &mut |operand| {
        if let OperandName::Named(name) = &operand.name {
            let is_declared = args.iter().any(|arg| arg.name() == name);
            is_in_memory |= is_declared && signature::index(arch, call, name).is_none();
        }
    });
    is_in_memory
}

/// The named arguments that a condition tests.
pub fn named_arguments(condition: &Condition) -> Vec<String> {
    let mut named = Vec::new();
    visit_operands(condition, &mut |operand| {
        if let OperandName::Named(name) = &operand.name {
            named.push(name.clone());
        }
    });
    named
}

/// A condition with these constants in place of their names.
pub fn with_constants(condition: &Condition, constants: &HashMap<String, Constant>) -> Condition {
    let value = |value: &Value| value_with(value, constants);
    let each = |parts: &[Condition]| {
        parts
            .iter()
            .map(|one| with_constants(one, constants))
            .collect()
    };
    let kind = match &condition.kind {
        kind @ (ConditionKind::Literal(_) | ConditionKind::Between(..)) => kind.clone(),
        ConditionKind::Not(inner) => ConditionKind::Not(Box::new(with_constants(inner, constants))),
        ConditionKind::All(parts) => ConditionKind::All(each(parts)),
        ConditionKind::Any(parts) => ConditionKind::Any(each(parts)),
        ConditionKind::Compare(operand, mask, op, number) => ConditionKind::Compare(
            operand.clone(),
            mask.as_ref().map(value),
            *op,
            value(number),
        ),
        ConditionKind::In(operand, mask, set) => {
            let set = match set {
                Set::Braced(elements, span) => {
                    Set::Braced(elements_with(elements, constants), *span)
                }
                Set::Named(name) => match constants.get(&name.text) {
                    Some(constant) => Set::Braced(constant_with(constant, constants), name.span),
                    None => set.clone(),
                },
            };
            ConditionKind::In(operand.clone(), mask.as_ref().map(value), set)
        }
    };
    Condition {
        kind,
        span: condition.span,
    }
}

fn constant_with(constant: &Constant, constants: &HashMap<String, Constant>) -> Vec<Element> {
    match constant {
        Constant::Value(value) => elements_with(&[Element::Value(value.clone())], constants),
        Constant::Set(elements) => elements_with(elements, constants),
    }
}

fn elements_with(elements: &[Element], constants: &HashMap<String, Constant>) -> Vec<Element> {
    let replaced = elements.iter().flat_map(|element| match element {
        Element::Value(value) => match &value.kind {
            ValueKind::Name(name) if matches!(constants.get(name), Some(Constant::Set(_))) => {
                constant_with(&constants[name], constants)
            }
            _ => vec![Element::Value(value_with(value, constants))],
        },
        Element::Range(first, last) => vec![Element::Range(
            value_with(first, constants),
            value_with(last, constants),
        )],
    });
    replaced.collect()
}

fn value_with(value: &Value, constants: &HashMap<String, Constant>) -> Value {
    let boxed = |inner: &Value| Box::new(value_with(inner, constants));
    let each = |parts: &[Value]| parts.iter().map(|one| value_with(one, constants)).collect();
    let kind = match &value.kind {
        ValueKind::Name(name) => match constants.get(name) {
            Some(Constant::Value(own)) => return value_with(own, constants),
            _ => value.kind.clone(),
        },
        ValueKind::Number(..) => value.kind.clone(),
        ValueKind::Negative(inner) => ValueKind::Negative(boxed(inner)),
        ValueKind::Complement(inner) => ValueKind::Complement(boxed(inner)),
        ValueKind::Shift(left, right) => ValueKind::Shift(boxed(left), boxed(right)),
        ValueKind::And(parts) => ValueKind::And(each(parts)),
        ValueKind::Or(parts) => ValueKind::Or(each(parts)),
    };
    Value {
        kind,
        span: value.span,
    }
}

/// Calls a function with each name of a constant in a definition.
pub fn visit_constants(constant: &Constant, see: &mut dyn FnMut(&str)) {
    match constant {
        Constant::Value(value) => visit_value(value, see),
        Constant::Set(elements) => visit_elements(elements, see),
    }
}

/// Calls a function with each name of a constant in a condition.
pub fn visit_constants_of_condition(condition: &Condition, see: &mut dyn FnMut(&str)) {
    match &condition.kind {
        ConditionKind::Literal(_) | ConditionKind::Between(..) => {}
        ConditionKind::Not(inner) => visit_constants_of_condition(inner, see),
        ConditionKind::All(parts) | ConditionKind::Any(parts) => {
            for part in parts {
                visit_constants_of_condition(part, see);
            }
        }
        ConditionKind::Compare(_, mask, _, value) => {
            mask.iter().for_each(|mask| visit_value(mask, see));
            visit_value(value, see);
        }
        ConditionKind::In(_, mask, set) => {
            mask.iter().for_each(|mask| visit_value(mask, see));
            match set {
                Set::Braced(elements, _) => visit_elements(elements, see),
                Set::Named(name) => see(&name.text),
            }
        }
    }
}

fn visit_elements(elements: &[Element], see: &mut dyn FnMut(&str)) {
    for element in elements {
        match element {
            Element::Value(value) => visit_value(value, see),
            Element::Range(first, last) => {
                visit_value(first, see);
                visit_value(last, see);
            }
        }
    }
}

fn visit_value(value: &Value, see: &mut dyn FnMut(&str)) {
    match &value.kind {
        ValueKind::Number(..) => {}
        ValueKind::Name(name) => see(name),
        ValueKind::Negative(inner) | ValueKind::Complement(inner) => visit_value(inner, see),
        ValueKind::Shift(left, right) => {
            visit_value(left, see);
            visit_value(right, see);
        }
        ValueKind::And(parts) | ValueKind::Or(parts) => {
            for part in parts {
                visit_value(part, see);
            }
        }
    }
}

fn visit_operands(condition: &Condition, see: &mut impl FnMut(&Operand)) {
    match &condition.kind {
        ConditionKind::Literal(_) => {}
        ConditionKind::Not(inner) => visit_operands(inner, see),
        ConditionKind::All(parts) | ConditionKind::Any(parts) => {
            parts.iter().for_each(|part| visit_operands(part, see));
        }
        ConditionKind::Compare(operand, ..) | ConditionKind::In(operand, ..) => see(operand),
        ConditionKind::Between(left, _, right) => {
            see(left);
            see(right);
        }
    }
}
