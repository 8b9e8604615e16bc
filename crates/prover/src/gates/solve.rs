//! Decides whether a gate can be true, with a SAT solver.
//!
//! Every gate that the wanted one depends on becomes a variable and three clauses (Tseitin's transformation). The
//! solver is batsat. It uses no random numbers, and its limit is a count of learnt clauses, one per conflict, so
//! the result is the same on every machine, unless the caller cancels.

use std::cell::Cell;
use std::collections::BTreeMap;

use batsat::{Callbacks, ClauseKind, Lit, Solver, SolverInterface, SolverOpts, lbool};
use tamis_abi::Word;
use tamis_rules::Input;

use super::graph::{Driver, Gate, Gates};
use crate::diagram::LimitReached;
use crate::stop::Stop;

/// The interval of checks for cancellation, in decisions of the solver.
const DECISIONS_BETWEEN_CHECKS: u32 = 1 << 10;

/// Stops the solver at a number of conflicts, or if the caller cancels.
struct Limit<'a> {
    conflicts_left: u64,
    stop: &'a Stop,
    decisions: Cell<u32>,
    is_stopped: Cell<bool>,
}

impl Callbacks for Limit<'_> {
    fn on_new_clause(&mut self, _clause: &[Lit], kind: ClauseKind) {
        if kind == ClauseKind::Learnt {
            self.conflicts_left = self.conflicts_left.saturating_sub(1);
        }
    }

    fn stop(&self) -> bool {
        let decisions = self.decisions.get().wrapping_add(1);
        self.decisions.set(decisions);
        if decisions.is_multiple_of(DECISIONS_BETWEEN_CHECKS) && self.stop.is_asked_for() {
            self.is_stopped.set(true);
        }
        self.conflicts_left == 0 || self.is_stopped.get()
    }
}

/// An input for which the gate is true; `None` if there is none.
///
/// # Errors
/// If the solver gives up.
pub(super) fn input_for(
    gates: &Gates,
    wanted: Gate,
    max_conflicts: u64,
    stop: &Stop,
) -> Result<Option<Input>, LimitReached> {
    match wanted {
        Gate::FALSE => return Ok(None),
        Gate::TRUE => return Ok(Some(Input::default())),
        _ => {}
    }
    let limit = Limit {
        conflicts_left: max_conflicts.max(1),
        stop,
        decisions: Cell::new(0),
        is_stopped: Cell::new(false),
    };
    let mut solver = Solver::new(SolverOpts::default(), limit);
    let literals = clauses(gates, wanted, &mut solver);
    let wanted = literal(&literals, wanted);
    let answer = solver.solve_limited(&[wanted]);
    if answer == lbool::FALSE {
        return Ok(None);
    }
    if answer != lbool::TRUE {
        return Err(match solver.cb().is_stopped.get() {
            true => LimitReached::Stopped,
            false => LimitReached::Conflicts,
        });
    }
    let mut input = Input::default();
    for (number, positive) in &literals {
        if let Driver::Input(word, bit) = gates.driver(*number)
            && solver.value_lit(*positive) == lbool::TRUE
        {
            input = with_bit(input, word, bit);
        }
    }
    Ok(Some(input))
}

fn with_bit(input: Input, word: Word, bit: u32) -> Input {
    input.with_word(word, input.word(word) | 1 << bit)
}

/// Adds the clauses of the gates that the wanted one depends on. Returns their literals.
fn clauses(gates: &Gates, wanted: Gate, solver: &mut Solver<Limit<'_>>) -> BTreeMap<usize, Lit> {
    let mut literals = BTreeMap::new();
    let mut waiting = vec![wanted.number()];
    while let Some(number) = waiting.pop() {
        if literals.contains_key(&number) {
            continue;
        }
        literals.insert(number, Lit::new(solver.new_var_default(), true));
        if let Driver::And(a, b) = gates.driver(number) {
            waiting.extend([a.number(), b.number()]);
        }
    }
    for (number, output) in &literals {
        match gates.driver(*number) {
            Driver::And(a, b) => {
                let (a, b) = (literal(&literals, a), literal(&literals, b));
                solver.add_clause_reuse(&mut vec![!*output, a]);
                solver.add_clause_reuse(&mut vec![!*output, b]);
                solver.add_clause_reuse(&mut vec![*output, !a, !b]);
            }
            Driver::False => {
                solver.add_clause_reuse(&mut vec![!*output]);
            }
            Driver::Input(..) => {}
        }
    }
    literals
}

fn literal(literals: &BTreeMap<usize, Lit>, gate: Gate) -> Lit {
    let positive = literals[&gate.number()];
    if gate.is_inverted() {
        !positive
    } else {
        positive
    }
}
