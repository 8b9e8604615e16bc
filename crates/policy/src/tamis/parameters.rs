//! The parameters of a policy: values that the caller selects when the policy is read.
//!
//! `param network: none | full = none` declares one, `when network == full { … }` contains statements for some of its
//! values. The blocks are resolved before anything else is evaluated, so the rest of the front end has neither
//! statement. Values are names without a meaning of their own; numbers known at run time are
//! [variables](super::variables).

use std::collections::BTreeMap;

use tamis_diag::words::joined;
use tamis_diag::{Diagnostic, Span, suggest};

use super::ast::{Guard, Name, Parameter, Statement, StatementKind};
use super::include::Placed;
use super::names::{defined_twice, suggest_from};
use crate::code;
use crate::front_end::ParseOptions;
use crate::option::{LanguageOption, OptionForm};
use crate::sink::Sink;

/// A parameter and the value that the caller selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The name of the parameter.
    pub parameter: String,
    /// The value.
    pub value: String,
}

/// The option `--set`.
pub(super) static SET: LanguageOption = LanguageOption {
    name: "set",
    help: "Select the value of a parameter that the policy declares, such as network=unix",
    default: "the defaults of the policy",
    form: OptionForm::List {
        placeholder: "PARAM=VALUE",
        add: |options: &mut ParseOptions, text| {
            match text {
                None => options.tamis.choices.clear(),
                Some(text) => {
                    let choice = parse(text)?;
                    let is_same = |own: &&Choice| own.parameter == choice.parameter;
                    if options.tamis.choices.iter().any(|own| is_same(&own)) {
                        return Err(format!("`{}` is set twice", choice.parameter));
                    }
                    options.tamis.choices.push(choice);
                }
            }
            Ok(())
        },
    },
};

fn parse(text: &str) -> Result<Choice, String> {
    let (parameter, value) = text
        .split_once('=')
        .ok_or("a parameter is set by its name and a value: `network=unix`")?;
    Ok(Choice {
        parameter: parameter.trim().to_owned(),
        value: value.trim().to_owned(),
    })
}

/// The parameters declared so far.
pub(super) struct Parameters<'a> {
    choices: &'a [Choice],
    declared: BTreeMap<String, Declared>,
}

/// A declared parameter.
struct Declared {
    span: Span,
    values: Vec<String>,
    /// The selected value.
    value: String,
}

