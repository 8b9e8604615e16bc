//! Decides whether a gate can be true, with the SAT solver.
//!
//! Every gate that the wanted one depends on becomes a variable and three clauses (Tseitin's transformation). The
//! limit of the [solver](crate::sat) is a count of conflicts, so the result is the same on every machine, unless the
//! caller cancels. It checks its own refutations.

use tamis_abi::Word;
use tamis_rules::Input;

use super::graph::{Driver, Gate, Gates};
use crate::diagram::LimitReached;
use crate::sat::{Clauses, Literal, Outcome, Refutation, Work, solve};
use crate::stop::{Share, Stop};

/// The interval of checks for cancellation in gates, while clauses are made. The solver checks at every decision: in
/// a large circuit each of them propagates to many gates.
const GATES_BETWEEN_CHECKS: usize = 1 << 10;
/// The memory of a variable in the solver, with its clauses and their places in the lists of watches, in bytes, as
/// measured with millions of gates.
const BYTES_PER_GATE: usize = 250;

/// Stops the solver at a number of conflicts, or if the caller cancels.
struct Limit<'a> {
    conflicts_left: u64,
    stop: &'a Stop,
    share: Share,
    used_bytes: usize,
}

impl Work for Limit<'_> {
    type Limit = LimitReached;

    fn decision(&mut self) -> Result<(), LimitReached> {
        self.stop.check()
    }

    fn conflict(&mut self, bytes: usize) -> Result<(), LimitReached> {
        self.conflicts_left = self.conflicts_left.saturating_sub(1);
        if self.conflicts_left == 0 {
            return Err(LimitReached::Conflicts);
        }
        self.used_bytes += bytes;
        self.share.set(self.used_bytes)
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
        Gate::FALSE => Ok(None),
        Gate::TRUE => Ok(Some(Input::default())),
        _ => Ok(search(gates, wanted, max_conflicts, stop)?.err()),
    }
}

/// The refutation that a gate can be true; else an input for which it is.
///
/// # Errors
/// If the solver gives up.
pub(super) fn search(
    gates: &Gates,
    wanted: Gate,
    max_conflicts: u64,
    stop: &Stop,
) -> Result<Result<Refutation, Input>, LimitReached> {
    let cone = cone(gates, wanted, stop)?;
    let mut share = stop.share();
    let used_bytes = BYTES_PER_GATE * cone.len();
    share.set(used_bytes)?;
    let mut limit = Limit {
        conflicts_left: max_conflicts.max(1),
        stop,
        share,
        used_bytes,
    };
    let (literals, clauses) = clauses(gates, &cone, wanted, stop)?;
    let model = match solve(cone.len() as u32, clauses, &mut limit)? {
        Outcome::Refuted(refutation) => return Ok(Ok(*refutation)),
        Outcome::Model(model) => model,
    };
    let mut input = Input::default();
    for number in cone {
        if let Driver::Input(word, bit) = gates.driver(number)
            && literals[number].is_some_and(|variable| model[variable as usize])
        {
            input = with_bit(input, word, bit);
        }
    }
    Ok(Err(input))
}

fn with_bit(input: Input, word: Word, bit: u32) -> Input {
    input.with_word(word, input.word(word) | 1 << bit)
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

/// The clauses of these gates, and that the wanted one is true; with the variable of each gate that has one.
fn clauses(
    gates: &Gates,
    cone: &[usize],
    wanted: Gate,
    stop: &Stop,
) -> Result<(Vec<Option<u32>>, Clauses), LimitReached> {
    let mut variables = vec![None; gates.len()];
    for (variable, number) in (0..).zip(cone) {
        variables[*number] = Some(variable);
    }
    let mut clauses = Clauses::default();
    for (number, output) in variables.iter().enumerate() {
        let Some(output) = output.map(Literal::positive) else {
            continue;
        };
        if number.is_multiple_of(GATES_BETWEEN_CHECKS) {
            stop.check()?;
        }
        match gates.driver(number) {
            Driver::And(a, b) => {
                let [a, b] = [a, b].map(|input| literal(&variables, input));
                clauses.push(&[output.not(), a]);
                clauses.push(&[output.not(), b]);
                clauses.push(&[output, a.not(), b.not()]);
            }
            Driver::False => clauses.push(&[output.not()]),
            Driver::Input(..) | Driver::Free(_) => {}
        }
    }
    clauses.push(&[literal(&variables, wanted)]);
    Ok((variables, clauses))
}

/// The literal of a gate.
///
/// # Panics
/// If it has none.
fn literal(variables: &[Option<u32>], gate: Gate) -> Literal {
    let variable = variables[gate.number()];
    let variable = variable.expect("the gates below one of the cone are in the cone");
    Literal::positive(variable).negated_if(gate.is_inverted())
}
