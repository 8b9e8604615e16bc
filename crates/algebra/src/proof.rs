//! The proof of a combination: it is the function of the operation, and within the bounds of its parts.

use std::error::Error;
use std::fmt;

use tamis_abi::Action;
use tamis_prover::{
    Answer, Function, LimitReached, Limits, Pair, Scope, Space, Stop, Subject, decide_by_gates,
};
use tamis_rules::{Input, Ruleset};

use crate::Operation;
use crate::function::{Part, combined, composed, defaults, explicit};

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

/// Proves the same without diagrams, which conditions on several arguments make too large.
///
/// # Errors
/// As [`prove`].
pub fn prove_by_gates(
    operation: Operation,
    first: &Ruleset,
    others: &[&Ruleset],
    result: &Ruleset,
    limits: &Limits,
    stop: &Stop,
) -> Result<(), Unproved> {
    let all: Vec<&Ruleset> = [&[first], others].concat();
    let own = Subject::Ruleset(result);
    let parts: Vec<Subject<'_>> = all.iter().map(|part| Subject::Ruleset(part)).collect();
    if operation == Operation::Intersect {
        let stack = Subject::Stack(&parts);
        match decide_by_gates(&own, &stack, limits, stop) {
            Answer::Equal(_) => {}
            Answer::Unknown(limit) => return Err(Unproved::Limit(limit)),
            Answer::Different {
                input, left, right, ..
            } => return Err(refuted(Some(input), left, right)),
        }
    } else {
        let explicit: Vec<[Ruleset; 2]> = others.iter().map(|own| explicit(own)).collect();
        let defaults = defaults(first);
        let expected = composed(operation, &all, &explicit, &defaults);
        if let Some(input) = expected.difference(&own, limits, stop)? {
            let is = own.answer(&input);
            return Err(refuted(Some(input), is, expected.answer(&input)));
        }
    }
    let bounds = match operation {
        Operation::Intersect | Operation::Union => parts.as_slice(),
        Operation::Minus => &parts[..1],
        Operation::Overlay => &[],
    };
    for bound in bounds {
        let report = tamis_prover::prove_by_gates(&own, bound, &Scope::default(), limits, stop);
        report.result?;
        let passed = report.pairs.iter().find(|pair| is_passed(operation, pair));
        if let Some(pair) = passed {
            return Err(refuted(pair.example, pair.left, pair.right));
        }
    }
    Ok(())
}

fn refuted(call: Option<Input>, is: u32, expected: u32) -> Unproved {
    Unproved::Refuted(Box::new(Refuted {
        call,
        is: Action::from_ret(is),
        expected: Action::from_ret(expected),
    }))
}

/// Whether a result passes a bound for the calls of a pair: is looser than it or, for a union, stricter.
fn is_passed(operation: Operation, pair: &Pair) -> bool {
    match operation {
        Operation::Union => pair.strictness().is_lt(),
        Operation::Intersect | Operation::Minus | Operation::Overlay => pair.strictness().is_gt(),
    }
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
        if is_passed(operation, &pair) {
            return Err(refuted(pair.example, pair.left, pair.right));
        }
    }
    Ok(())
}
