//! An item of an expression: a target of the language, which is read by itself, so that what it says stays its own and
//! mistakes have their places in what the user wrote.

use std::ops::Range;

use tamis_diag::{Diagnostic, SourceId, Sources, Span, code};
use tamis_policy::tamis::ast::{StatementKind, Target, TargetKind};
use tamis_policy::tamis::parse_syntax;
use tamis_session::Input;

use crate::cli::Failure;
use crate::cli::load::LoadArgs;

/// What a rule begins with; any action would do.
const ACTION: &str = "notify ";
/// The name of expressions in messages.
const NAME: &str = "-e";

/// A part of an expression.
#[derive(Clone, Debug)]
pub(super) struct Item<'e> {
    expression: &'e str,
    range: Range<usize>,
    /// Whether it is a call of the tables.
    is_known: bool,
}

impl<'e> Item<'e> {
    /// This part, without spaces around it.
    pub(super) fn new(expression: &'e str, range: Range<usize>) -> Item<'e> {
        let text = &expression[range.clone()];
        let start = range.start + (text.len() - text.trim_start().len());
        Item {
            expression,
            range: start..start + text.trim().len(),
            is_known: false,
        }
    }

    /// A call or set that exists.
    pub(super) fn known(call: &'e str) -> Item<'e> {
        Item {
            is_known: true,
            ..Item::new(call, 0..call.len())
        }
    }

    /// Its text.
    pub(super) fn text(&self) -> &'e str {
        &self.expression[self.range.clone()]
    }

    /// Whether it has a condition.
    pub(super) fn is_conditional(&self) -> bool {
        self.text().contains('(')
    }

    /// Makes sure that it is one target and nothing else; its name.
    pub(super) fn checked(&self) -> Result<String, Failure> {
        if self.is_known {
            return Ok(self.text().to_owned());
        }
        let mut sources = Sources::new();
        let source = sources.add(NAME, format!("{ACTION}{}", self.text()));
        let (policy, mistakes) = parse_syntax(&sources, source);
        let mut statements = policy.statements.into_iter();
        let first = statements.next();
        let mistake = mistakes.first().and_then(|mistake| mistake.labels.first());
        let others = statements.next().map(|second| second.span);
        let others = others.into_iter().chain(mistake.map(|label| label.span));
        // What follows a rule that has no mistake.
        let end = first.as_ref().map_or(u32::MAX, |first| first.span.end);
        if let Some(other) = others.filter(|other| other.start >= end).min() {
            let mistake = Diagnostic::error(code::TAMIS_SYNTAX, "an expression has calls alone")
                .label(other, "this is none")
                .help("write a comma, or another `-e`, before other calls");
            return Err(self.failure(vec![mistake]));
        }
        if !mistakes.is_empty() {
            return Err(self.failure(mistakes));
        }
        match first.map(|first| first.kind) {
            Some(StatementKind::Rule(_, targets)) => {
                Ok(targets.first().map_or_else(String::new, name))
            }
            _ => Ok(String::new()),
        }
    }

    /// Makes sure that it means something, for these architectures.
    pub(super) fn load(&self, load: &LoadArgs) -> Result<(), Failure> {
        if self.is_known {
            return Ok(());
        }
        let text = format!("{ACTION}{}\ndefault allow\n", self.text());
        match load.load_input(Input::new(NAME, text)) {
            Ok(_) => Ok(()),
            Err(Failure::Diagnostics(mistakes, _)) => Err(self.failure(mistakes)),
            Err(other) => Err(other),
        }
    }

    /// Mistakes in a text that is the action and this item, as those of the expression.
    fn failure(&self, mut mistakes: Vec<Diagnostic>) -> Failure {
        let mut sources = Sources::new();
        let source = sources.add(NAME, self.expression);
        for mistake in &mut mistakes {
            for label in &mut mistake.labels {
                label.span = self.place(source, label.span);
            }
        }
        Failure::Diagnostics(mistakes, sources)
    }

    /// The place in the expression.
    fn place(&self, source: SourceId, span: Span) -> Span {
        let place = |at: u32| {
            let at = (at as usize).saturating_sub(ACTION.len());
            self.range.start + at.min(self.range.len())
        };
        Span::new(source, place(span.start), place(span.end))
    }
}

/// The words of a target without its condition, as far as they name a call.
fn name(target: &Target) -> String {
    match &target.kind {
        TargetKind::Call(name) | TargetKind::Set(name) => name.text.clone(),
        TargetKind::Numbers(..) => String::new(),
    }
}
