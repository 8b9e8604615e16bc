//! The proof of a combination: it is the function of the operation, and within the bounds of its parts.

use std::error::Error;
use std::fmt;

use tamis_abi::Action;
use tamis_prover::{Function, LimitReached, Scope, Space};
use tamis_rules::{Input, Ruleset};

use crate::Operation;
use crate::function::{Part, combined};

/// A proof that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unproved {
    /// A limit of the prover was reached.
    Limit(LimitReached),
    /// The result isn't the combination: a bug.
    Refuted(Box<Refuted>),
}

/// A call that a result and the combination of its parts treat differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refuted {
    /// The call; `None` if none was found within the limits.
    pub call: Option<Input>,
    /// The action of the result.
    pub is: Action,
    /// The action of the combination, or the action of a part that bounds the result.
    pub expected: Action,
}

impl From<LimitReached> for Unproved {
    fn from(limit: LimitReached) -> Unproved {
        Unproved::Limit(limit)
    }
}

impl fmt::Display for Unproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unproved::Limit(limit) => limit.fmt(f),
            Unproved::Refuted(refuted) => {
                let Refuted { call, is, expected } = refuted.as_ref();
                write!(f, "the result has {is} instead of {expected}")?;
                match call {
                    Some(call) => write!(f, " for {}", call.describe()),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Error for Unproved {}

/// Proves that a result is the combination of its parts, and within their bounds; returns its function.
///
/// # Errors
/// If it isn't, which is a bug, or a limit was reached.
pub fn prove(
    space: &mut Space,
    operation: Operation,
    first: &Ruleset,
    others: &[&Ruleset],
    result: &Ruleset,
) -> Result<Function, Unproved> {
    let first = part(space, first)?;
    let others: Vec<Part<'_>> = others
        .iter()
        .map(|other| part(space, other))
        .collect::<Result<_, _>>()?;
    let function = space.ruleset(result)?;
    let expected = combined(space, operation, first, &others)?;
    if function != expected {
        let call = space.witness(function, expected);
        let value = |function| call.map_or(0, |call| space.value(function, &call));
        return Err(Unproved::Refuted(Box::new(Refuted {
            call,
            is: Action::from_ret(value(function)),
            expected: Action::from_ret(value(expected)),
        })));
    }
    let all = std::iter::once(&first).chain(&others);
    let bounded: Vec<Function> = match operation {
        Operation::Intersect | Operation::Union => all.map(|part| part.function).collect(),
        Operation::Minus => vec![first.function],
        Operation::Overlay => Vec::new(),
    };
    for bound in bounded {
        check_bound(space, operation, function, bound)?;
    }
    Ok(function)
}

fn part<'a>(space: &mut Space, ruleset: &'a Ruleset) -> Result<Part<'a>, Unproved> {
    Ok(Part {
        ruleset,
        function: space.ruleset(ruleset)?,
    })
}

/// Fails if the result passes the bound: is looser than it or, for a union, stricter.
fn check_bound(
    space: &mut Space,
    operation: Operation,
    function: Function,
    bound: Function,
) -> Result<(), Unproved> {
    for pair in space.strictness(function, bound, &Scope::default())? {
        let is_passed = match operation {
            Operation::Union => pair.strictness().is_lt(),
            Operation::Intersect | Operation::Minus | Operation::Overlay => {
                pair.strictness().is_gt()
            }
        };
        if is_passed {
            return Err(Unproved::Refuted(Box::new(Refuted {
                call: pair.example,
                is: Action::from_ret(pair.left),
                expected: Action::from_ret(pair.right),
            })));
        }
    }
    Ok(())
}
