//! The solver on small random formulas, compared with trying all values, and on pigeons.

use super::{Clauses, Literal, Outcome, Work, solve};

/// Work with a limit of conflicts.
struct Limit(u64);

impl Work for Limit {
    type Limit = ();

    fn decision(&mut self) -> Result<(), ()> {
        Ok(())
    }

    fn conflict(&mut self, _: usize) -> Result<(), ()> {
        self.0 = self.0.checked_sub(1).ok_or(())?;
        Ok(())
    }
}

/// A generator of numbers: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A formula as variables with their signs.
type Formula = Vec<Vec<(u32, bool)>>;

fn clauses(formula: &Formula) -> Clauses {
    let mut clauses = Clauses::default();
    for clause in formula {
        let literal = |(variable, is_negated): &(u32, bool)| {
            Literal::positive(*variable).negated_if(*is_negated)
        };
        clauses.push(&clause.iter().map(literal).collect::<Vec<_>>());
    }
    clauses
}

fn is_solved(formula: &Formula, value: impl Fn(u32) -> bool) -> bool {
    let holds = |clause: &Vec<(u32, bool)>| clause.iter().any(|(own, sign)| value(*own) != *sign);
    formula.iter().all(holds)
}

/// Clauses of at most three different variables; some have one.
fn random(random: &mut Random, variables: u32) -> Formula {
    let count = u64::from(variables) * (36 + random.below(20)) / 10;
    let clause = |random: &mut Random| {
        let length = if random.below(10) == 0 { 1 } else { 3 };
        let mut clause: Vec<(u32, bool)> = Vec::new();
        while clause.len() < length {
            let variable = random.below(variables.into()) as u32;
            if clause.iter().all(|(own, _)| *own != variable) {
                clause.push((variable, random.below(2) == 0));
            }
        }
        clause
    };
    (0..count).map(|_| clause(random)).collect()
}

#[test]
fn answers_are_those_of_all_values() {
    let mut source = Random(88_172_645_463_325_252);
    let mut found = [0, 0];
    for _ in 0..500 {
        let variables = 5 + source.below(8) as u32;
        let formula = random(&mut source, variables);
        let of_bits = |bits: u32| is_solved(&formula, |variable| bits >> variable & 1 == 1);
        let is_solvable = (0..1 << variables).any(of_bits);
        match solve(variables, clauses(&formula), &mut Limit(100_000)) {
            Ok(Outcome::Model(model)) => {
                assert!(is_solved(&formula, |variable| model[variable as usize]));
            }
            // The steps were checked.
            Ok(Outcome::Refuted(refutation)) => {
                assert!(!is_solvable);
                assert_eq!(refutation.clauses().len(), formula.len());
            }
            Err(()) => panic!("such formulas have few conflicts"),
        }
        found[usize::from(is_solvable)] += 1;
    }
    assert!(found.iter().all(|count| *count > 100), "{found:?}");
}

/// The formula that every pigeon sits in a hole, at most one in each.
fn pigeons(pigeons: u32, holes: u32) -> Formula {
    let sits = |pigeon: u32, hole: u32| pigeon * holes + hole;
    let mut formula: Formula = Vec::new();
    for pigeon in 0..pigeons {
        formula.push((0..holes).map(|hole| (sits(pigeon, hole), false)).collect());
        for other in 0..pigeon {
            let both = |hole| vec![(sits(pigeon, hole), true), (sits(other, hole), true)];
            formula.extend((0..holes).map(both));
        }
    }
    formula
}

#[test]
fn limits_of_conflicts_hold_and_restarts_come_to_an_end() {
    let outcome = solve(56, clauses(&pigeons(8, 7)), &mut Limit(1_000_000));
    assert!(matches!(outcome, Ok(Outcome::Refuted(_))));
    let outcome = solve(49, clauses(&pigeons(7, 7)), &mut Limit(1_000_000));
    assert!(matches!(outcome, Ok(Outcome::Model(_))));
    assert!(solve(110, clauses(&pigeons(11, 10)), &mut Limit(100)).is_err());
}

#[test]
fn formulas_without_decisions_have_short_proofs() {
    for formula in [
        vec![vec![]],
        vec![vec![(0, false)], vec![(0, true)]],
        vec![
            vec![(0, false)],
            vec![(0, true), (1, false)],
            vec![(1, true)],
        ],
    ] {
        let Ok(Outcome::Refuted(refutation)) = solve(2, clauses(&formula), &mut Limit(1)) else {
            panic!("there is no solution: {formula:?}");
        };
        assert!(refutation.steps().len() <= 2, "{formula:?}");
    }
}
