//! The rules of a policy as functions: the calls that each matches, and those that it matches first.

use tamis_abi::{Action, ActionKind, Arch};
use tamis_analysis::find;
use tamis_prover::{Function, Limited, Space};
use tamis_rules::{IntervalSet, Origin, Predicate, Rule, Ruleset, Section};

use crate::finding::Place;

/// The return values 1 and 0 as actions, for functions that are conditions.
const YES: Action = Action::new(ActionKind::KillThread, 1);
const NO: Action = Action::new(ActionKind::KillThread, 0);

/// A rule of one section.
pub(crate) struct RuleView<'a> {
    pub(crate) section: &'a Section,
    /// The position in the section.
    pub(crate) index: usize,
    /// 1 for the calls that it matches.
    pub(crate) matches: Function,
    /// 1 for the calls that this rule matches first.
    pub(crate) decides: Function,
}

/// The rules with the same place in the policy: a statement has one rule per architecture.
pub(crate) struct Statement<'a> {
    pub(crate) origin: Option<&'a Origin>,
    pub(crate) rules: Vec<RuleView<'a>>,
}

impl<'a> RuleView<'a> {
    pub(crate) fn rule(&self) -> &'a Rule {
        &self.section.rules[self.index]
    }

    /// Whether some call satisfies the rule.
    pub(crate) fn can_match(&self, space: &Space) -> Limited<bool> {
        holds_somewhere(space, self.matches)
    }

    /// Whether the rule is the first to match some call.
    pub(crate) fn can_decide(&self, space: &Space) -> Limited<bool> {
        holds_somewhere(space, self.decides)
    }
}

impl Statement<'_> {
    /// Its place.
    pub(crate) fn place(&self, label: &str) -> Option<Place> {
        let origin = self.origin?.clone();
        Some(Place::Rule(origin, label.to_owned()))
    }
}

/// The place of a rule.
pub(crate) fn place(rule: &Rule, label: &str) -> Option<Place> {
    let origin = rule.origin.clone()?;
    Some(Place::Rule(origin, label.to_owned()))
}

/// The name of a rule in messages: `rule 3 of x86_64`, or `a rule` if its place is shown.
pub(crate) fn name(rule: &RuleView) -> String {
    match rule.rule().origin {
        Some(_) => "a rule".to_owned(),
        None => format!("rule {} of {}", rule.index + 1, rule.section.arch),
    }
}

/// Whether a condition is 1 for some call.
pub(crate) fn holds_somewhere(space: &Space, condition: Function) -> Limited<bool> {
    let found = find(space, &[condition], &|values| values[0] == 1)?;
    Ok(found.is_some())
}

/// 1 for the calls of the architecture that satisfy a predicate and have one of the numbers.
pub(crate) fn condition(
    space: &mut Space,
    arch: Arch,
    syscalls: &IntervalSet<u32>,
    when: &Predicate,
) -> Limited<Function> {
    let rule = Rule {
        syscalls: syscalls.clone(),
        when: when.clone(),
        action: YES,
        origin: None,
    };
    let section = Section {
        arch,
        rules: vec![rule],
        default: NO,
    };
    let ruleset = Ruleset::new(vec![section], NO).expect("one section");
    space.ruleset(&ruleset)
}

/// The rules of a policy, grouped by statement in the order of the text.
pub(crate) fn statements<'a>(
    space: &mut Space,
    policy: &'a Ruleset,
) -> Limited<Vec<Statement<'a>>> {
    let mut statements: Vec<Statement<'a>> = Vec::new();
    let mut by_origin = std::collections::HashMap::new();
    let never = space.constant(0)?;
    for section in policy.sections() {
        let mut undecided = space.constant(1)?;
        for (index, rule) in section.rules.iter().enumerate() {
            let matches = condition(space, section.arch, &rule.syscalls, &rule.when)?;
            let decides = space.choose(matches, undecided, never)?;
            undecided = space.choose(matches, never, undecided)?;
            let view = RuleView {
                section,
                index,
                matches,
                decides,
            };
            let origin = rule.origin.as_ref();
            let known = origin.and_then(|origin| by_origin.get(origin).copied());
            match known {
                Some(at) => {
                    let statement: &mut Statement = &mut statements[at];
                    statement.rules.push(view);
                }
                None => {
                    if let Some(origin) = origin {
                        by_origin.insert(origin, statements.len());
                    }
                    statements.push(Statement {
                        origin,
                        rules: vec![view],
                    });
                }
            }
        }
    }
    Ok(statements)
}
