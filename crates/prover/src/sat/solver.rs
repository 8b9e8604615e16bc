//! The search: conflict-driven clause learning.
//!
//! Two literals of every clause are watched; a decision takes the most active variable with its last value; a conflict
//! gives the clause of the first unique implication point, less the literals that the others imply. The counts of
//! conflicts between restarts follow Luby's sequence, and half of the learnt clauses are dropped from time to time.
//! There is no clock and no random number, so the result is the same on every machine.
//!
//! A literal that is assigned without decisions gets a learnt unit clause, which later clauses can name as a hint.

use super::clauses::{Clauses, Literal};
use super::order::Order;
use super::proof::Refutation;

/// The result of a search.
pub(crate) enum Outcome {
    /// A value for each variable.
    Model(Vec<bool>),
    /// There is no solution.
    Refuted(Box<Refutation>),
}

/// The caller's limit of the search.
pub(crate) trait Work {
    /// Why the search ends without a result.
    type Limit;

    /// Called for every decision.
    fn decision(&mut self) -> Result<(), Self::Limit>;

    /// Called for every conflict, with the memory that its clause and proof take, in bytes.
    fn conflict(&mut self, bytes: usize) -> Result<(), Self::Limit>;
}

/// A clause that is watched by a literal.
#[derive(Clone, Copy)]
struct Watch {
    clause: u32,
    /// Another literal of the clause. If it is true there is nothing to do.
    blocker: Literal,
}

/// In place of the reason of a decided variable: no clause implies it.
const NO_CLAUSE: u32 = u32::MAX;
/// The conflicts before the first restart.
const CONFLICTS_PER_RESTART: u64 = 64;
/// The count of learnt clauses at which half of them are dropped, and its increase each time.
const MAX_LEARNT: usize = 2_000;
const MORE_LEARNT: usize = 500;
/// Learnt clauses whose literals come from at most this many levels are never dropped.
const GLUE: u32 = 2;

/// The mark of a variable while a conflict is analysed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    None,
    /// It is in the clause, or was resolved.
    Seen,
    /// It is implied by variables of the clause.
    Implied,
    /// It isn't implied by them.
    Free,
}

struct Solver {
    clauses: Clauses,
    /// The count of clauses of the formula.
    given: usize,
    /// For each learnt clause, the clauses that imply it.
    hints: Vec<Vec<u32>>,
    /// The watched learnt clauses, with the count of levels of their literals.
    learnt: Vec<(u32, u32)>,
    max_learnt: usize,
    watches: Vec<Vec<Watch>>,
    /// For each literal, whether it is true. Neither literal of an open variable is.
    is_true: Vec<bool>,
    levels: Vec<u32>,
    reasons: Vec<u32>,
    /// The unit clause of each variable that is assigned without decisions.
    units: Vec<u32>,
    /// The last value of each variable.
    phases: Vec<bool>,
    trail: Vec<Literal>,
    /// The place of each assigned variable in the trail.
    places: Vec<u32>,
    /// The length of the trail at each decision.
    decisions: Vec<usize>,
    /// The literals of the trail that were propagated.
    propagated: usize,
    order: Order,
    marks: Vec<Mark>,
    marked: Vec<u32>,
}

/// A solution of the clauses, or a checked proof that there is none.
///
/// # Errors
/// If the caller ends the search.
pub(crate) fn solve<W: Work>(
    variables: u32,
    formula: Clauses,
    work: &mut W,
) -> Result<Outcome, W::Limit> {
    // A refutation is checked against this copy, which the search can't change.
    let mut solver = Solver::new(variables, formula.clone());
    if solver.start().is_err() {
        return Ok(solver.refuted(variables, formula));
    }
    let mut restarts = 0;
    let mut conflicts_left = CONFLICTS_PER_RESTART;
    loop {
        let conflict = solver.propagate();
        if solver.decisions.is_empty() {
            solver.note_units();
        }
        let Some(conflict) = conflict else {
            if conflicts_left == 0 {
                restarts += 1;
                conflicts_left = CONFLICTS_PER_RESTART * luby(restarts);
                solver.undo(0);
                solver.drop_clauses();
                continue;
            }
            work.decision()?;
            match solver.next_decision() {
                Some(literal) => {
                    solver.decisions.push(solver.trail.len());
                    solver.assign(literal, NO_CLAUSE);
                }
                None => {
                    let value = |variable| solver.is_true[Literal::positive(variable).index()];
                    return Ok(Outcome::Model((0..variables).map(value).collect()));
                }
            }
            continue;
        };
        if solver.decisions.is_empty() {
            solver.learn_empty(conflict);
            return Ok(solver.refuted(variables, formula));
        }
        work.conflict(solver.learn(conflict))?;
        conflicts_left = conflicts_left.saturating_sub(1);
    }
}

