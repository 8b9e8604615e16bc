//! Language features that minijail's library lacks: it parses an older language than the compile tool.

use tamis_diag::{Diagnostic, Span};

use super::ast::{ActionWord, Atom, Filter, Statement, StatementKind};
use crate::code;

/// The first feature of a statement that the library would reject.
pub(super) fn objection(statement: &Statement) -> Option<Diagnostic> {
    let (span, what, help) = match &statement.kind {
        StatementKind::Default(action) => {
            let help = match action.kind {
                ActionWord::Kill => "the library kills calls without a line; delete this line",
                _ => {
                    "another default than `kill` needs the compile tool's dialect: `--dialect python`"
                }
            };
            (statement.span, "`@default`", help)
        }
        StatementKind::Denylist => {
            let help = "deny lists need the compile tool's dialect: `--dialect python`";
            (statement.span, "`@denylist`", help)
        }
        StatementKind::Filters { calls, filters } => {
            let group = calls.brace.map(|brace| {
                let help = "write a line for each of the calls";
                (brace, "a group of calls", help)
            });
            let qualified = || {
                let mut list = calls.list.iter();
                let (span, _) = list.find_map(|call| call.qualifier.as_deref())?;
                let help = "keep a file for each architecture";
                Some((*span, "a qualifier", help))
            };
            let several = || {
                let help = "a line has one condition, optionally with `; return ERRNO`";
                filters
                    .brace
                    .map(|brace| (brace, "a list of filters", help))
            };
            let action = || filters.list.iter().find_map(foreign_action);
            group.or_else(qualified).or_else(several).or_else(action)?
        }
        StatementKind::Include(_) | StatementKind::Frequency(_) => return None,
    };
    let message = format!("minijail's library does not support {what}");
    let diagnostic = Diagnostic::error(code::MINIJAIL_NOT_IN_DIALECT, message);
    Some(diagnostic.label(span, "").help(help))
}

/// An action that is unknown to the library, or is allowed there only after a condition.
fn foreign_action(filter: &Filter) -> Option<(Span, &'static str, &'static str)> {
    let action = filter.action.as_ref()?;
    match action.kind {
        ActionWord::Return(_) => None,
        ActionWord::Allow if filter.condition.is_none() => None,
        _ => Some((
            action.span,
            "this action here",
            "it supports `1` and `return ERRNO`",
        )),
    }
}

/// The first spelling in a statement that the library would reject although it supports the feature: it splits
/// comparisons at spaces. `text` is the text of the statement.
pub(super) fn misspelling(statement: &Statement, text: &str) -> Option<Diagnostic> {
    let StatementKind::Filters { filters, .. } = &statement.kind else {
        return None;
    };
    let of = |span: Span| &text[span.start as usize..span.end as usize];
    let (span, message, help) = filters.list.iter().find_map(|filter| {
        let atoms = filter.condition.iter().flatten().flatten();
        let spaced = atoms.flat_map(|atom| spelling(atom, text)).next();
        let action = filter
            .action
            .as_ref()
            .filter(|action| matches!(action.kind, ActionWord::Allow) && of(action.span) != "1");
        let allow = action.map(|action| {
            let message = format!("minijail's library does not know `{}`", of(action.span));
            (action.span, message, "write `1`")
        });
        spaced.or(allow)
    })?;
    let diagnostic = Diagnostic::error(code::MINIJAIL_NOT_IN_DIALECT, message);
    Some(diagnostic.label(span, "").help(help))
}

/// The spaces in a comparison that the library would reject: each of the three parts must be one word.
fn spelling(atom: &Atom, text: &str) -> Option<(Span, String, &'static str)> {
    let between = |start: u32, end: u32| text[start as usize..end as usize].replace("\\\n", " ");
    let [argument, operator] = atom.left;
    let value = atom.value.span;
    let gaps = [
        between(argument.end, operator.start),
        between(operator.end, value.start),
    ];
    if gaps
        .iter()
        .any(|gap| gap.is_empty() || gap.contains(|c| c != ' '))
    {
        let message = "minijail's library needs spaces around an operator".to_owned();
        return Some((argument.to(value), message, "write `arg0 == 5`"));
    }
    if between(value.start, value.end).contains(char::is_whitespace) {
        let message = "minijail's library reads a constant only up to a space".to_owned();
        return Some((value, message, "write it without spaces: `O_RDWR|O_CREAT`"));
    }
    None
}
