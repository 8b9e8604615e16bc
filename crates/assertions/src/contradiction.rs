//! Checks that no policy satisfies together.
//!
//! Two checks contradict each other if one demands that a call is executed and the other that it isn't, or if they
//! demand different actions. Their conditions are compared by proof, on the first architecture that both concern.

use std::collections::BTreeMap;

use tamis_abi::{Action, Arch};
use tamis_diag::Diagnostic;
use tamis_prover::{Function, Limited, Limits, Space};
use tamis_rules::Predicate;

use crate::checks::{Check, Checks, Claim, Part, Target};
use crate::code;
use crate::region::both;

/// The demand of a check on a call.
#[derive(Clone, Copy)]
enum Demand<'a> {
    Denied,
    Executed,
    Action(&'a tamis_policy::tamis::ast::Answer),
}

/// A demand on the calls of a target.
struct Demanded<'a> {
    check: &'a Check,
    target: &'a Target,
    demand: Demand<'a>,
}

/// The contradictions, each with both places.
pub(crate) fn contradictions(checks: &Checks) -> Vec<Diagnostic> {
    let mut by_call: BTreeMap<&str, Vec<Demanded<'_>>> = BTreeMap::new();
    for check in &checks.all {
        let demand = match &check.claim {
            Claim::Never { .. } => Demand::Denied,
            Claim::Always(_) => Demand::Executed,
            Claim::Expect(_, answer) => Demand::Action(answer),
            Claim::Compare(..) | Claim::AtMost(_) | Claim::Cached(_) => continue,
        };
        for target in check.claim.targets() {
            if let crate::checks::Calls::Named(names) = &target.calls {
                for name in names {
                    by_call.entry(name).or_default().push(Demanded {
                        check,
                        target,
                        demand,
                    });
                }
            }
        }
    }
    let mut space = Space::new(Limits::default());
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut known: Vec<(u32, u32)> = Vec::new();
    for (call, demands) in &by_call {
        for (index, later) in demands.iter().enumerate() {
            for earlier in &demands[..index] {
                let pair = (earlier.check.span.start, later.check.span.start);
                if known.contains(&pair) {
                    continue;
                }
                // Too complex conditions are not compared: each check is still decided alone.
                if contradict(checks, &mut space, call, [earlier, later]) == Ok(true) {
                    known.push(pair);
                    found.push(report(call, earlier, later));
                }
            }
        }
    }
    found
}

fn report(call: &str, earlier: &Demanded<'_>, later: &Demanded<'_>) -> Diagnostic {
    let message = format!("contradictory checks of `{call}`");
    Diagnostic::error(code::CHECKS_CONTRADICT, message)
        .label(later.check.span, "no policy satisfies this check")
        .label(earlier.check.span, "and this one")
        .help("narrow one of them by a condition, or by `on`")
}

fn contradict(
    checks: &Checks,
    space: &mut Space,
    call: &str,
    pair: [&Demanded<'_>; 2],
) -> Limited<bool> {
    for arch in Arch::all().filter(|arch| tamis_abi::syscall::number(*arch, call).is_some()) {
        let concerns = |demanded: &&Demanded<'_>| {
            let selected = demanded.check.arches.as_ref();
            selected.is_none_or(|arches| arches.contains(&arch))
        };
        if !pair.iter().all(concerns) || !differ(checks, arch, pair) {
            continue;
        }
        let mut overlap = Function::TRUE;
        for demanded in pair {
            let when = match checks.part(demanded.target, Some(call), arch) {
                Part::Where(when) => when,
                Part::InMemory | Part::Undefined(_) => Predicate::False,
            };
            let condition = space.condition(&when)?;
            overlap = both(space, overlap, condition)?;
        }
        return Ok(overlap != Function::FALSE);
    }
    Ok(false)
}

/// Whether two demands can't both be met for one call.
fn differ(checks: &Checks, arch: Arch, pair: [&Demanded<'_>; 2]) -> bool {
    let action = |demanded: &Demanded<'_>| -> Option<Action> {
        match demanded.demand {
            Demand::Action(answer) => checks.action(answer, arch),
            Demand::Denied | Demand::Executed => None,
        }
    };
    let is_executed = |demanded: &Demanded<'_>| match demanded.demand {
        Demand::Denied => Some(false),
        Demand::Executed => Some(true),
        Demand::Action(answer) => {
            let action = checks.action(answer, arch)?;
            Some(action.kind.executes())
        }
    };
    let [left, right] = pair;
    match (action(left), action(right)) {
        (Some(left), Some(right)) => left != right,
        _ => is_executed(left)
            .zip(is_executed(right))
            .is_some_and(|(left, right)| left != right),
    }
}
