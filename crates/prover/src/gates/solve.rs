//! Decides whether a gate can be true, with a SAT solver.
//!
//! Every gate that the wanted one depends on becomes a variable and three clauses (Tseitin's transformation). The
//! solver is batsat. It uses no random numbers, and its limit is a count of learnt clauses, one per conflict, so
//! the result is the same on every machine, unless the caller cancels.

use std::cell::Cell;

use batsat::{Callbacks, ClauseKind, Lit, Solver, SolverInterface, SolverOpts, lbool};
use tamis_abi::Word;
use tamis_rules::Input;

use super::graph::{Driver, Gate, Gates};
use crate::diagram::LimitReached;
use crate::stop::{Share, Stop};

/// The interval of checks for cancellation in gates, while clauses are made. The solver checks at every decision: in
/// a large circuit each of them propagates to many gates.
const GATES_BETWEEN_CHECKS: usize = 1 << 10;
/// The memory of a variable in the solver, with its clauses and their places in the lists of watches, in bytes, as
/// measured with millions of gates.
const BYTES_PER_GATE: usize = 250;
/// The memory of a learnt clause apart from its literals.
const BYTES_PER_CLAUSE: usize = 64;

/// Stops the solver at a number of conflicts, or if the caller cancels.
struct Limit<'a> {
    conflicts_left: u64,
    stop: &'a Stop,
    /// Why it was stopped, if not because of conflicts.
    stopped: Cell<Option<LimitReached>>,
    share: Share,
    used_bytes: usize,
}

impl Callbacks for Limit<'_> {
    fn on_new_clause(&mut self, clause: &[Lit], kind: ClauseKind) {
        if kind == ClauseKind::Learnt {
            self.conflicts_left = self.conflicts_left.saturating_sub(1);
            self.used_bytes += learnt_bytes(clause);
            if let Err(limit) = self.share.set(self.used_bytes) {
                self.stopped.set(Some(limit));
            }
        }
    }

    fn on_delete_clause(&mut self, clause: &[Lit]) {
        self.used_bytes = self.used_bytes.saturating_sub(learnt_bytes(clause));
    }

    fn stop(&self) -> bool {
        if self.stop.is_asked_for() {
            self.stopped.set(Some(LimitReached::Stopped));
        }
        self.conflicts_left == 0 || self.stopped.get().is_some()
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
    let cone = cone(gates, wanted, stop)?;
    let mut share = stop.share();
    let used_bytes = BYTES_PER_GATE * cone.len();
    share.set(used_bytes)?;
    let limit = Limit {
        conflicts_left: max_conflicts.max(1),
        stop,
        stopped: Cell::new(None),
        share,
        used_bytes,
    };
    let mut solver = Solver::new(SolverOpts::default(), limit);
    let literals = clauses(gates, &cone, &mut solver, stop)?;
    let wanted = literal(&literals, wanted);
    let answer = solver.solve_limited(&[wanted]);
    if answer == lbool::FALSE {
        return Ok(None);
    }
    if answer != lbool::TRUE {
        let stopped = solver.cb().stopped.get();
        return Err(stopped.unwrap_or(LimitReached::Conflicts));
    }
    let mut input = Input::default();
    for number in cone {
        if let Driver::Input(word, bit) = gates.driver(number)
            && literals[number].is_some_and(|positive| solver.value_lit(positive) == lbool::TRUE)
        {
            input = with_bit(input, word, bit);
        }
    }
    Ok(Some(input))
}

fn with_bit(input: Input, word: Word, bit: u32) -> Input {
    input.with_word(word, input.word(word) | 1 << bit)
}

/// The memory of a learnt clause, in bytes.
fn learnt_bytes(clause: &[Lit]) -> usize {
    BYTES_PER_CLAUSE + size_of_val(clause)
}

/// The gates that the wanted one depends on, itself among them, in the order in which a search finds them.
fn cone(gates: &Gates, wanted: Gate, stop: &Stop) -> Result<Vec<usize>, LimitReached> {
    let mut is_found = vec![false; gates.len()];
    let mut found = Vec::new();
    let mut waiting = vec![wanted.number()];
    while let Some(number) = waiting.pop() {
        if std::mem::replace(&mut is_found[number], true) {
            continue;
        }
        found.push(number);
        if found.len().is_multiple_of(GATES_BETWEEN_CHECKS) {
            stop.check()?;
        }
        if let Driver::And(a, b) = gates.driver(number) {
            waiting.extend([a.number(), b.number()]);
        }
    }
    Ok(found)
}

/// Adds the clauses of these gates. Returns the literal of each gate that has one.
fn clauses(
    gates: &Gates,
    cone: &[usize],
    solver: &mut Solver<Limit<'_>>,
    stop: &Stop,
) -> Result<Vec<Option<Lit>>, LimitReached> {
    let mut literals = vec![None; gates.len()];
    for number in cone {
        literals[*number] = Some(Lit::new(solver.new_var_default(), true));
    }
    let mut clause = Vec::new();
    for (number, output) in literals.iter().enumerate() {
        let Some(output) = *output else {
            continue;
        };
        if number.is_multiple_of(GATES_BETWEEN_CHECKS) {
            stop.check()?;
        }
        let mut add = |literals: &[Lit]| {
            clause.clear();
            clause.extend_from_slice(literals);
            solver.add_clause_reuse(&mut clause);
        };
        match gates.driver(number) {
            Driver::And(a, b) => {
                let (a, b) = (literal(&literals, a), literal(&literals, b));
                add(&[!output, a]);
                add(&[!output, b]);
                add(&[output, !a, !b]);
            }
            Driver::False => add(&[!output]),
            Driver::Input(..) | Driver::Free(_) => {}
        }
    }
    Ok(literals)
}

/// The literal of a gate.
///
/// # Panics
/// If it has none.
fn literal(literals: &[Option<Lit>], gate: Gate) -> Lit {
    let positive =
        literals[gate.number()].expect("the gates below one of the cone are in the cone");
    if gate.is_inverted() {
        !positive
    } else {
        positive
    }
}