/// Luby's sequence from its second element: 1, 2, 1, 1, 2, 4, …
fn luby(number: u64) -> u64 {
    let mut number = number + 1;
    loop {
        let bits = u64::BITS - number.leading_zeros();
        if number + 1 == 1 << bits {
            return 1 << (bits - 1);
        }
        number -= (1 << (bits - 1)) - 1;
    }
}

impl Solver {
    fn new(variables: u32, clauses: Clauses) -> Solver {
        let count = variables as usize;
        Solver {
            given: clauses.len(),
            clauses,
            hints: Vec::new(),
            learnt: Vec::new(),
            max_learnt: MAX_LEARNT,
            watches: vec![Vec::new(); 2 * count],
            is_true: vec![false; 2 * count],
            levels: vec![0; count],
            reasons: vec![NO_CLAUSE; count],
            units: vec![NO_CLAUSE; count],
            phases: vec![false; count],
            trail: Vec::new(),
            places: vec![0; count],
            decisions: Vec::new(),
            propagated: 0,
            order: Order::new(variables),
            marks: vec![Mark::None; count],
            marked: Vec::new(),
        }
    }

    /// Watches the clauses of the formula and assigns the literals of its unit clauses. If two of these contradict each
    /// other, learns the empty clause.
    fn start(&mut self) -> Result<(), ()> {
        for number in 0..self.given {
            match *self.clauses.get(number) {
                [] => {
                    self.add(&[], vec![number as u32]);
                    return Err(());
                }
                [literal] if self.is_true[literal.not().index()] => {
                    self.learn_empty(number as u32);
                    return Err(());
                }
                [literal] if !self.is_true[literal.index()] => {
                    self.assign(literal, number as u32);
                    self.units[literal.variable()] = number as u32;
                }
                [_] => {}
                _ => self.watch(number as u32),
            }
        }
        Ok(())
    }

    fn refuted(&self, variables: u32, formula: Clauses) -> Outcome {
        let checked = Refutation::checked(variables, formula, &self.clauses, &self.hints);
        Outcome::Refuted(Box::new(checked))
    }

    /// Adds a clause with the clauses that imply it. Returns its number.
    fn add(&mut self, clause: &[Literal], hints: Vec<u32>) -> u32 {
        self.clauses.push(clause);
        self.hints.push(hints);
        self.clauses.len() as u32 - 1
    }

    /// Watches the first two literals of a clause.
    fn watch(&mut self, clause: u32) {
        if let [first, second, ..] = *self.clauses.get(clause as usize) {
            let watch = |blocker| Watch { clause, blocker };
            self.watches[first.index()].push(watch(second));
            self.watches[second.index()].push(watch(first));
        }
    }

    fn assign(&mut self, literal: Literal, reason: u32) {
        let variable = literal.variable();
        self.is_true[literal.index()] = true;
        self.levels[variable] = self.decisions.len() as u32;
        self.reasons[variable] = reason;
        self.places[variable] = self.trail.len() as u32;
        self.trail.push(literal);
    }

    /// Assigns what the trail implies. Returns a clause all of whose literals are false, if there is one.
    fn propagate(&mut self) -> Option<u32> {
        while let Some(literal) = self.trail.get(self.propagated) {
            self.propagated += 1;
            let is_false = literal.not();
            let mut watches = std::mem::take(&mut self.watches[is_false.index()]);
            let mut kept = 0;
            let mut conflict = None;
            for at in 0..watches.len() {
                let watch = watches[at];
                if conflict.is_some() || self.is_true[watch.blocker.index()] {
                    watches[kept] = watch;
                    kept += 1;
                    continue;
                }
                match self.visit(watch.clause, is_false) {
                    Visit::Moved => continue,
                    Visit::True(blocker) => watches[kept] = Watch { blocker, ..watch },
                    Visit::Unit(literal) => {
                        watches[kept] = Watch {
                            blocker: literal,
                            ..watch
                        };
                        match self.is_true[literal.not().index()] {
                            true => conflict = Some(watch.clause),
                            false => self.assign(literal, watch.clause),
                        }
                    }
                }
                kept += 1;
            }
            watches.truncate(kept);
            self.watches[is_false.index()] = watches;
            if conflict.is_some() {
                return conflict;
            }
        }
        None
    }

