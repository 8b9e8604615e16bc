//! The decompiler: from a function to a readable ruleset.
//!
//! Every group of numbers with the same function becomes one rule per action, the last one for the rest; calls
//! whose arguments don't matter become one rule per action. Defaults are chosen to minimise the listed calls. The
//! ruleset is equivalent to the function. This is checked at the end: a difference would be a bug of this module,
//! and then there is no ruleset.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

use tamis_abi::{Action, Arch, syscall};
use tamis_prover::{Function, LimitReached, Space, View};
use tamis_rules::{IntervalSet, Predicate, Rule, Ruleset, Section};

use crate::cases::{CaseLimits, Group, Machine, calls_in, groups, outcomes};
use crate::condition::{Conditions, CostedPredicate};

/// The reason why there is no ruleset for a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecompilable {
    /// The space is full.
    Limit(LimitReached),
    /// There are more cases than [`CaseLimits`] allow.
    TooManyCases,
    /// Calls of these foreign architectures don't all have the same action, which a ruleset requires.
    ForeignArches(IntervalSet<u32>),
    /// It returns a value that is not an action with data.
    NotAnAction(u32),
    /// The condition of this call exceeds [`CaseLimits`], or compares the number or the architecture with an
    /// argument.
    Condition {
        /// The architecture of the call.
        arch: Arch,
        /// Its number.
        nr: u32,
    },
    /// The resulting ruleset has another meaning: a bug of the decompiler.
    Refuted,
}

impl fmt::Display for Undecompilable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undecompilable::Limit(limit) => limit.fmt(f),
            Undecompilable::TooManyCases => f.write_str("it distinguishes too many cases"),
            Undecompilable::ForeignArches(_) => {
                f.write_str("it does not return one action for all calls of foreign architectures")
            }
            Undecompilable::NotAnAction(ret) => {
                write!(f, "it returns {ret:#x}, which is not an action")
            }
            Undecompilable::Condition { arch, nr } => write!(
                f,
                "condition on system-call number {nr} of {arch} too complex to express as rules"
            ),
            Undecompilable::Refuted => f.write_str("the decompiled policy is not equivalent"),
        }
    }
}

impl Error for Undecompilable {}

impl From<LimitReached> for Undecompilable {
    fn from(limit: LimitReached) -> Undecompilable {
        Undecompilable::Limit(limit)
    }
}

/// The actions of calls that no rule lists.
#[derive(Clone, Copy)]
struct Fallbacks {
    default: u32,
    /// The action for numbers without a name, if it isn't the default.
    unknown: Option<u32>,
}

/// This function for calls of these architectures, and `ret` for all others.
///
/// # Errors
/// If the space is full.
pub fn narrowed(
    space: &mut Space,
    function: Function,
    arches: &[Arch],
    ret: u32,
) -> Result<Function, LimitReached> {
    let mut narrowed = space.constant(ret)?;
    for arch in arches {
        let calls = calls_in(space, &Machine::Known(*arch), &Section::domain(*arch))?;
        narrowed = space.choose(calls, function, narrowed)?;
    }
    Ok(narrowed)
}

/// A ruleset equivalent to the function.
///
/// Rules for the same numbers are consecutive; rules for different numbers are disjoint. Architectures that are
/// treated like most audit values have no section.
///
/// # Errors
/// If no ruleset is equivalent, or it would be too long.
pub fn decompile(
    space: &mut Space,
    function: Function,
    limits: &CaseLimits,
) -> Result<Ruleset, Undecompilable> {
    let (groups, is_complete) = groups(space, function, limits);
    if !is_complete {
        return Err(Undecompilable::TooManyCases);
    }
    let bad_arch = answer_to_foreign(space, &groups)?;
    let mut conditions = Conditions::new(limits);
    let mut sections = Vec::new();
    for arch in Arch::all() {
        let own = |group: &&Group| group.machine == Machine::Known(arch);
        let groups: Vec<&Group> = groups.iter().filter(own).collect();
        let all_bad = |group: &&Group| leaf_value(space, group.node) == Some(bad_arch.ret());
        if !groups.iter().all(all_bad) {
            sections.push(decompiled_section(
                space,
                &mut conditions,
                limits,
                arch,
                &groups,
            )?);
        }
    }
    let Ok(ruleset) = Ruleset::new(sections, bad_arch) else {
        unreachable!("every architecture comes once");
    };
    if space.ruleset(&ruleset)? != function {
        return Err(Undecompilable::Refuted);
    }
    Ok(ruleset)
}

