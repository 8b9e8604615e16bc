//! Checks with resolved names.

use std::collections::HashMap;

use tamis_abi::{Action, Arch, syscall};
use tamis_diag::Span;
use tamis_policy::tamis::ast::{Answer, Condition, Constant};
use tamis_policy::tamis::resolve::{Definitions, tests_memory, with_constants};
use tamis_rules::{IntervalSet, Origin, Predicate};

use crate::ast::Relation;

/// The checks of a file and of the files that it includes, in order.
pub struct Checks {
    /// The checks.
    pub all: Vec<Check>,
    /// The groups.
    pub groups: Vec<Group>,
    pub(crate) definitions: Definitions,
    /// The constants that the checks define, for texts outside of their file.
    pub(crate) constants: HashMap<String, Constant>,
}

/// A group of checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its title.
    pub title: String,
    /// Why its checks matter.
    pub reason: Option<String>,
    /// Where that is described.
    pub sources: Vec<String>,
}

/// A check.
#[derive(Clone, Debug)]
pub struct Check {
    /// Its canonical text: `never allow socket(family == AF_ALG)`.
    pub text: String,
    /// Its place.
    pub origin: Origin,
    /// The span of that place.
    pub span: Span,
    /// The index of its group.
    pub group: Option<usize>,
    /// The architectures that `on` selects; `None` for those of the policy.
    pub arches: Option<Vec<Arch>>,
    /// Its claim.
    pub claim: Claim,
}

/// The claim of a check.
#[derive(Clone, Debug)]
pub enum Claim {
    /// No such call is executed.
    Never {
        /// Whether calls with the same effect count.
        any_way: bool,
        /// The calls.
        targets: Vec<Target>,
    },
    /// Every such call is executed.
    Always(Vec<Target>),
    /// Every such call gets the action.
    Expect(Vec<Target>, Answer),
    /// The policy has this relation to a reference.
    Compare(Relation, String),
    /// The filter has at most so many instructions.
    AtMost(u64),
    /// The kernel need not run the filter for these calls.
    Cached(Vec<&'static str>),
}

/// Calls, possibly under a condition.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its text.
    pub text: String,
    /// The calls.
    pub calls: Calls,
    /// The condition.
    pub when: Option<Condition>,
}

/// The calls of a target.
#[derive(Clone, Debug)]
pub enum Calls {
    /// By name, sorted.
    Named(Vec<&'static str>),
    /// By number, on the only architecture of the check.
    Numbers(IntervalSet<u32>),
}

/// The calls of one number that a target concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Those that satisfy the predicate.
    Where(Predicate),
    /// The condition tests memory, which no filter reads: all of them may be meant.
    InMemory,
    /// The condition has no meaning on the architecture: it lacks a constant.
    Undefined(String),
}

impl Claim {
    /// The targets.
    pub fn targets(&self) -> &[Target] {
        match self {
            Claim::Never { targets, .. } | Claim::Always(targets) | Claim::Expect(targets, _) => {
                targets
            }
            Claim::Compare(..) | Claim::AtMost(_) | Claim::Cached(_) => &[],
        }
    }
}

impl Target {
    /// The names of its calls; empty for calls by number.
    pub(crate) fn names(&self) -> &[&'static str] {
        match &self.calls {
            Calls::Named(names) => names,
            Calls::Numbers(_) => &[],
        }
    }

    /// The calls on an architecture: the name and number of each, or ranges of numbers without a name.
    pub(crate) fn numbers(&self, arch: Arch) -> Vec<(Option<&'static str>, (u32, u32))> {
        match &self.calls {
            Calls::Named(names) => names
                .iter()
                .filter_map(|name| {
                    let nr = syscall::number(arch, name)?.0;
                    Some((Some(*name), (nr, nr)))
                })
                .collect(),
            Calls::Numbers(numbers) => {
                let ranges = numbers.intervals().iter();
                ranges.map(|range| (None, *range)).collect()
            }
        }
    }
}

impl Checks {
    /// The part of the calls with this name that satisfies a target's condition on an architecture.
    pub(crate) fn part(&self, target: &Target, call: Option<&str>, arch: Arch) -> Part {
        match &target.when {
            None => Part::Where(Predicate::True),
            Some(condition) => self.part_where(condition, call, arch),
        }
    }

    /// The same for a condition.
    pub(crate) fn part_where(&self, when: &Condition, call: Option<&str>, arch: Arch) -> Part {
        if call.is_some_and(|call| tests_memory(when, call, arch)) {
            return Part::InMemory;
        }
        match self.definitions.predicate(when, call, arch) {
            Ok(predicate) => Part::Where(predicate),
            Err(diagnostic) => Part::Undefined(diagnostic.message),
        }
    }

    /// The text of a call of a target in the language of policies, without constants that the checks define.
    pub(crate) fn text(
        &self,
        target: &Target,
        name: Option<&str>,
        (first, last): (u32, u32),
    ) -> String {
        let numbers = match first == last {
            true => format!("nr {first}"),
            false => format!("nr {first}..{last}"),
        };
        let call = name.map_or(numbers, str::to_owned);
        match &target.when {
            Some(when) => format!("{call}({})", with_constants(when, &self.constants)),
            None => call,
        }
    }

    /// The action of an expectation on an architecture; `None` if the architecture lacks its constant.
    pub(crate) fn action(&self, answer: &Answer, arch: Arch) -> Option<Action> {
        self.definitions.action(answer, arch).ok()
    }
}
