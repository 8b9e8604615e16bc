//! Restriction of a learned policy to an existing policy, the base.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::{Action, ActionKind, Arch, Nr};
use tamis_analysis::{CaseLimits, Machine, cases};
use tamis_prover::{Function, LimitReached, Space};
use tamis_rules::Predicate;

use crate::learned::LearnError;

/// The base, compared with the wanted calls.
pub(crate) struct Base {
    /// The calls that the base allows, with the condition on the arguments; `None` if it can't be expressed.
    allowed: BTreeMap<(Arch, Nr), Option<Predicate>>,
    /// The calls that the base denies with some arguments.
    denied: BTreeSet<(Arch, Nr)>,
    /// The wanted calls that the base doesn't allow entirely.
    exceeding: BTreeSet<(Arch, Nr)>,
}

/// The part of a call that the base allows.
pub(crate) enum Restriction {
    /// The whole call.
    Unrestricted,
    /// The calls for which the condition holds.
    When(Predicate),
    /// No call.
    Nothing,
    /// A part that no condition can express.
    Inexpressible,
}

impl Base {
    /// Compares the functions of the base and of the wanted policy for these calls.
    pub(crate) fn compare(
        space: &mut Space,
        base: Function,
        wanting: Function,
        calls: &BTreeSet<(Arch, Nr)>,
    ) -> Result<Base, LearnError> {
        let allowed = permits(space, base)?;
        let wanted = space.returns(wanting, Action::ALLOW.ret())?;
        let denied = space.choose(allowed, Function::FALSE, Function::TRUE)?;
        let exceeding = space.choose(wanted, denied, Function::FALSE)?;
        let mut known = Base {
            allowed: BTreeMap::new(),
            denied: BTreeSet::new(),
            exceeding: BTreeSet::new(),
        };
        for (call, when) in conditional_calls(space, allowed, calls)? {
            known.allowed.insert(call, when);
        }
        for (call, _) in conditional_calls(space, denied, calls)? {
            known.denied.insert(call);
        }
        for (call, _) in conditional_calls(space, exceeding, calls)? {
            known.exceeding.insert(call);
        }
        Ok(known)
    }

    /// The allowed part of a wanted call. Not defined for other calls.
    pub(crate) fn restriction(&self, call: (Arch, Nr)) -> Restriction {
        let Some(when) = self.allowed.get(&call) else {
            return Restriction::Nothing;
        };
        if !self.exceeding.contains(&call) {
            return Restriction::Unrestricted;
        }
        when.clone()
            .map_or(Restriction::Inexpressible, Restriction::When)
    }

    /// Whether the base allows a call with all arguments.
    pub(crate) fn allows(&self, call: (Arch, Nr)) -> bool {
        self.allowed.contains_key(&call) && !self.denied.contains(&call)
    }
}

/// Calls with conditions on their arguments; `None` if a condition can't be expressed.
type ConditionalCalls = Vec<((Arch, Nr), Option<Predicate>)>;

/// The calls for which a function is not constantly 0, with the conditions on their arguments.
fn conditional_calls(
    space: &mut Space,
    condition: Function,
    calls: &BTreeSet<(Arch, Nr)>,
) -> Result<ConditionalCalls, LearnError> {
    let cases = cases(space, condition, &CaseLimits::default())?;
    if !cases.is_complete {
        return Err(LearnError::TooManyCases);
    }
    let mut holding = Vec::new();
    for case in cases.list.into_iter().filter(|case| case.ret != 0) {
        let Machine::Known(arch) = case.machine else {
            continue;
        };
        let own = calls.iter();
        let own = own.filter(|(of, nr)| *of == arch && case.numbers.contains(nr.0));
        holding.extend(own.map(|call| (*call, case.when.clone())));
    }
    Ok(holding)
}

/// Whether a function allows only calls that another one permits.
pub(crate) fn is_within(
    space: &mut Space,
    inner: Function,
    outer: Function,
) -> Result<bool, LimitReached> {
    let inner = space.returns(inner, Action::ALLOW.ret())?;
    let outer = permits(space, outer)?;
    let implied = space.choose(inner, outer, Function::TRUE)?;
    Ok(implied == Function::TRUE)
}

/// The condition under which a call is executed, logged or not.
fn permits(space: &mut Space, function: Function) -> Result<Function, LimitReached> {
    let allowed = space.returns(function, Action::ALLOW.ret())?;
    let logged = space.returns(function, Action::new(ActionKind::Log, 0).ret())?;
    space.choose(allowed, Function::TRUE, logged)
}
