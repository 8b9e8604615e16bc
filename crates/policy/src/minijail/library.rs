//! What minijail's library lacks of the language: it reads an older one than the compile tool.

use tamis_diag::{Diagnostic, Span, code};

use super::ast::{ActionKind, Filter, Statement, StatementKind};

/// What the library would not take of a statement.
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

/// An action that the library does not know, or not behind a condition.
fn foreign_action(filter: &Filter) -> Option<(Span, &'static str, &'static str)> {
    let action = filter.action.as_ref()?;
    match action.kind {
        ActionKind::Return(_) => None,
        ActionKind::Allow if filter.condition.is_none() => None,
        _ => Some((
            action.span,
            "this action here",
            "it supports `1`, `allow` and `return ERRNO`",
        )),
    }
}
