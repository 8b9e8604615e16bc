//! Differences: where two functions answer differently, grouped as cases are.
//!
//! A [`Comparison`] is a function to the pairs of answers; its cases are the differences. Comparisons of arguments with each other may be told apart in ways that no input can take:
//! a difference without an example may be one of those.

use tamis_prover::{Comparison, Function, LimitReached, Scope, Space};
use tamis_rules::{Input, IntervalSet, Predicate};

use crate::cases::{CaseLimits, Machine, calls_in, groups, outcomes};
use crate::condition::Conditions;

/// Calls that two functions answer differently, all of them in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Whose calls.
    pub machine: Machine,
    /// Which calls.
    pub numbers: IntervalSet<u32>,
    /// Under which condition; `None` if it can't be said within the limits.
    pub when: Option<Predicate>,
    /// What the left function returns.
    pub left_ret: u32,
    /// What the right function returns.
    pub right_ret: u32,
    /// One of the calls; `None` if none was found, which is possible only where words are compared with
    /// each other.
    pub example: Option<Input>,
}

/// Where two functions differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differences {
    /// By architecture, then by the smallest number.
    pub list: Vec<Difference>,
    /// Whether the list has all of them; otherwise a limit was reached and there are more.
    pub is_complete: bool,
}

/// Where two functions of this space differ, by architecture, number and arguments.
///
/// # Errors
/// If the space is full.
pub fn differences(
    space: &mut Space,
    left: Function,
    right: Function,
    limits: &CaseLimits,
) -> Result<Differences, LimitReached> {
    let comparison = space.comparison(left, right, &Scope::default())?;
    differences_of(space, &comparison, limits)
}

/// Where the functions of a comparison differ, within its scope.
///
/// # Errors
/// If the space is full.
pub fn differences_of(
    space: &mut Space,
    comparison: &Comparison,
    limits: &CaseLimits,
) -> Result<Differences, LimitReached> {
    let (groups, mut is_complete) = groups(space, comparison.function(), limits);
    let mut conditions = Conditions::new(limits);
    let mut list = Vec::new();
    for group in groups {
        let (outcomes, all) = outcomes(space, group.node, limits.max_outcomes);
        is_complete &= all;
        for outcome in outcomes.into_iter().filter(|outcome| *outcome != 0) {
            if list.len() == limits.max_cases {
                return Ok(Differences {
                    list,
                    is_complete: false,
                });
            }
            let (left_ret, right_ret) = comparison.answers(outcome);
            let holds = space.returns(group.node, outcome)?;
            let calls = calls_in(space, &group.machine, &group.numbers)?;
            let here = space.choose(calls, holds, Function::FALSE)?;
            list.push(Difference {
                machine: group.machine.clone(),
                numbers: group.numbers.clone(),
                when: conditions.of(space, holds)?,
                left_ret,
                right_ret,
                example: space.witness(here, Function::FALSE),
            });
        }
    }
    Ok(Differences { list, is_complete })
}
