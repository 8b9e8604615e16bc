//! Finds rules that don't affect the meaning of the policy.
//!
//! This is proved: the policy without the rule is the same function. Not reported are denials that repeat the
//! default, which guard against later rules, and rules that never decide, which have separate checks.

use std::collections::BTreeMap;

use crate::code::{LINT_IDLE_RULE, NEVER_MATCHES};
use tamis_abi::{Action, ActionKind, Arch};
use tamis_rules::{Input, Ruleset};

use crate::context::{Context, is_executed};
use crate::finding::Finding;
use crate::registry::{Check, note};
use crate::rules_view::{RuleView, Statement, name, place};
use tamis_analysis::find;
use tamis_prover::{Function, LimitReached, Space};

pub(crate) const CHECK: Check = Check {
    front_end_codes: &[NEVER_MATCHES],
    ..note(
        "idle-rule",
        LINT_IDLE_RULE,
        "the policy is equivalent without a rule",
        run,
    )
};

/// Marks calls that the default decides. The kernel ignores the data of kill_thread, so no policy has this action.
const DEFAULT_MARK: Action = Action::new(ActionKind::KillThread, 0xffff);

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let Some(policy) = context.policy() else {
        return Ok(Vec::new());
    };
    let mut findings = Vec::new();
    let statements = context.statements()?;
    let rests = rests(&mut context.space, &statements)?;
    for statement in statements.iter() {
        if context.kind.keeps(statement.origin) {
            continue;
        }
        let Some((rule, decided)) = deciding(&context.space, statement)? else {
            continue;
        };
        if !is_idle(context, policy, statement, &rests)? {
            continue;
        }
        let deletion = context.kind.deletion();
        let help = match context.kind.has_order() {
            true => format!("move it to where it has an effect, or {deletion}"),
            false => deletion.to_owned(),
        };
        let finding = Finding::new(
            (CHECK.code, CHECK.severity),
            format!("{} has no effect", name(rule)),
            "without it, every call would get the same action from a later rule or the default",
            help,
        );
        let mut later = rule.section.rules[rule.index + 1..].iter();
        let next = later.find(|next| next.matches(&decided.data, &decided.variables));
        let next = next.and_then(|next| place(next, "has the same action"));
        let example = [context.answer(&decided.data)];
        let places = statement.place("has no effect").into_iter().chain(next);
        findings.push(finding.examples(example).places(places));
    }
    Ok(findings)
}

/// The first rule of a statement that decides a call, and the call.
fn deciding<'s, 'a>(
    space: &Space,
    statement: &'s Statement<'a>,
) -> Result<Option<(&'s RuleView<'a>, Input)>, LimitReached> {
    for rule in &statement.rules {
        if let Some(decided) = find(space, &[rule.decides], &|values| values[0] == 1)? {
            return Ok(Some((rule, decided)));
        }
    }
    Ok(None)
}

fn is_idle(
    context: &mut Context,
    policy: &Ruleset,
    statement: &Statement,
    rests: &BTreeMap<(Arch, usize), Function>,
) -> Result<bool, LimitReached> {
    for rule in &statement.rules {
        let action = rule.rule().action.ret();
        let rest = rests[&(rule.section.arch, rule.index)];
        let same = context.space.constant(action)?;
        let without_it = context.space.choose(rule.decides, rest, same)?;
        let differs = |ret: u32| {
            if ret == DEFAULT_MARK.ret() {
                rule.section.default.ret() != action || !is_executed(action)
            } else {
                ret != action
            }
        };
        let found = find(&context.space, &[without_it], &|values| differs(values[0]))?;
        if found.is_some() {
            return Ok(false);
        }
    }
    let without = context.space.ruleset(&without(policy, statement))?;
    Ok(without == context.function)
}

/// The function of the rules after each rule; a mark if none matches.
fn rests(
    space: &mut Space,
    statements: &[Statement],
) -> Result<BTreeMap<(Arch, usize), Function>, LimitReached> {
    let rules = statements.iter().flat_map(|statement| &statement.rules);
    let by_place: BTreeMap<(Arch, usize), &RuleView> = rules
        .map(|rule| ((rule.section.arch, rule.index), rule))
        .collect();
    let mark = space.constant(DEFAULT_MARK.ret())?;
    let mut rests = BTreeMap::new();
    let (mut arch, mut rest) = (None, mark);
    // From the last rule of each section to its first.
    for (place, rule) in by_place.into_iter().rev() {
        if arch != Some(place.0) {
            (arch, rest) = (Some(place.0), mark);
        }
        rests.insert(place, rest);
        let action = space.constant(rule.rule().action.ret())?;
        rest = space.choose(rule.matches, action, rest)?;
    }
    Ok(rests)
}

/// The policy without the rules of a statement.
fn without(policy: &Ruleset, statement: &Statement) -> Ruleset {
    let mut sections = policy.sections().to_vec();
    for section in &mut sections {
        let arch = section.arch;
        let mut index = 0;
        section.rules.retain(|_| {
            let mut removed = statement.rules.iter();
            let is_removed = removed.any(|rule| rule.section.arch == arch && rule.index == index);
            index += 1;
            !is_removed
        });
    }
    Ruleset::new(sections, policy.bad_arch).expect("the architectures are those of the policy")
}