    /// Looks for another literal to watch in a clause, in place of a false one.
    fn visit(&mut self, number: u32, is_false: Literal) -> Visit {
        let clause = self.clauses.get_mut(number as usize);
        if clause[0] == is_false {
            clause.swap(0, 1);
        }
        let first = clause[0];
        if self.is_true[first.index()] {
            return Visit::True(first);
        }
        let is_true = &self.is_true;
        let open = |literal: &Literal| !is_true[literal.not().index()];
        let Some(place) = clause[2..].iter().position(open) else {
            return Visit::Unit(first);
        };
        clause.swap(1, 2 + place);
        let watched = clause[1];
        self.watches[watched.index()].push(Watch {
            clause: number,
            blocker: first,
        });
        Visit::Moved
    }

    /// Learns a unit clause for each literal that is assigned without decisions.
    fn note_units(&mut self) {
        for at in 0..self.trail.len() {
            let literal = self.trail[at];
            let variable = literal.variable();
            if self.units[variable] != NO_CLAUSE {
                continue;
            }
            let reason = self.reasons[variable];
            let others = self.clauses.get(reason as usize).iter();
            let others = others.filter(|other| **other != literal);
            let mut hints: Vec<u32> = others.map(|other| self.units[other.variable()]).collect();
            hints.push(reason);
            self.units[variable] = self.add(&[literal], hints);
        }
    }

    /// Learns the empty clause from a clause whose literals are all false without decisions.
    fn learn_empty(&mut self, conflict: u32) {
        let literals = self.clauses.get(conflict as usize).iter();
        let mut hints: Vec<u32> = literals.map(|own| self.units[own.variable()]).collect();
        hints.push(conflict);
        self.add(&[], hints);
    }

    /// Learns a clause from a conflict, goes back to the level where it implies a literal, and assigns that. Returns the
    /// memory that it takes, in bytes.
    fn learn(&mut self, conflict: u32) -> usize {
        let (mut clause, mut hints) = self.resolve(conflict);
        self.minimise(&mut clause, &mut hints);
        let hints = self.in_order(hints, conflict);
        for variable in self.marked.drain(..) {
            self.marks[variable as usize] = Mark::None;
        }
        self.order.decay();
        // The second literal is one of the level to go back to.
        let level = |literal: &Literal| self.levels[literal.variable()];
        let mut back = 0;
        if let Some(place) = (1..clause.len()).max_by_key(|place| level(&clause[*place])) {
            clause.swap(1, place);
            back = level(&clause[1]) as usize;
        }
        let mut levels: Vec<u32> = clause.iter().map(level).collect();
        levels.sort_unstable();
        levels.dedup();
        let bytes = 64 + 4 * (clause.len() + hints.len());
        let number = self.add(&clause, hints);
        self.undo(back);
        if clause.len() == 1 {
            self.units[clause[0].variable()] = number;
        } else {
            self.learnt.push((number, levels.len() as u32));
            self.watch(number);
        }
        self.assign(clause[0], number);
        bytes
    }

    /// The clause of the first unique implication point, with that literal first, and the variables whose reasons were
    /// resolved with the conflict.
    fn resolve(&mut self, conflict: u32) -> (Vec<Literal>, Vec<u32>) {
        let level = self.decisions.len() as u32;
        let mut clause = vec![Literal::positive(0)];
        let mut resolved = Vec::new();
        let (mut open, mut reason, mut at) = (0, conflict, self.trail.len());
        loop {
            for place in 0..self.clauses.get(reason as usize).len() {
                let literal = self.clauses.get(reason as usize)[place];
                let variable = literal.variable();
                if self.marks[variable] != Mark::None {
                    continue;
                }
                self.mark(variable, Mark::Seen);
                if self.levels[variable] == 0 {
                    resolved.push(variable as u32);
                    continue;
                }
                self.order.bump(variable as u32);
                match self.levels[variable] == level {
                    true => open += 1,
                    false => clause.push(literal),
                }
            }
            let literal = loop {
                at -= 1;
                let literal = self.trail[at];
                if self.marks[literal.variable()] == Mark::Seen {
                    break literal;
                }
            };
            open -= 1;
            if open == 0 {
                clause[0] = literal.not();
                return (clause, resolved);
            }
            resolved.push(literal.variable() as u32);
            reason = self.reasons[literal.variable()];
        }
    }

    fn mark(&mut self, variable: usize, mark: Mark) {
        if self.marks[variable] == Mark::None {
            self.marked.push(variable as u32);
        }
        self.marks[variable] = mark;
    }

