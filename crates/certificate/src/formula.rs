//! The formula that two filters differ as DIMACS, and its refutation as LRAT.

use std::fmt::{Display, Write as _};

use tamis_prover::Refutation;

/// The clauses in the form of DIMACS.
pub(crate) fn dimacs(refutation: &Refutation) -> String {
    let clauses = refutation.clauses();
    let mut text = format!("p cnf {} {}\n", refutation.variables(), clauses.len());
    for clause in clauses {
        list(&mut text, clause);
        text.push_str("0\n");
    }
    text
}

/// The proof in the form of LRAT: for each step the number of its clause, the clause, and the numbers of those that
/// imply it.
pub(crate) fn lrat(refutation: &Refutation) -> String {
    let mut text = String::new();
    let first = refutation.clauses().len() + 1;
    for (number, (clause, hints)) in (first..).zip(refutation.steps()) {
        let _ = write!(text, "{number} ");
        list(&mut text, clause);
        text.push_str("0 ");
        list(&mut text, hints);
        text.push_str("0\n");
    }
    text
}

fn list(text: &mut String, numbers: impl Iterator<Item = impl Display>) {
    for number in numbers {
        let _ = write!(text, "{number} ");
    }
}
