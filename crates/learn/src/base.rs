//! What an existing policy, the base, leaves of a learned one.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::{Action, ActionKind, Arch, Nr};
use tamis_analysis::{CaseLimits, Machine, cases};
use tamis_prover::{Function, LimitReached, Space};
use tamis_rules::Predicate;

use crate::learned::LearnError;

/// What is known of the base and of the calls that are wanted.
pub(crate) struct Base {
    /// The calls that the base allows, and with which arguments; `None` if that can't be said.
    allowed: BTreeMap<(Arch, Nr), Option<Predicate>>,
    /// The calls that it denies with some arguments.
    denied: BTreeSet<(Arch, Nr)>,
    /// The calls of which more is wanted than it allows.
    exceeding: BTreeSet<(Arch, Nr)>,
}

/// What the base leaves of a call.
pub(crate) enum Leaves {
    /// All of it.
    Everything,
    /// Calls for which this holds.
    When(Predicate),
    /// Nothing.
    Nothing,
    /// Something that can't be said in a condition.
    Unsaid,
}

impl Base {
    /// What a function, the base's meaning, leaves of what another one allows, for these calls.
    pub(crate) fn of(
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
        for (call, when) in holding(space, allowed, calls)? {
            known.allowed.insert(call, when);
        }
        for (call, _) in holding(space, denied, calls)? {
            known.denied.insert(call);
        }
        for (call, _) in holding(space, exceeding, calls)? {
            known.exceeding.insert(call);
        }
        Ok(known)
    }

    /// What it leaves of a call that was wanted; of one that wasn't, all or nothing.
    pub(crate) fn leaves(&self, call: (Arch, Nr)) -> Leaves {
        let Some(when) = self.allowed.get(&call) else {
            return Leaves::Nothing;
        };
        if !self.exceeding.contains(&call) {
            return Leaves::Everything;
        }
        when.clone().map_or(Leaves::Unsaid, Leaves::When)
    }

    /// Whether it allows a call with all arguments.
    pub(crate) fn allows(&self, call: (Arch, Nr)) -> bool {
        self.allowed.contains_key(&call) && !self.denied.contains(&call)
    }
}

/// Calls with conditions on their arguments; `None` if one can't be said.
type Holding = Vec<((Arch, Nr), Option<Predicate>)>;

/// The calls for which a condition may hold, and under which condition on their arguments; `None` if that can't be
/// said.
fn holding(
    space: &mut Space,
    condition: Function,
    calls: &BTreeSet<(Arch, Nr)>,
) -> Result<Holding, LearnError> {
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

/// Whether one function allows only what another permits.
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

/// The condition that a function lets a call be made, logged or not.
fn permits(space: &mut Space, function: Function) -> Result<Function, LimitReached> {
    let allowed = space.returns(function, Action::ALLOW.ret())?;
    let logged = space.returns(function, Action::new(ActionKind::Log, 0).ret())?;
    space.choose(allowed, Function::TRUE, logged)
}