    /// Removes literals that the others imply; notes the variables whose reasons show it.
    fn minimise(&mut self, clause: &mut Vec<Literal>, resolved: &mut Vec<u32>) {
        let mut kept = 1;
        for place in 1..clause.len() {
            let literal = clause[place];
            if self.is_implied(literal.variable(), resolved) {
                resolved.push(literal.variable() as u32);
            } else {
                clause[kept] = literal;
                kept += 1;
            }
        }
        clause.truncate(kept);
    }

    /// Whether variables of the clause imply a variable, by its reason and the reasons of variables there. Notes these.
    fn is_implied(&mut self, variable: usize, resolved: &mut Vec<u32>) -> bool {
        // Each variable with the index of the next literal in its reason.
        let mut path = vec![(variable, 0)];
        while let Some((at, place)) = path.last_mut() {
            let (at, reason) = (*at, self.reasons[*at]);
            let next = match reason {
                NO_CLAUSE => None,
                reason => Some(self.clauses.get(reason as usize)),
            };
            let Some(reason) = next else {
                // A decision: nothing on the path is implied.
                for (failed, _) in path {
                    if self.marks[failed] != Mark::Seen {
                        self.mark(failed, Mark::Free);
                    }
                }
                return false;
            };
            let Some(literal) = reason.get(*place) else {
                path.pop();
                if !path.is_empty() {
                    self.mark(at, Mark::Implied);
                    resolved.push(at as u32);
                }
                continue;
            };
            *place += 1;
            let other = literal.variable();
            if other == at {
                continue;
            }
            match self.marks[other] {
                Mark::Seen | Mark::Implied => {}
                Mark::None if self.levels[other] == 0 => {
                    self.mark(other, Mark::Implied);
                    resolved.push(other as u32);
                }
                Mark::None => path.push((other, 0)),
                Mark::Free => {
                    for (failed, _) in path {
                        if self.marks[failed] != Mark::Seen {
                            self.mark(failed, Mark::Free);
                        }
                    }
                    return false;
                }
            }
        }
        true
    }

    /// The hints of a clause: the reasons of resolved variables in the order in which these were assigned, then the
    /// conflict.
    fn in_order(&self, mut resolved: Vec<u32>, conflict: u32) -> Vec<u32> {
        resolved.sort_unstable_by_key(|variable| self.places[*variable as usize]);
        let reasons = resolved.into_iter().map(|variable| {
            let variable = variable as usize;
            match self.levels[variable] {
                0 => self.units[variable],
                _ => self.reasons[variable],
            }
        });
        reasons.chain([conflict]).collect()
    }

    /// Goes back to a level.
    fn undo(&mut self, level: usize) {
        let Some(start) = self.decisions.get(level).copied() else {
            return;
        };
        for literal in self.trail.drain(start..) {
            let variable = literal.variable();
            self.is_true[literal.index()] = false;
            self.phases[variable] = literal == Literal::positive(variable as u32);
            self.order.insert(variable as u32);
        }
        self.decisions.truncate(level);
        self.propagated = start;
    }

    /// The next open variable with its last value.
    fn next_decision(&mut self) -> Option<Literal> {
        loop {
            let variable = self.order.pop()?;
            let literal = Literal::positive(variable);
            if !self.is_true[literal.index()] && !self.is_true[literal.not().index()] {
                return Some(literal.negated_if(!self.phases[variable as usize]));
            }
        }
    }

    /// Drops half of the learnt clauses, if there are too many; called without decisions.
    fn drop_clauses(&mut self) {
        if self.learnt.len() < self.max_learnt {
            return;
        }
        self.max_learnt += MORE_LEARNT;
        // Of equal ones the older are dropped.
        self.learnt
            .sort_by_key(|(number, levels)| (*levels, std::cmp::Reverse(*number)));
        let half = self.learnt.len() / 2;
        let mut is_dropped = vec![false; self.clauses.len()];
        let mut place = 0;
        self.learnt.retain(|(number, levels)| {
            place += 1;
            let is_kept = place <= half || *levels <= GLUE;
            is_dropped[*number as usize] = !is_kept;
            is_kept
        });
        for watches in &mut self.watches {
            watches.retain(|watch| !is_dropped[watch.clause as usize]);
        }
    }
}

/// The result of looking at a watched clause.
enum Visit {
    /// Another literal is watched.
    Moved,
    /// This literal is true.
    True(Literal),
    /// All literals but this are false.
    Unit(Literal),
}
