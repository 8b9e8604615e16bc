//! The run-time variables that a policy declares.
//!
//! `let control_fd: u32` declares a number that is determined when the filter is installed; `let fds: u32[4]` declares
//! four of them. Conditions compare arguments with them. A lower-case name may also be an argument of the call;
//! ambiguity is an error.

use std::collections::BTreeMap;
use std::ops::Range;

use tamis_abi::VariableIndex;
use tamis_abi::signature::Width;
use tamis_diag::{Diagnostic, Span};
use tamis_rules::{Operand, Variable, VariableWidth};

use super::ast::Declaration;
use super::names::{Checked, defined_twice};
use super::value::Scope;
use crate::code;
use crate::sink::Sink;

/// The variables declared so far.
#[derive(Default)]
pub(super) struct Variables {
    list: Vec<Variable>,
    names: BTreeMap<String, Named>,
}

/// The declaration of a name.
struct Named {
    span: Span,
    indices: Range<usize>,
    is_set: bool,
}

/// The meaning of a name at its use.
pub(super) enum Use {
    /// A variable.
    One(Operand),
    /// A set of variables.
    Set(Vec<Operand>),
}

impl Variables {
    /// Declares a variable or a set.
    pub(super) fn declare(
        &mut self,
        declaration: &Declaration,
        range: (u64, u64),
        sink: &mut Sink,
    ) {
        let name = &declaration.name;
        if let Some(earlier) = self.names.get(&name.text) {
            sink.report(defined_twice(name, Some(earlier.span)));
            return;
        }
        let count = declaration.count.unwrap_or(1);
        let first = self.list.len();
        let room = (VariableIndex::COUNT - first) as u64;
        if count == 0 || count > room {
            sink.report(
                Diagnostic::error(code::TAMIS_LIMIT, "too many variables, or none")
                    .label(name.span, "")
                    .note(format!(
                        "a policy has at most {} values to bind",
                        VariableIndex::COUNT
                    )),
            );
            return;
        }
        for element in 0..count as u32 {
            self.list.push(Variable {
                name: name.text.as_str().into(),
                element: declaration.count.map(|_| element),
                width: declaration.width,
                range,
            });
        }
        let named = Named {
            span: name.span,
            indices: first..self.list.len(),
            is_set: declaration.count.is_some(),
        };
        self.names.insert(name.text.clone(), named);
    }

    /// The meaning of a name, if it was declared.
    pub(super) fn get(&self, name: &str) -> Option<Use> {
        let named = self.names.get(name)?;
        let operand = |index: usize| {
            let place = VariableIndex::new(index)?;
            Some(self.list[index].operand(place))
        };
        if named.is_set {
            return named
                .indices
                .clone()
                .map(operand)
                .collect::<Option<_>>()
                .map(Use::Set);
        }
        operand(named.indices.start).map(Use::One)
    }

    /// The declared names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// All variables in order.
    pub(super) fn into_list(self) -> Vec<Variable> {
        self.list
    }
}

/// The permitted values of a variable.
pub(super) fn range(declaration: &Declaration, scope: Scope<'_>) -> Checked<(u64, u64)> {
    let width = match declaration.width {
        VariableWidth::U32 => Width::Bits32,
        VariableWidth::U64 => Width::Bits64,
    };
    let Some((first, last)) = &declaration.range else {
        return Ok((0, declaration.width.max()));
    };
    let (low, high) = (
        scope.value(first, width)?.bits,
        scope.value(last, width)?.bits,
    );
    if low > high {
        let diagnostic = Diagnostic::error(code::CONSTANT_CONDITION, "an empty range")
            .label(first.span.to(last.span), "no value lies between them")
            .help("write the smaller bound first");
        return Err(Box::new(diagnostic));
    }
    Ok((low, high))
}
