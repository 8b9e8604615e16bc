//! Refutations: the clauses of a formula without a solution, and a checked proof.
//!
//! A step of the proof is a clause and the earlier clauses that imply it. If the literals of the clause are false, each
//! of these clauses in turn has one literal left that must be true, and the last has none. The last step is the empty
//! clause. This is LRAT, without its steps for resolution asymmetric tautologies and for deletions.

use super::clauses::{Clauses, Literal};

/// A formula without a solution, and the proof, which was checked.
#[derive(Clone, Debug)]
pub struct Refutation {
    variables: u32,
    /// The clauses of the formula.
    formula: Clauses,
    /// The clauses of the steps.
    derived: Clauses,
    /// For each step the numbers of the clauses that imply it; those of steps follow those of the formula.
    hints: Vec<Vec<u32>>,
}

impl Refutation {
    /// The refutation of a formula, reduced to the steps that the last one needs. `all` has the clauses of the formula,
    /// then the learnt ones; `hints` has the hints of the learnt ones.
    ///
    /// # Panics
    /// If a step isn't implied by its hints or the last isn't the empty clause: a bug of the solver.
    pub(super) fn checked(
        variables: u32,
        formula: Clauses,
        all: &Clauses,
        hints: &[Vec<u32>],
    ) -> Refutation {
        let count = formula.len();
        let mut is_needed = vec![false; hints.len()];
        if let Some(last) = is_needed.last_mut() {
            *last = true;
        }
        for step in (0..hints.len()).rev() {
            if is_needed[step] {
                for hint in &hints[step] {
                    if let Some(earlier) = (*hint as usize).checked_sub(count) {
                        is_needed[earlier] = true;
                    }
                }
            }
        }
        let mut refutation = Refutation {
            variables,
            formula,
            derived: Clauses::default(),
            hints: Vec::new(),
        };
        let mut numbers = vec![0; hints.len()];
        for step in (0..hints.len()).filter(|step| is_needed[*step]) {
            numbers[step] = (count + refutation.derived.len()) as u32;
            refutation.derived.push(all.get(count + step));
            let renumbered = |hint: &u32| match (*hint as usize).checked_sub(count) {
                Some(step) => numbers[step],
                None => *hint,
            };
            let own = hints[step].iter().map(renumbered).collect();
            refutation.hints.push(own);
        }
        if let Err(step) = refutation.check() {
            panic!("step {step} of a refutation isn't implied by the clauses that it names");
        }
        refutation
    }

    /// Checks every step.
    ///
    /// # Errors
    /// The first step that is not implied; the count of steps if the last is not the empty clause.
    fn check(&self) -> Result<(), usize> {
        let mut is_true = vec![false; 2 * self.variables as usize];
        let mut assigned: Vec<Literal> = Vec::new();
        for (step, hints) in self.hints.iter().enumerate() {
            let number = self.formula.len() + step;
            for literal in self.derived.get(step) {
                is_true[literal.not().index()] = true;
                assigned.push(literal.not());
            }
            let mut is_implied = false;
            for hint in hints {
                let clause = self
                    .clause(*hint as usize)
                    .filter(|_| (*hint as usize) < number);
                let clause = clause.ok_or(step)?;
                let mut open = clause
                    .iter()
                    .filter(|literal| !is_true[literal.not().index()]);
                match (open.next(), open.next()) {
                    (None, _) => {
                        is_implied = true;
                        break;
                    }
                    (Some(literal), None) => {
                        is_true[literal.index()] = true;
                        assigned.push(*literal);
                    }
                    (Some(_), Some(_)) => return Err(step),
                }
            }
            if !is_implied {
                return Err(step);
            }
            for literal in assigned.drain(..) {
                is_true[literal.index()] = false;
            }
        }
        match self.derived.len().checked_sub(1) {
            Some(last) if self.derived.get(last).is_empty() => Ok(()),
            _ => Err(self.derived.len()),
        }
    }

    /// A clause by its number.
    fn clause(&self, number: usize) -> Option<&[Literal]> {
        match number.checked_sub(self.formula.len()) {
            None => Some(self.formula.get(number)),
            Some(step) => (step < self.derived.len()).then(|| self.derived.get(step)),
        }
    }

    /// The count of variables.
    pub fn variables(&self) -> u32 {
        self.variables
    }

    /// The clauses of the formula, as the numbers of DIMACS.
    pub fn clauses(&self) -> impl ExactSizeIterator<Item = impl Iterator<Item = i32>> {
        (0..self.formula.len()).map(|number| dimacs(self.formula.get(number)))
    }

    /// The steps of the proof: each clause as the numbers of DIMACS, and the clauses that imply it, counted from 1.
    pub fn steps(
        &self,
    ) -> impl ExactSizeIterator<Item = (impl Iterator<Item = i32>, impl Iterator<Item = u32>)> {
        (0..self.hints.len()).map(|step| {
            let hints = self.hints[step].iter().map(|hint| hint + 1);
            (dimacs(self.derived.get(step)), hints)
        })
    }
}

fn dimacs(clause: &[Literal]) -> impl Iterator<Item = i32> {
    clause.iter().map(|literal| literal.dimacs())
}
