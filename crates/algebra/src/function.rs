//! The function of a combination, from the functions of its parts: the other side of the proof.
//!
//! Only the function of an overlay uses rules. The others are compositions of diagrams; for intersect the prover's own
//! function of a stack. Where diagrams reach a limit, the same compositions are gates ([`composed`]).

use tamis_abi::{Action, ActionKind, Arch, syscall};
use tamis_prover::{Composed, Function, Limited, Space, Subject};
use tamis_rules::{IntervalSet, Rule, Ruleset, Section};

use crate::Operation;

/// A part with its function.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) ruleset: &'a Ruleset,
    pub(crate) function: Function,
}

/// The function of the combination; the parts are in order, the newest last.
pub(crate) fn combined(
    space: &mut Space,
    operation: Operation,
    first: Part<'_>,
    others: &[Part<'_>],
) -> Limited<Function> {
    if operation == Operation::Intersect {
        let all: Vec<Function> = std::iter::once(&first)
            .chain(others)
            .map(|part| part.function)
            .collect();
        return space.stack(&all);
    }
    let mut function = first.function;
    for newer in others {
        function = match operation {
            Operation::Union => loosest(space, function, newer.function)?,
            Operation::Minus => removed(space, first.ruleset, function, newer.function)?,
            Operation::Overlay => overlaid(space, function, newer.ruleset)?,
            Operation::Intersect => unreachable!("it is a stack"),
        };
    }
    Ok(function)
}

/// The function of the combination of rulesets, for gates.
pub(crate) fn composed<'a>(
    operation: Operation,
    all: &[&'a Ruleset],
    explicit: &'a [[Ruleset; 2]],
    defaults: &'a Ruleset,
) -> Composed<'a> {
    let mut filters = all
        .iter()
        .map(|own| Composed::Filter(Subject::Ruleset(own)));
    let first = filters.next().expect("there is a first part");
    match operation {
        Operation::Intersect => unreachable!("it is a stack"),
        Operation::Union => filters.fold(first, |older, newer| Composed::Looser {
            older: older.into(),
            newer: newer.into(),
        }),
        Operation::Minus => filters.fold(first, |older, newer| Composed::Without {
            older: older.into(),
            newer: newer.into(),
            removed: Composed::Filter(Subject::Ruleset(defaults)).into(),
        }),
        Operation::Overlay => explicit.iter().fold(first, |older, own| Composed::Agreed {
            two: own.each_ref().map(Subject::Ruleset),
            otherwise: older.into(),
        }),
    }
}

/// The ruleset without rules: its defaults.
pub(crate) fn defaults(ruleset: &Ruleset) -> Ruleset {
    let sections = ruleset.sections().iter().map(|own| Section {
        rules: Vec::new(),
        ..own.clone()
    });
    Ruleset::new(sections.collect(), ruleset.bad_arch).expect("as before")
}

/// The explicit rules of a part with two defaults, which no call without such a rule has in common.
pub(crate) fn explicit(newer: &Ruleset) -> [Ruleset; 2] {
    [Action::ALLOW, Action::KILL_PROCESS].map(|default| {
        let sections = newer.sections().iter().map(|own| Section {
            arch: own.arch,
            rules: own
                .rules
                .iter()
                .filter(|rule| !is_default(own.arch, rule))
                .cloned()
                .collect(),
            default,
        });
        Ruleset::new(sections.collect(), default).expect("as before")
    })
}

/// The condition that a function has an action of these kinds.
fn has_kind(
    space: &mut Space,
    function: Function,
    is_meant: impl Fn(ActionKind) -> bool,
) -> Limited<Function> {
    let mut holds = Function::FALSE;
    for ret in space.values(function) {
        if is_meant(Action::from_ret(ret).kind) {
            let returns = space.returns(function, ret)?;
            holds = space.choose(returns, Function::TRUE, holds)?;
        }
    }
    Ok(holds)
}

/// The older function where its action is looser, else the newer one.
fn loosest(space: &mut Space, older: Function, newer: Function) -> Limited<Function> {
    let mut result = newer;
    for kind in ActionKind::ALL {
        let has = has_kind(space, older, |own| own == kind)?;
        let is_below = has_kind(space, newer, |own| own < kind)?;
        let holds = space.choose(has, is_below, Function::FALSE)?;
        result = space.choose(holds, older, result)?;
    }
    Ok(result)
}

/// The older function, with its default where both execute the call.
fn removed(
    space: &mut Space,
    first: &Ruleset,
    older: Function,
    newer: Function,
) -> Limited<Function> {
    let mut defaults = space.constant(first.bad_arch.ret())?;
    for section in first.sections() {
        let calls = calls(space, section.arch, &Section::domain(section.arch))?;
        let default = space.constant(section.default.ret())?;
        defaults = space.choose(calls, default, defaults)?;
    }
    let older_executes = has_kind(space, older, ActionKind::executes)?;
    let newer_executes = has_kind(space, newer, ActionKind::executes)?;
    let holds = space.choose(older_executes, newer_executes, Function::FALSE)?;
    space.choose(holds, defaults, older)
}

/// The older function below the explicit rules of a newer part, the last rule first.
fn overlaid(space: &mut Space, older: Function, newer: &Ruleset) -> Limited<Function> {
    let mut result = older;
    for own in newer.sections() {
        for rule in own.rules.iter().rev() {
            if is_default(own.arch, rule) {
                continue;
            }
            let numbers = rule.syscalls.intersection(&Section::domain(own.arch));
            let calls = calls(space, own.arch, &numbers)?;
            let when = space.condition(&rule.when)?;
            let holds = space.choose(calls, when, Function::FALSE)?;
            let action = space.constant(rule.action.ret())?;
            result = space.choose(holds, action, result)?;
        }
    }
    Ok(result)
}

/// Whether a rule is a form of the default, found without the code under proof: it matches either all numbers above the
/// table, without a place in the text, or all numbers but those of calls with names.
fn is_default(arch: Arch, rule: &Rule) -> bool {
    let named = || syscall::all(arch).map(|(nr, _)| nr.0);
    let missing = Section::domain(arch).difference(&rule.syscalls);
    match rule.origin {
        Some(_) => missing == named().collect(),
        None => named().max().is_some_and(|last| {
            let later = IntervalSet::from_iter([last.saturating_add(1)..=u32::MAX - 1]);
            missing.intersection(&later).is_empty()
        }),
    }
}

/// The condition that a call is an architecture's and has one of these numbers.
fn calls(space: &mut Space, arch: Arch, numbers: &IntervalSet<u32>) -> Limited<Function> {
    space.calls(&IntervalSet::single(arch.audit()), numbers)
}
