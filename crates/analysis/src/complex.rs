//! Policies without the calls whose conditions are too complex for diagrams.
//!
//! A diagram has all bits of one argument before those of the next, so a condition that pairs the bits of two arguments,
//! `a & b == 5`, can need more nodes than any limit, while all other calls of the policy need few. These calls get an
//! action of the caller's choice instead, so that tools can still say what the policy does for the others.

use std::collections::BTreeMap;

use tamis_abi::{Action, Arch};
use tamis_prover::{LimitReached, Limited, Limits, Space, Stop};
use tamis_rules::{IntervalSet, Predicate, Rule, Ruleset, Section};

/// A call may use one part in this many of the limits of a policy.
const SHARE: usize = 16;

/// A policy in which some calls are replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simplified {
    /// The policy, in which a rule without a condition and a place decides each replaced call.
    pub ruleset: Ruleset,
    /// The numbers of the replaced calls, for each architecture that has some.
    pub replaced: Vec<(Arch, IntervalSet<u32>)>,
}

/// Replaces the calls whose rules need more than a sixteenth of the limits by themselves. `replacement` gives the action
/// for a call from those of its rules, in their order, and, unless a rule has no condition, from the default.
///
/// # Errors
/// If the caller has cancelled, or the limit of memory was reached.
pub fn without_complex_calls(
    ruleset: &Ruleset,
    limits: Limits,
    stop: &Stop,
    replacement: impl Fn(&[Action]) -> Action,
) -> Limited<Simplified> {
    let limits = Limits {
        max_nodes: limits.max_nodes / SHARE,
        max_steps: limits.max_steps / SHARE as u64,
        ..limits
    };
    let mut replaced = Vec::new();
    let mut sections = Vec::new();
    for section in ruleset.sections() {
        let mut complex = IntervalSet::empty();
        let mut rules = Vec::new();
        for (deciding, numbers) in groups(section) {
            let nr = numbers.intervals()[0].0;
            if !is_complex(section, &deciding, nr, limits, stop)? {
                continue;
            }
            complex = complex.union(&numbers);
            let of_rules = deciding.iter().map(|index| &section.rules[*index]);
            let is_total = of_rules.clone().any(|rule| rule.when == Predicate::True);
            let default = (!is_total).then_some(section.default);
            let actions: Vec<Action> = of_rules.map(|rule| rule.action).chain(default).collect();
            rules.push(Rule {
                syscalls: numbers,
                when: Predicate::True,
                action: replacement(&actions),
                origin: None,
            });
        }
        let others = section.rules.iter().map(|rule| Rule {
            syscalls: rule.syscalls.difference(&complex),
            ..rule.clone()
        });
        rules.extend(others.filter(|rule| !rule.syscalls.is_empty()));
        if !complex.is_empty() {
            replaced.push((section.arch, complex));
        }
        sections.push(Section {
            rules,
            ..section.clone()
        });
    }
    match Ruleset::new(sections, ruleset.bad_arch) {
        Ok(simpler) => Ok(Simplified {
            ruleset: simpler.with_variables(ruleset.variables().to_vec()),
            replaced,
        }),
        Err(_) => unreachable!("the architectures are those of a ruleset"),
    }
}

/// The numbers with conditions, by the rules that may decide them: up to the first without a condition.
fn groups(section: &Section) -> BTreeMap<Vec<usize>, IntervalSet<u32>> {
    let starts = section.borders();
    let mut groups: BTreeMap<Vec<usize>, Vec<std::ops::RangeInclusive<u32>>> = BTreeMap::new();
    for (at, first) in starts.iter().enumerate() {
        let last = starts.get(at + 1).map_or(u32::MAX, |next| next - 1);
        let mut deciding = Vec::new();
        for (index, rule) in section.rules.iter().enumerate() {
            if rule.syscalls.contains(*first) {
                deciding.push(index);
                if rule.when == Predicate::True {
                    break;
                }
            }
        }
        let first_rule = deciding.first().map(|index| &section.rules[*index]);
        if first_rule.is_some_and(|rule| rule.when != Predicate::True) {
            groups.entry(deciding).or_default().push(*first..=last);
        }
    }
    let sets = groups.into_iter();
    sets.map(|(rules, ranges)| (rules, ranges.into_iter().collect()))
        .collect()
}

/// Whether the rules of a call need more than the limits.
fn is_complex(
    section: &Section,
    deciding: &[usize],
    nr: u32,
    limits: Limits,
    stop: &Stop,
) -> Limited<bool> {
    let rules = deciding.iter().map(|index| Rule {
        syscalls: [nr].into_iter().collect(),
        ..section.rules[*index].clone()
    });
    let alone = Section {
        arch: section.arch,
        rules: rules.collect(),
        default: section.default,
    };
    let alone = Ruleset::new(vec![alone], section.default).expect("there is one section");
    let mut space = Space::stoppable(limits, stop.clone());
    match space.ruleset(&alone) {
        Ok(_) => Ok(false),
        Err(limit @ (LimitReached::Stopped | LimitReached::Memory)) => Err(limit),
        Err(_) => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::{ArgIndex, syscall};
    use tamis_rules::{Operand, Test};

    use super::*;

    /// `a & b` has a common bit: one pair of bits each.
    fn common_bit() -> Predicate {
        let bit = |arg: usize, bit: u32| {
            let operand = Operand::arg_low(ArgIndex::ALL[arg]);
            Predicate::Test(Test::Masked {
                operand,
                mask: 1 << bit,
                value: 1 << bit,
            })
        };
        let pairs = (0..32).map(|at| Predicate::All(vec![bit(0, at), bit(1, at)]));
        Predicate::Any(pairs.collect())
    }

    #[test]
    fn only_the_complex_call_is_replaced() {
        let rule = |nr: u32, when: Predicate, action: Action| Rule {
            syscalls: [nr].into_iter().collect(),
            when,
            action,
            origin: None,
        };
        let write = syscall::number(Arch::X86_64, "write").unwrap().0;
        let section = Section {
            arch: Arch::X86_64,
            rules: vec![
                rule(write + 1, Predicate::True, Action::ALLOW),
                rule(write, common_bit(), Action::ALLOW),
            ],
            default: Action::errno(1),
        };
        let ruleset = Ruleset::new(vec![section.clone()], Action::KILL_PROCESS).unwrap();
        let strictest = |actions: &[Action]| {
            assert_eq!(actions, [Action::ALLOW, Action::errno(1)]);
            Action::KILL_PROCESS
        };
        let stop = Stop::default();
        let simpler = without_complex_calls(&ruleset, Limits::default(), &stop, strictest).unwrap();
        let only: IntervalSet<u32> = [write].into_iter().collect();
        assert_eq!(simpler.replaced, [(Arch::X86_64, only)]);
        assert_eq!(
            simpler.ruleset.sections()[0].rules,
            [
                rule(write, Predicate::True, Action::KILL_PROCESS),
                section.rules[0].clone()
            ]
        );
    }
}
