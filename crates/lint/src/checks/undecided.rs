//! Rules that match calls but never as the first, which two checks report: those that repeat an earlier
//! rule, and the others.

use tamis_prover::Space;

use crate::rules_view::{RuleView, Statement};

/// The statements none of whose rules decides anything although they match something, each with the
/// earlier statement that it repeats, if there is one.
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

/// Whether the statement matches something, and is never the first.
fn is_unreachable(space: &Space, statement: &Statement) -> bool {
    let mut rules = statement.rules.iter();
    rules.clone().any(|rule| rule.can_match(space)) && !rules.any(|rule| rule.can_decide(space))
}

/// The earlier statement that this one repeats on every architecture where it matches anything.
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