/// The action for calls of architectures without a section.
fn answer_to_foreign(space: &Space, groups: &[Group]) -> Result<Action, Undecompilable> {
    let mut answer = None;
    for group in groups {
        let Machine::Other(audits) = &group.machine else {
            continue;
        };
        let ret = leaf_value(space, group.node);
        match (ret, answer) {
            (Some(ret), None) => answer = Some(ret),
            (Some(ret), Some(answer)) if ret == answer => {}
            _ => return Err(Undecompilable::ForeignArches(audits.clone())),
        }
    }
    // Without foreign architectures the action is never used.
    action(answer.unwrap_or(Action::KILL_PROCESS.ret()))
}

fn decompiled_section(
    space: &mut Space,
    conditions: &mut Conditions,
    limits: &CaseLimits,
    arch: Arch,
    groups: &[&Group],
) -> Result<Section, Undecompilable> {
    let mut constant: BTreeMap<u32, IntervalSet<u32>> = BTreeMap::new();
    for group in groups {
        if let Some(ret) = leaf_value(space, group.node) {
            constant.insert(ret, group.numbers.clone());
        }
    }
    let named: IntervalSet<u32> = syscall::all(arch).map(|(nr, _)| nr.0).collect();
    let unnamed = Section::domain(arch).difference(&named);
    let fallbacks = fallbacks(&constant, &named, &unnamed);
    let mut rules = Vec::new();
    for group in groups {
        if leaf_value(space, group.node).is_some() {
            continue;
        }
        let rest = conditional(
            space, conditions, limits, arch, group, fallbacks, &mut rules,
        )?;
        // The default doesn't apply to numbers without a name if these have their own action.
        let listed = match fallbacks.unknown {
            None if rest == fallbacks.default => continue,
            Some(_) if rest == fallbacks.default => group.numbers.intersection(&unnamed),
            _ => group.numbers.clone(),
        };
        push(&mut rules, listed, Predicate::True, rest)?;
    }
    // Calls that are allowed first.
    let precedence = |ret: &u32| std::cmp::Reverse(Action::precedence(*ret));
    let mut answers: Vec<u32> = constant.keys().copied().collect();
    answers.sort_by_key(|ret| (precedence(ret), *ret));
    for ret in answers {
        let all = &constant[&ret];
        let listed = if ret == fallbacks.default {
            IntervalSet::empty()
        } else {
            all.intersection(&named)
        };
        let is_said = ret == fallbacks.unknown.unwrap_or(fallbacks.default);
        let odd = if is_said {
            IntervalSet::empty()
        } else {
            all.intersection(&unnamed)
        };
        push(&mut rules, listed.union(&odd), Predicate::True, ret)?;
    }
    if let Some(unknown) = fallbacks.unknown {
        push(&mut rules, unnamed, Predicate::True, unknown)?;
    }
    Ok(Section {
        arch,
        rules,
        default: action(fallbacks.default)?,
    })
}

/// Adds the rules of numbers whose arguments matter; returns the action if none of them matches.
fn conditional(
    space: &mut Space,
    conditions: &mut Conditions,
    limits: &CaseLimits,
    arch: Arch,
    group: &Group,
    fallbacks: Fallbacks,
    rules: &mut Vec<Rule>,
) -> Result<u32, Undecompilable> {
    /// The cost of a rule, relative to that of tests.
    const RULE_COST: usize = 3;
    let nr = group.numbers.intervals()[0].0;
    let inexpressible = Undecompilable::Condition { arch, nr };
    let (outcomes, is_complete) = outcomes(space, group.node, limits.max_outcomes);
    if !is_complete {
        return Err(inexpressible);
    }
    let mut conditioned: Vec<(u32, Function, Option<CostedPredicate>)> = Vec::new();
    for ret in outcomes {
        let holds = space.returns(group.node, ret)?;
        conditioned.push((ret, holds, conditions.costed(space, holds)?));
    }
    let worth = |(ret, _, costed): &(u32, Function, Option<CostedPredicate>)| {
        let bonus = if *ret == fallbacks.default {
            RULE_COST
        } else {
            0
        };
        costed
            .as_ref()
            .map_or(usize::MAX, |costed| costed.cost + bonus)
    };
    // The most expensive condition is omitted: it becomes the rest.
    let rest = (0..conditioned.len()).max_by_key(|index| worth(&conditioned[*index]));
    let (rest, ..) = conditioned.remove(rest.expect("a diagram has a leaf"));
    conditioned.sort_by_key(|entry| {
        (
            entry.2.as_ref().map_or(usize::MAX, |costed| costed.cost),
            entry.0,
        )
    });
    let mut earlier = Function::FALSE;
    for (ret, holds, exact) in conditioned {
        // A condition may include calls of earlier rules if that is shorter.
        let with_earlier = space.choose(holds, Function::TRUE, earlier)?;
        let exact = exact.ok_or_else(|| inexpressible.clone())?;
        let when = match conditions.costed(space, with_earlier)? {
            Some(wider) if wider.cost < exact.cost => wider,
            _ => exact,
        };
        push(rules, group.numbers.clone(), when.predicate, ret)?;
        earlier = with_earlier;
    }
    Ok(rest)
}

