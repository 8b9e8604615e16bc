//! A SAT solver whose refutations are checked.
//!
//! [`solver`] searches, with conflict-driven clause learning, and notes for every learnt clause the clauses that imply
//! it. If there is no solution these notes are a proof in the form of LRAT: [`proof`] keeps the steps that the
//! empty clause needs, and checks them one by one. The answer *no solution* is given only after that check, so the
//! search is not trusted.
//!
//! Prior art: J. Marques-Silva and K. Sakallah, "GRASP" (1996); M. Moskewicz et al., "Chaff" (2001); N. Eén and
//! N. Sörensson, "An Extensible SAT-solver" (2003); L. Cruz-Filipe et al., "Efficient Certified RAT Verification" (2017).

mod clauses;
mod order;
mod proof;
mod solver;

pub(crate) use clauses::{Clauses, Literal};
pub use proof::Refutation;
pub(crate) use solver::{Outcome, Work, solve};

#[cfg(test)]
mod tests;
