//! A checker of LRAT proofs, from the published format, for the tests of certificates.
//!
//! It reads the two texts and shares nothing with the solver. Each line of a proof has the number of its clause, the
//! literals, 0, the numbers of the clauses that imply it by unit propagation, 0. Deletions are obeyed; steps with
//! negative numbers, which are resolution asymmetric tautologies, are refused.
//!
//! Source: L. Cruz-Filipe et al., "Efficient Certified RAT Verification" (2017).

use std::collections::{HashMap, HashSet};

/// Checks that a proof derives the empty clause from a formula in the form of DIMACS.
///
/// # Errors
/// If it doesn't, with the line.
pub fn check(formula: &str, proof: &str) -> Result<(), String> {
    let (variables, mut clauses) = read_formula(formula)?;
    for (line, number) in proof.lines().zip(1..) {
        let at = |why: &str| format!("line {number}: {why}");
        let (own, rest) = line.split_once(' ').ok_or(at("no number"))?;
        let own: u64 = own.parse().map_err(|_| at("no number"))?;
        if let Some(deleted) = rest.strip_prefix("d ") {
            for name in numbers(deleted).ok_or(at("no list"))? {
                clauses
                    .remove(&(name.unsigned_abs()))
                    .ok_or(at("no such clause"))?;
            }
            continue;
        }
        let (clause, hints) = split_step(rest).ok_or(at("no step"))?;
        if clauses.contains_key(&own) {
            return Err(at("the number is in use"));
        }
        if clause
            .iter()
            .any(|literal| literal.unsigned_abs() > variables)
        {
            return Err(at("no such variable"));
        }
        is_implied(&clauses, &clause, &hints).map_err(at)?;
        if clause.is_empty() {
            return Ok(());
        }
        clauses.insert(own, clause);
    }
    Err("the empty clause is not derived".to_owned())
}

/// The count of variables and the clauses by their numbers.
fn read_formula(text: &str) -> Result<(u64, HashMap<u64, Vec<i64>>), String> {
    let mut lines = text.lines();
    let title: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let ["p", "cnf", variables, count] = title[..] else {
        return Err("the formula has no title".to_owned());
    };
    let variables: u64 = variables.parse().map_err(|_| "no count of variables")?;
    let mut clauses = HashMap::new();
    for (line, number) in lines.zip(1..) {
        let clause = numbers(line).ok_or(format!("clause {number} has another form"))?;
        if clause
            .iter()
            .any(|literal| literal.unsigned_abs() > variables)
        {
            return Err(format!("clause {number} has an unknown variable"));
        }
        clauses.insert(number, clause);
    }
    match count.parse() == Ok(clauses.len()) {
        true => Ok((variables, clauses)),
        false => Err("the formula has another count of clauses".to_owned()),
    }
}

/// The numbers of a list that ends with 0.
fn numbers(text: &str) -> Option<Vec<i64>> {
    let list: Option<Vec<i64>> = text.split(' ').map(|number| number.parse().ok()).collect();
    let mut list = list?;
    (list.pop() == Some(0) && !list.contains(&0)).then_some(list)
}

/// The clause and the hints of a step.
fn split_step(text: &str) -> Option<(Vec<i64>, Vec<i64>)> {
    let list: Option<Vec<i64>> = text.split(' ').map(|number| number.parse().ok()).collect();
    let mut lists = list?;
    let end = lists.iter().position(|number| *number == 0)?;
    let mut hints = lists.split_off(end + 1);
    lists.pop();
    (hints.pop() == Some(0) && !hints.contains(&0)).then_some((lists, hints))
}

/// Whether the hints, each of which has one literal left or none, contradict the negated clause.
fn is_implied(
    clauses: &HashMap<u64, Vec<i64>>,
    clause: &[i64],
    hints: &[i64],
) -> Result<(), &'static str> {
    let mut is_true: HashSet<i64> = clause.iter().map(|literal| -literal).collect();
    for hint in hints {
        let hint = u64::try_from(*hint).map_err(|_| "a step of another kind")?;
        let hint = clauses.get(&hint).ok_or("no such clause")?;
        let mut open = hint.iter().filter(|literal| !is_true.contains(&-**literal));
        match (open.next(), open.next()) {
            (None, _) => return Ok(()),
            (Some(literal), None) => {
                is_true.insert(*literal);
            }
            (Some(_), Some(_)) => return Err("a hint with two literals left"),
        }
    }
    Err("the hints don't imply the clause")
}