fn leaf_value(space: &Space, node: Function) -> Option<u32> {
    match space.view(node) {
        View::Leaf(value) => Some(value),
        View::Branch { .. } => None,
    }
}

/// Adds a rule unless it has no numbers.
fn push(
    rules: &mut Vec<Rule>,
    syscalls: IntervalSet<u32>,
    when: Predicate,
    ret: u32,
) -> Result<(), Undecompilable> {
    if !syscalls.is_empty() {
        rules.push(Rule {
            syscalls,
            when,
            action: action(ret)?,
            origin: None,
        });
    }
    Ok(())
}

/// The action of a return value.
fn action(ret: u32) -> Result<Action, Undecompilable> {
    let action = Action::from_ret(ret);
    if action.ret() == ret {
        Ok(action)
    } else {
        Err(Undecompilable::NotAnAction(ret))
    }
}

/// The fallbacks with the fewest listed calls. Only a filter that allows most numbers without a name gets an
/// allowing default: a list of denied calls would otherwise look complete.
fn fallbacks(
    constant: &BTreeMap<u32, IntervalSet<u32>>,
    named: &IntervalSet<u32>,
    unnamed: &IntervalSet<u32>,
) -> Fallbacks {
    let size = |set: &IntervalSet<u32>| {
        let sizes = set
            .intervals()
            .iter()
            .map(|(first, last)| u64::from(last - first) + 1);
        sizes.sum::<u64>()
    };
    let split: Vec<(u32, u64, IntervalSet<u32>)> = constant
        .iter()
        .map(|(ret, set)| {
            (
                *ret,
                size(&set.intersection(named)),
                set.intersection(unnamed),
            )
        })
        .collect();
    let usual = split
        .iter()
        .max_by_key(|(ret, _, odd)| (size(odd), *ret))
        .map(|entry| entry.0);
    let Some(usual) = usual else {
        return Fallbacks {
            default: Action::KILL_PROCESS.ret(),
            unknown: None,
        };
    };
    if permits(usual) {
        return Fallbacks {
            default: usual,
            unknown: None,
        };
    }
    // The count of listed calls with each action as the default, and as the action of numbers without a name.
    let named: u64 = split.iter().map(|(_, count, _)| *count).sum();
    let cost_of = |odd: &IntervalSet<u32>| 2 * odd.intervals().len() as u64;
    let odd: u64 = split.iter().map(|(.., odd)| cost_of(odd)).sum();
    let mut unknowns: Vec<(u64, u32)> = split
        .iter()
        .map(|(ret, _, own)| (odd - cost_of(own), *ret))
        .collect();
    unknowns.sort_unstable();
    let choices = split.iter().filter(|(ret, ..)| !permits(*ret));
    let choices = choices.map(|(default, count, own)| {
        let listed = named - count;
        let same = listed + odd - cost_of(own);
        let other = unknowns.iter().find(|(_, ret)| ret != default);
        let (cost, unknown) = match other {
            Some((odd, ret)) if listed + odd < same => (listed + odd + 1, Some(*ret)),
            _ => (same, None),
        };
        let default = *default;
        ((cost, default != usual), Fallbacks { default, unknown })
    });
    let best = choices.min_by_key(|(cost, _)| *cost);
    best.map_or(
        Fallbacks {
            default: usual,
            unknown: None,
        },
        |(_, choice)| choice,
    )
}

/// Whether the call is executed.
fn permits(ret: u32) -> bool {
    Action::from_ret(ret).kind.executes()
}
