//! Language features that minijail's library lacks: it parses an older language than the compile tool.

use tamis_diag::{Diagnostic, Span, code};

use super::ast::{ActionWord, Filter, Statement, StatementKind};

/// The first feature of a statement that the library would reject.
pub(super) fn objection(statement: &Statement) -> Option<Diagnostic> {
    let (span, what, help) = match &statement.kind {
        StatementKind::Default(_) => {
            let help = "the library kills calls without a line; delete this line";
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
                let (span, _) = list.find_map(|call| call.qualifier.as_ref())?;
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
            "it supports `1`, `allow` and `return ERRNO`",
        )),
    }
}
