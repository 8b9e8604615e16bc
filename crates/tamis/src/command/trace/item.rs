//! Items of an expression. Each is parsed alone as a target of the tamis language, so that it can't affect others, and
//! errors are placed in the user's text.

use std::ops::Range;

use tamis_diag::{Diagnostic, Sources};
use tamis_policy::tamis::ast::{StatementKind, Target, TargetKind};
use tamis_policy::tamis::parse_syntax;
use tamis_session::Input;

use crate::cli::Failure;
use crate::cli::fragment::Fragment;
use crate::cli::load::LoadArgs;
use crate::code;

const NAME: &str = "-e";

/// An item of an expression.
#[derive(Clone, Debug)]
pub(super) struct Item<'e> {
    target: Fragment<'e>,
    /// Whether it is a call in the tables.
    is_known: bool,
}

impl<'e> Item<'e> {
    /// The trimmed part of an expression.
    pub(super) fn new(expression: &'e str, range: Range<usize>) -> Item<'e> {
        Item {
            target: Fragment::new(NAME, expression, range),
            is_known: false,
        }
    }

    /// An existing call or set.
    pub(super) fn known(call: &'e str) -> Item<'e> {
        Item {
            is_known: true,
            ..Item::new(call, 0..call.len())
        }
    }

    pub(super) fn text(&self) -> &'e str {
        self.target.text()
    }

    /// Whether it has a condition.
    pub(super) fn is_conditional(&self) -> bool {
        self.text().contains('(')
    }

    /// Checks that the item is exactly one target, and returns its name.
    pub(super) fn checked(&self) -> Result<String, Failure> {
        if self.is_known {
            return Ok(self.text().to_owned());
        }
        let mut sources = Sources::new();
        let source = sources.add(NAME, self.target.statement());
        let (policy, mistakes) = parse_syntax(&sources, source);
        let mut statements = policy.statements.into_iter();
        let first = statements.next();
        let mistake = mistakes.first().and_then(|mistake| mistake.labels.first());
        let others = statements.next().map(|second| second.span);
        let others = others.into_iter().chain(mistake.map(|label| label.span));
        // The text after the first rule without an error.
        let end = first.as_ref().map_or(u32::MAX, |first| first.span.end);
        if let Some(other) = others.filter(|other| other.start >= end).min() {
            let mistake = Diagnostic::error(code::TAMIS_SYNTAX, "an expression has calls alone")
                .label(other, "this is none")
                .help("write a comma, or another `-e`, before other calls");
            return Err(self.target.failure(vec![mistake]));
        }
        if !mistakes.is_empty() {
            return Err(self.target.failure(mistakes));
        }
        match first.map(|first| first.kind) {
            Some(StatementKind::Rule(_, targets)) => {
                Ok(targets.first().map_or_else(String::new, name))
            }
            _ => Ok(String::new()),
        }
    }

    /// Checks that the target exists on these architectures.
    pub(super) fn load(&self, load: &LoadArgs) -> Result<(), Failure> {
        if self.is_known {
            return Ok(());
        }
        let text = self.target.statement() + "\ndefault allow\n";
        match load.load_input(Input::new(NAME, text)) {
            Ok(_) => Ok(()),
            Err(Failure::Diagnostics(mistakes, _)) => Err(self.target.failure(mistakes)),
            Err(other) => Err(other),
        }
    }
}

/// The words of a target before its condition, if they name a call.
fn name(target: &Target) -> String {
    match &target.kind {
        TargetKind::Call(name) | TargetKind::Set(name) => name.text.clone(),
        TargetKind::Numbers(..) => String::new(),
    }
}
