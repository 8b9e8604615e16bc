//! Rules that match calls but only after an earlier rule, for two checks: duplicates of an earlier rule, and
//! others.

use tamis_prover::{Limited, Space};

use crate::rules_view::{RuleView, Statement};

/// A statement that matches calls without deciding any, and the earlier statement that it duplicates, if there is one.
pub(super) type Undecided<'s, 'a> = (&'s Statement<'a>, Option<&'s Statement<'a>>);

/// All undecided statements.
///
/// # Errors
/// If the search for matched or decided calls reaches a limit.
pub(super) fn undecided<'s, 'a>(
    space: &Space,
    statements: &'s [Statement<'a>],
) -> Limited<Vec<Undecided<'s, 'a>>> {
    let mut found = Vec::new();
    for (index, statement) in statements.iter().enumerate() {
        let matching = matching(space, statement)?;
        if !matching.is_empty() && !decides(space, statement)? {
            found.push((statement, repeated(&statements[..index], &matching)));
        }
    }
    Ok(found)
}

/// The rules of a statement that match calls.
pub(super) fn matching<'s, 'a>(
    space: &Space,
    statement: &'s Statement<'a>,
) -> Limited<Vec<&'s RuleView<'a>>> {
    let mut matching = Vec::new();
    for rule in &statement.rules {
        if rule.can_match(space)? {
            matching.push(rule);
        }
    }
    Ok(matching)
}

/// Whether a rule of the statement is the first to match some call.
fn decides(space: &Space, statement: &Statement) -> Limited<bool> {
    for rule in &statement.rules {
        if rule.can_decide(space)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The earlier statement with all these rules.
fn repeated<'s, 'a>(
    earlier: &'s [Statement<'a>],
    matching: &[&RuleView<'a>],
) -> Option<&'s Statement<'a>> {
    earlier.iter().find(|first| {
        matching.iter().all(|rule| {
            let mut rules = first.rules.iter();
            rules.any(|other| {
                other.matches == rule.matches && other.rule().action == rule.rule().action
            })
        })
    })
}
