//! Differences: calls with different results of two functions, grouped like cases.
//!
//! A [`Comparison`] is a function to pairs of return values; its cases are the differences. Comparisons of two
//! arguments may differ on paths that no input takes: a difference without an example may be one of those.

use tamis_prover::{Comparison, Function, LimitReached, Scope, Space};
use tamis_rules::{Input, IntervalSet, Predicate};

use crate::cases::{CaseLimits, Machine, calls_in, groups, outcomes};
use crate::condition::Conditions;

/// Calls with the same pair of different return values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The architecture.
    pub machine: Machine,
    /// The numbers.
    pub numbers: IntervalSet<u32>,
    /// The condition; `None` if it exceeds the limits.
    pub when: Option<Predicate>,
    /// The return value of the left function.
    pub left_ret: u32,
    /// The return value of the right function.
    pub right_ret: u32,
    /// One of the calls; `None` if none was found, which is possible only with comparisons of two words.
    pub example: Option<Input>,
}

/// The differences of two functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differences {
    /// By architecture, then by the smallest number.
    pub list: Vec<Difference>,
    /// Whether the list is complete; otherwise a limit was reached and there are more.
    pub is_complete: bool,
}

/// The differences of two functions of this space, by architecture, number and arguments.
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

/// The differences of the functions of a comparison, within its scope.
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
                when: conditions.predicate_of(space, holds)?,
                left_ret,
                right_ret,
                example: space.witness(here, Function::FALSE),
            });
        }
    }
    Ok(Differences { list, is_complete })
}