impl<'a> Parameters<'a> {
    /// No parameters; the caller's choices are for those to come.
    pub(super) fn new(choices: &'a [Choice]) -> Parameters<'a> {
        Parameters {
            choices,
            declared: BTreeMap::new(),
        }
    }

    /// Declares a parameter, selects a block's statements or none, and keeps other statements.
    pub(super) fn place(&mut self, statement: Statement, sink: &mut Sink) -> Placed<Statement> {
        match statement.kind {
            StatementKind::Include(path) => Placed::Include(path),
            StatementKind::Parameter(parameter) => {
                self.declare(&parameter, sink);
                Placed::Nothing
            }
            StatementKind::When(guard, mut body) => {
                body.retain(|statement| {
                    let is_parameter = matches!(statement.kind, StatementKind::Parameter(_));
                    if is_parameter {
                        sink.report(
                            Diagnostic::error(code::TAMIS_SYNTAX, "a parameter in a block")
                                .label(statement.span, "")
                                .help("declare it before the block"),
                        );
                    }
                    !is_parameter
                });
                match self.selects(&guard, sink) {
                    true => Placed::Block(body),
                    false => Placed::Nothing,
                }
            }
            StatementKind::On(arches, body) => {
                let mut selected = Vec::new();
                self.select(body, &mut selected, sink);
                Placed::Statement(Statement {
                    kind: StatementKind::On(arches, selected),
                    span: statement.span,
                })
            }
            _ => Placed::Statement(statement),
        }
    }

    /// Replaces the `when` blocks in the body of an `on` block by their statements.
    fn select(&self, body: Vec<Statement>, selected: &mut Vec<Statement>, sink: &mut Sink) {
        for statement in body {
            match statement.kind {
                StatementKind::When(guard, body) => {
                    if self.selects(&guard, sink) {
                        self.select(body, selected, sink);
                    }
                }
                _ => selected.push(statement),
            }
        }
    }

    /// Declares a parameter and selects its value.
    fn declare(&mut self, parameter: &Parameter, sink: &mut Sink) {
        let name = &parameter.name;
        if let Some(earlier) = self.declared.get(&name.text) {
            sink.report(defined_twice(name, Some(earlier.span)));
            return;
        }
        let mut values: Vec<&Name> = Vec::new();
        for value in &parameter.values {
            match values.iter().find(|own| own.text == value.text) {
                Some(earlier) => sink.report(defined_twice(value, Some(earlier.span))),
                None => values.push(value),
            }
        }
        let mut declared = Declared {
            span: name.span,
            values: values.iter().map(|own| own.text.clone()).collect(),
            value: parameter.default.text.clone(),
        };
        declared.check(name, &parameter.default, sink);
        let own = |choice: &&Choice| choice.parameter == name.text;
        if let Some(choice) = self.choices.iter().find(own) {
            if declared.values.contains(&choice.value) {
                declared.value.clone_from(&choice.value);
            } else {
                let span = parameter.name.span.to(parameter.default.span);
                let diagnostic = declared.unknown(name, &choice.value);
                sink.report(diagnostic.label(span, "declared here"));
            }
        }
        self.declared.insert(name.text.clone(), declared);
    }

    /// Whether the block with this condition counts.
    fn selects(&self, guard: &Guard, sink: &mut Sink) -> bool {
        let name = &guard.parameter;
        let Some(declared) = self.declared.get(&name.text) else {
            let diagnostic = self.unknown(&name.text).label(name.span, "");
            sink.report(diagnostic.note("a parameter is declared above its use"));
            return false;
        };
        for value in &guard.values {
            declared.check(name, value, sink);
        }
        let is_among = guard.values.iter().any(|own| own.text == declared.value);
        is_among != guard.is_negated
    }

    /// Reports choices for parameters that the policy doesn't declare.
    pub(super) fn finish(&self, sink: &mut Sink) {
        let unknown = |choice: &&Choice| !self.declared.contains_key(&choice.parameter);
        if let Some(choice) = self.choices.iter().find(unknown) {
            sink.report(self.unknown(&choice.parameter));
        }
    }

    /// The error for a parameter that isn't declared.
    fn unknown(&self, name: &str) -> Diagnostic {
        let message = format!("the policy has no parameter `{name}`");
        let diagnostic = Diagnostic::error(code::UNKNOWN_PARAMETER, message);
        if self.declared.is_empty() {
            return diagnostic.note("it declares no parameter by `param`");
        }
        let known = self.declared.keys().map(String::as_str);
        if suggest::nearest(name, known.clone()).is_some() {
            return suggest_from(diagnostic, name, known);
        }
        let forms: Vec<String> = self
            .declared
            .iter()
            .map(|(name, own)| format!("`{name}={}`", own.values.join("|")))
            .collect();
        diagnostic.note(format!("it has {}", joined(&forms, "and")))
    }
}

impl Declared {
    /// Reports a value that the parameter doesn't have.
    fn check(&self, name: &Name, value: &Name, sink: &mut Sink) {
        if !self.values.contains(&value.text) {
            sink.report(self.unknown(name, &value.text).label(value.span, ""));
        }
    }

    /// The error for a value that the parameter doesn't have.
    fn unknown(&self, name: &Name, value: &str) -> Diagnostic {
        let message = format!("`{value}` is not a value of the parameter `{name}`");
        let values: Vec<String> = self.values.iter().map(|own| format!("`{own}`")).collect();
        Diagnostic::error(code::UNKNOWN_PARAMETER_VALUE, message)
            .note(format!("its values are {}", joined(&values, "and")))
    }
}
