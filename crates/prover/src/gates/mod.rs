//! The second way: both filters as circuits of gates, and a search for an input that tells them apart.
//!
//! Decision diagrams can't hold some functions, such as the sum of two arguments or a whole word that
//! is returned. Gates hold every program: [`graph`] keeps them, alike ones once; [`words`] has the
//! machine's arithmetic; [`program`] and [`ruleset`] translate, sharing nothing with the translation to
//! diagrams but the decoding of instructions; [`solve`] hands the question to a SAT solver, with a limit
//! on its conflicts and no clock. What it finds is an input, what it refutes is refuted for every input,
//! and when it gives up the answer is *unknown*.

mod graph;
mod program;
mod ruleset;
mod solve;
mod words;

use tamis_abi::{ActionKind, SeccompData, Word};
use tamis_rules::{IntervalSet, Section};

use crate::comparison::Scope;
use crate::diagram::LimitReached;
use crate::space::Limits;
use crate::subject::Subject;
use graph::{Gate, Gates};
use words::Bits;

type Outcome<T> = Result<T, LimitReached>;

/// Inputs that tell two filters apart, one of each kind that there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The first filter takes the stricter action.
    pub(crate) stricter: Option<SeccompData>,
    /// The first filter takes the looser action.
    pub(crate) looser: Option<SeccompData>,
    /// Both take the same action, with different data.
    pub(crate) data_only: Option<SeccompData>,
}

/// Looks for inputs of the scope that tell two filters apart, for each of the three kinds.
///
/// # Errors
/// If there are too many gates, or the solver reaches its limit.
pub(crate) fn find(
    left: &Subject<'_>,
    right: &Subject<'_>,
    scope: &Scope,
    limits: &Limits,
) -> Outcome<Found> {
    let mut gates = Gates::new(limits.max_gates);
    let [left, right] = [function(&mut gates, left)?, function(&mut gates, right)?];
    let domain = domain(&mut gates, scope)?;
    let [left_rank, right_rank] = [
        strictness(&mut gates, &left, scope)?,
        strictness(&mut gates, &right, scope)?,
    ];
    let stricter = words::greater(&mut gates, &right_rank, &left_rank, Gate::FALSE)?;
    let looser = words::greater(&mut gates, &left_rank, &right_rank, Gate::FALSE)?;
    let data_only = if scope.actions_only {
        Gate::FALSE
    } else {
        let same_action = words::equal(&mut gates, &left_rank, &right_rank)?;
        let same = words::equal(&mut gates, &left, &right)?;
        gates.and(same_action, same.not())?
    };
    let mut search = |wanted| {
        let wanted = gates.and(domain, wanted)?;
        solve::input_for(&gates, wanted, limits.max_conflicts)
    };
    Ok(Found {
        stricter: search(stricter)?,
        looser: search(looser)?,
        data_only: search(data_only)?,
    })
}

/// What a subject returns.
fn function(gates: &mut Gates, subject: &Subject<'_>) -> Outcome<Bits> {
    match subject {
        Subject::Ruleset(rules) => ruleset::returned(gates, rules),
        Subject::Program { program, endian } => program::returned(gates, program, *endian),
        Subject::Stack { programs, endian } => {
            let mut kept = words::constant(ActionKind::Allow.ret());
            for program in programs.iter().rev() {
                let older = program::returned(gates, program, *endian)?;
                let [kept_place, older_place] = [place(&kept), place(&older)];
                let replaces = words::greater(gates, &kept_place, &older_place, Gate::FALSE)?;
                kept = words::select(gates, replaces, &older, &kept)?;
            }
            Ok(kept)
        }
    }
}

/// The action part of a return value as an unsigned number that orders as the kernel orders actions.
fn place(ret: &Bits) -> Bits {
    let mut place = *ret;
    place[..16].fill(Gate::FALSE);
    place[31] = place[31].not();
    place
}

/// How strict the kernel's reaction to a return value is: the smaller the stricter.
fn strictness(gates: &mut Gates, ret: &Bits, scope: &Scope) -> Outcome<Bits> {
    // Unknown actions kill the process.
    let mut rank = words::constant(0);
    for (number, kind) in ActionKind::ALL.into_iter().enumerate() {
        let is_kill = matches!(kind, ActionKind::KillProcess | ActionKind::KillThread);
        let number = if is_kill && scope.actions_only {
            0
        } else {
            number
        };
        let mut action = *ret;
        action[..16].fill(Gate::FALSE);
        let is_kind = words::equal(gates, &action, &words::constant(kind.ret()))?;
        rank = words::select(gates, is_kind, &words::constant(number as u32), &rank)?;
    }
    Ok(rank)
}

/// The condition that a call is in the scope.
fn domain(gates: &mut Gates, scope: &Scope) -> Outcome<Gate> {
    let nr = words::input(gates, Word::NR)?;
    let arch = words::input(gates, Word::ARCH)?;
    let mut domain = Gate::from(scope.arches.is_empty());
    for known in &scope.arches {
        let is_arch = words::equal(gates, &arch, &words::constant(known.audit()))?;
        let is_own = ruleset::in_set(gates, &nr, &Section::domain(*known))?;
        let applies = gates.and(is_arch, is_own)?;
        domain = gates.or(domain, applies)?;
    }
    if scope.native_only {
        let native = IntervalSet::from_iter([0..=(1 << 30) - 1]);
        let is_native = ruleset::in_set(gates, &nr, &native)?;
        domain = gates.and(domain, is_native)?;
    }
    Ok(domain)
}
