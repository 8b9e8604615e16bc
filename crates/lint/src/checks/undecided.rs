//! Rules that match calls but only after an earlier rule, for two checks: duplicates of an earlier rule, and
//! others.

use tamis_prover::Space;

use crate::rules_view::{RuleView, Statement};

/// The statements that match calls but whose rules decide none, each with the earlier statement that it duplicates,
/// if any.
pub(super) fn undecided<'s, 'a>(
    space: &'s Space,
    statements: &'s [Statement<'a>],
) -> impl Iterator<Item = (&'s Statement<'a>, Option<&'s Statement<'a>>)> {
    let unreachable = statements
        .iter()
        .enumerate()
        .filter(|(_, statement)| is_unreachable(space, statement));
    unreachable
        .map(|(index, statement)| (statement, repeated(space, &statements[..index], statement)))
}

/// Whether the statement matches calls, but only after earlier rules.
fn is_unreachable(space: &Space, statement: &Statement) -> bool {
    let mut rules = statement.rules.iter();
    rules.clone().any(|rule| rule.can_match(space)) && !rules.any(|rule| rule.can_decide(space))
}

/// The earlier statement that this one duplicates on every architecture where it matches calls.
fn repeated<'s, 'a>(
    space: &Space,
    earlier: &'s [Statement<'a>],
    statement: &Statement<'a>,
) -> Option<&'s Statement<'a>> {
    let matching: Vec<&RuleView> = statement
        .rules
        .iter()
        .filter(|rule| rule.can_match(space))
        .collect();
    earlier.iter().find(|first| {
        matching.iter().all(|rule| {
            let mut rules = first.rules.iter();
            rules.any(|other| {
                other.matches == rule.matches && other.rule().action == rule.rule().action
            })
        })
    })
}
