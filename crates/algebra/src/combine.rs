//! The ruleset of a combination, from the rules of its parts.
//!
//! Two ordered lists are crossed: the rule for the first match on both sides is the first match of the pairs in
//! lexicographic order. Pairs whose numbers are disjoint, or were decided before, are left out.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use tamis_abi::{Action, ActionKind, Arch};
use tamis_policy::explicit;
use tamis_rules::{IntervalSet, Predicate, Rule, Ruleset, Section};

use crate::Operation;

/// The most rules of a section of the result.
pub const MAX_RULES: usize = 100_000;

/// The reason why there is no combination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// Nothing denies the calls that minus removes: the first part executes calls by default.
    ExecutingDefault {
        /// The architecture of the calls; `None` for those of architectures without rules.
        arch: Option<Arch>,
        /// The default.
        action: Action,
    },
    /// The result has more than [`MAX_RULES`] rules.
    TooManyRules,
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Impossible::ExecutingDefault { arch, action } => {
                let of = arch.map_or("other architectures", Arch::name);
                write!(
                    f,
                    "the first policy's default for calls of {of} is {action}, which doesn't deny what is removed"
                )
            }
            Impossible::TooManyRules => {
                write!(f, "the result needs more than {MAX_RULES} rules")
            }
        }
    }
}

impl Error for Impossible {}

/// The ruleset of a combination; `others` are in order, the newest last.
///
/// # Errors
/// If minus has no action for the calls that it removes, or the result is too long.
///
/// # Panics
/// Never: no architecture is listed twice.
pub fn combine(
    operation: Operation,
    first: &Ruleset,
    others: &[&Ruleset],
) -> Result<Ruleset, Impossible> {
    let mut others = others.iter();
    others.try_fold(first.clone(), |older, newer| two(operation, &older, newer))
}

/// The ruleset of two parts.
fn two(operation: Operation, older: &Ruleset, newer: &Ruleset) -> Result<Ruleset, Impossible> {
    let mut arches: Vec<Arch> = Vec::new();
    for section in older.sections().iter().chain(newer.sections()) {
        if !arches.contains(&section.arch) {
            arches.push(section.arch);
        }
    }
    let sections = arches.into_iter().map(|arch| {
        let sides = (section(older, arch), section(newer, arch));
        match operation {
            Operation::Overlay => overlaid(&sides.0, &sides.1),
            Operation::Intersect | Operation::Union | Operation::Minus => {
                crossed(operation, &sides.0, &sides.1)
            }
        }
    });
    let sections: Vec<Section> = sections.collect::<Result<_, _>>()?;
    let [bad, newer_bad] = [older.bad_arch, newer.bad_arch];
    check_removal(operation, (None, bad), bad, newer_bad)?;
    let bad_arch = picked(operation, bad, newer_bad, bad).0;
    Ok(Ruleset::new(sections, bad_arch).expect("each architecture is once in the list"))
}

/// The rules of an architecture; without a section all calls have the action for bad architectures.
pub(crate) fn section(ruleset: &Ruleset, arch: Arch) -> Cow<'_, Section> {
    match ruleset.section(arch) {
        Some(section) => Cow::Borrowed(section),
        None => Cow::Owned(Section {
            arch,
            rules: Vec::new(),
            default: ruleset.bad_arch,
        }),
    }
}

/// The explicit rules of the newer part before those of the older one.
fn overlaid(older: &Section, newer: &Section) -> Result<Section, Impossible> {
    let mut rules = explicit::rules(newer);
    rules.extend(older.rules.iter().cloned());
    limited(&rules)?;
    Ok(Section {
        rules,
        ..older.clone()
    })
}

/// The rules of both parts, crossed.
fn crossed(operation: Operation, older: &Section, newer: &Section) -> Result<Section, Impossible> {
    let mut rules = Vec::new();
    let mut open = Section::domain(older.arch);
    for outer in with_default(older) {
        let covered = outer.syscalls.intersection(&open);
        if covered.is_empty() {
            continue;
        }
        let mut left = covered.clone();
        for inner in with_default(newer) {
            let syscalls = inner.syscalls.intersection(&left);
            if syscalls.is_empty() {
                continue;
            }
            let default = (Some(older.arch), older.default);
            check_removal(operation, default, outer.action, inner.action)?;
            let (action, is_newer) = picked(operation, outer.action, inner.action, older.default);
            let origins = match is_newer {
                true => [&inner.origin, &outer.origin],
                false => [&outer.origin, &inner.origin],
            };
            if inner.when == Predicate::True {
                left = left.difference(&syscalls);
            }
            rules.push(Rule {
                syscalls,
                when: both(&outer.when, &inner.when),
                action,
                origin: origins.into_iter().flatten().next().cloned(),
            });
            limited(&rules)?;
        }
        if outer.when == Predicate::True {
            open = open.difference(&covered);
        }
    }
    let default = picked(operation, older.default, newer.default, older.default).0;
    Ok(Section {
        arch: older.arch,
        rules,
        default,
    })
}

/// The rules, and the default as the last one.
fn with_default(section: &Section) -> impl Iterator<Item = Cow<'_, Rule>> {
    let default = Rule {
        syscalls: IntervalSet::full(),
        when: Predicate::True,
        action: section.default,
        origin: None,
    };
    let rules = section.rules.iter().map(Cow::Borrowed);
    rules.chain([Cow::Owned(default)])
}

/// The action of a call from those of the parts, and whether it is the newer part's. `default` is the older
/// part's.
fn picked(operation: Operation, older: Action, newer: Action, default: Action) -> (Action, bool) {
    let is_newer = match operation {
        // A stack begins with the action allow without data.
        Operation::Intersect if older.kind == ActionKind::Allow && newer.kind == older.kind => {
            return (Action::ALLOW, true);
        }
        Operation::Intersect => newer.kind <= older.kind,
        Operation::Union => newer.kind >= older.kind,
        Operation::Minus if older.kind.executes() && newer.kind.executes() => {
            return (default, false);
        }
        Operation::Minus | Operation::Overlay => false,
    };
    match is_newer {
        true => (newer, true),
        false => (older, false),
    }
}

/// Fails if a call would be removed, and nothing denies it.
fn check_removal(
    operation: Operation,
    (arch, default): (Option<Arch>, Action),
    older: Action,
    newer: Action,
) -> Result<(), Impossible> {
    let is_removed =
        operation == Operation::Minus && older.kind.executes() && newer.kind.executes();
    match is_removed && default.kind.executes() {
        true => Err(Impossible::ExecutingDefault {
            arch,
            action: default,
        }),
        false => Ok(()),
    }
}

fn limited(rules: &[Rule]) -> Result<(), Impossible> {
    match rules.len() > MAX_RULES {
        true => Err(Impossible::TooManyRules),
        false => Ok(()),
    }
}

/// The conjunction.
fn both(left: &Predicate, right: &Predicate) -> Predicate {
    match (left, right) {
        (Predicate::True, other) | (other, Predicate::True) => other.clone(),
        (left, right) => Predicate::All(vec![left.clone(), right.clone()]),
    }
}
