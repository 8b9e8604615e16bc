//! Conditions: from a diagram of arguments to a readable predicate.
//!
//! A diagram is cut between arguments. Each node after the first argument is a remaining condition, and the values
//! that lead to it are a set: the whole is "the first argument is in this set and the remaining condition holds",
//! or the same for another set and condition. Implications shorten this: if one remaining condition implies
//! another, the values of the latter may be added to those of the former. Each condition is also tried as a
//! negation, and the shorter form is kept.
//!
//! The predicate is always equivalent to the diagram; if it exceeds the limits, there is none.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::{ArgIndex, VariableIndex, Word};
use tamis_prover::{Function, Limited, Relation, Space, Variable, VariableKind, View};
use tamis_rules::{CmpOp, Operand, OperandSource, Part, Predicate, Test};

use crate::arg_values;
use crate::cases::{CaseLimits, Wording};

/// The most different remaining conditions after one argument.
const MAX_EXITS: usize = 128;

/// A predicate and its cost for a reader.
#[derive(Clone, Debug)]
pub(crate) struct CostedPredicate {
    pub(crate) predicate: Predicate,
    /// About one for each operand and each value.
    pub(crate) cost: usize,
    tests: usize,
}

/// The predicates so far, by their diagrams.
pub(crate) struct Conditions {
    max_tests: usize,
    wording: Wording,
    known: BTreeMap<Function, Option<CostedPredicate>>,
}

impl Conditions {
    pub(crate) fn new(limits: &CaseLimits) -> Conditions {
        Conditions {
            max_tests: limits.max_tests,
            wording: limits.wording,
            known: BTreeMap::new(),
        }
    }

    /// The predicate of a condition; `None` if it exceeds the limits.
    pub(crate) fn predicate_of(
        &mut self,
        space: &mut Space,
        condition: Function,
    ) -> Limited<Option<Predicate>> {
        Ok(self
            .costed(space, condition)?
            .map(|costed| costed.predicate))
    }

    /// As [`predicate_of`](Self::predicate_of), with the cost.
    pub(crate) fn costed(
        &mut self,
        space: &mut Space,
        condition: Function,
    ) -> Limited<Option<CostedPredicate>> {
        match condition {
            Function::TRUE => return Ok(Some(CostedPredicate::literal(Predicate::True))),
            Function::FALSE => return Ok(Some(CostedPredicate::literal(Predicate::False))),
            _ => {}
        }
        if let Some(costed) = self.known.get(&condition) {
            return Ok(costed.clone());
        }
        let inverse = space.choose(condition, Function::FALSE, Function::TRUE)?;
        let plain = self.directly(space, condition)?;
        let inverted = self.directly(space, inverse)?;
        self.known.insert(
            inverse,
            cheaper(inverted.clone(), plain.clone().map(CostedPredicate::not)),
        );
        let costed = cheaper(plain, inverted.map(CostedPredicate::not));
        self.known.insert(condition, costed.clone());
        Ok(costed)
    }

    /// Converts a condition without negating it.
    fn directly(
        &mut self,
        space: &mut Space,
        condition: Function,
    ) -> Limited<Option<CostedPredicate>> {
        let Some(variable) = top(space, condition) else {
            return Ok(None);
        };
        let VariableKind::Bit(word, _) = space.kind(variable) else {
            return self.relation(space, condition);
        };
        let Some(source) = source_of(word) else {
            return Ok(None);
        };
        let (low, high) = Operand {
            source,
            part: Part::Full,
        }
        .words();
        let last = Variable::of_bit(low, 0);
        if exits(space, condition, last, MAX_EXITS).as_deref() != Some(&[Function::TRUE]) {
            return self.by_exits(space, condition, last);
        }
        let mut best = arg_values::predicate_of(space, source, condition, self.wording)?;
        let middle = Variable::of_bit(high, 0);
        let spans_both = exits(space, condition, middle, 1).as_deref() != Some(&[Function::TRUE]);
        if word == high && spans_both {
            best = cheaper(best, self.by_exits(space, condition, middle)?);
        }
        Ok(best.filter(|costed| costed.tests <= self.max_tests))
    }

    /// Cuts a condition after `last`: pairs of values before the cut and the remaining condition after it.
    fn by_exits(
        &mut self,
        space: &mut Space,
        condition: Function,
        last: Variable,
    ) -> Limited<Option<CostedPredicate>> {
        let Some(exits) = exits(space, condition, last, MAX_EXITS) else {
            return Ok(None);
        };
        let implied = implications(space, &exits)?;
        let redundant = redundant(space, &exits, &implied)?;
        let told: Vec<usize> = (0..exits.len())
            .filter(|index| !redundant[*index])
            .collect();
        let mut before = Vec::new();
        for index in &told {
            let all_implied: Vec<usize> = (0..exits.len())
                .filter(|other| implied[*index][*other])
                .collect();
            let needed = all_implied
                .iter()
                .filter(|other| redundant[**other] || *other == index);
            let needed: Vec<Function> = needed.map(|other| exits[*other]).collect();
            let allowed: Vec<Function> = all_implied.iter().map(|other| exits[*other]).collect();
            let least = reaches(space, condition, last, &needed, &mut BTreeMap::new())?;
            let most = reaches(space, condition, last, &allowed, &mut BTreeMap::new())?;
            let (least, most) = (self.costed(space, least)?, self.costed(space, most)?);
            let is_widened = match (&least, &most) {
                (Some(least), Some(most)) => most.cost < least.cost,
                (least, _) => least.is_none(),
            };
            let Some(values) = (if is_widened { most } else { least }) else {
                return Ok(None);
            };
            before.push((values, is_widened));
        }
        let mut terms = Vec::new();
        for (place, index) in told.iter().enumerate() {
            // Values covered by a wider term need not be repeated.
            let mut left = exits[*index];
            for (other, (_, is_widened)) in told.iter().zip(&before) {
                if *is_widened && other != index && implied[*other][*index] {
                    left = space.choose(exits[*other], Function::FALSE, left)?;
                }
            }
            let rest = cheaper(
                self.costed(space, exits[*index])?,
                self.costed(space, left)?,
            );
            let Some(rest) = rest else {
                return Ok(None);
            };
            let at = if exits[*index] == Function::TRUE {
                0
            } else {
                terms.len()
            };
            terms.insert(
                at,
                CostedPredicate::all(vec![before[place].0.clone(), rest]),
            );
        }
        Ok(Some(CostedPredicate::any(terms)).filter(|costed| costed.tests <= self.max_tests))
    }

    /// A condition that only compares two words.
    fn relation(
        &mut self,
        space: &mut Space,
        condition: Function,
    ) -> Limited<Option<CostedPredicate>> {
        let Some(pairs) = compared_pairs(space, condition) else {
            return Ok(None);
        };
        for test in comparisons(&pairs) {
            if space.condition(&test)? == condition {
                return Ok(Some(CostedPredicate::test(test, 2)));
            }
        }
        let View::Branch {
            variable,
            low,
            high,
        } = space.view(condition)
        else {
            return Ok(None);
        };
        let VariableKind::Relation(Relation::Equal(a, b)) = space.kind(variable) else {
            return Ok(None);
        };
        let (less, more) = match space.view(low) {
            View::Branch {
                variable,
                low,
                high,
            } if space.kind(variable) == VariableKind::Relation(Relation::Greater(a, b)) => {
                (low, high)
            }
            View::Branch { .. } | View::Leaf(_) => (low, low),
        };
        let mut terms = Vec::new();
        for (op, rest) in match () {
            () if less == more => vec![(CmpOp::Eq, high), (CmpOp::Ne, low)],
            () if high == more => vec![(CmpOp::Ge, high), (CmpOp::Lt, less)],
            () if high == less => vec![(CmpOp::Le, high), (CmpOp::Gt, more)],
            () => vec![(CmpOp::Eq, high), (CmpOp::Gt, more), (CmpOp::Lt, less)],
        } {
            let (Some(test), Some(rest)) = (between(a, op, b), self.costed(space, rest)?) else {
                return Ok(None);
            };
            if rest.predicate != Predicate::False {
                terms.push(CostedPredicate::all(vec![
                    CostedPredicate::test(test, 2),
                    rest,
                ]));
            }
        }
        Ok(Some(CostedPredicate::any(terms)).filter(|costed| costed.tests <= self.max_tests))
    }
}

/// The implications between exits: `[i][j]` if exit `i` implies exit `j`.
fn implications(space: &mut Space, exits: &[Function]) -> Limited<Vec<Vec<bool>>> {
    let mut implied = Vec::with_capacity(exits.len());
    for exit in exits {
        let mut row = Vec::with_capacity(exits.len());
        for other in exits {
            row.push(space.choose(*exit, *other, Function::TRUE)? == Function::TRUE);
        }
        implied.push(row);
    }
    Ok(implied)
}

/// The exits that are equal to the union of those that imply them.
fn redundant(space: &mut Space, exits: &[Function], implied: &[Vec<bool>]) -> Limited<Vec<bool>> {
    let mut redundant = vec![false; exits.len()];
    for (index, exit) in exits.iter().enumerate() {
        if *exit == Function::TRUE {
            continue;
        }
        let mut union = Function::FALSE;
        for (other, part) in exits.iter().enumerate() {
            if other != index && implied[other][index] {
                union = space.choose(*part, Function::TRUE, union)?;
            }
        }
        redundant[index] = union == *exit;
    }
    Ok(redundant)
}

/// The source of a word; `None` for number and architecture.
fn source_of(word: Word) -> Option<OperandSource> {
    operand_of(word).map(|operand| operand.source)
}

/// The half of a source for a word.
fn operand_of(word: Word) -> Option<Operand> {
    let sources = ArgIndex::ALL
        .into_iter()
        .map(OperandSource::Arg)
        .chain([OperandSource::Ip])
        .chain(
            (0..)
                .map_while(VariableIndex::new)
                .map(OperandSource::Variable),
        );
    sources
        .flat_map(|source| [Part::Low, Part::High].map(|part| Operand { source, part }))
        .find(|operand| {
            let (low, high) = operand.words();
            word == if operand.part == Part::Low { low } else { high }
        })
}

fn between(a: Word, op: CmpOp, b: Word) -> Option<Predicate> {
    let (left, right) = (operand_of(a)?, operand_of(b)?);
    Some(Predicate::Test(Test::Between { left, op, right }))
}

/// Every single comparison of these pairs of words, or of the arguments that consist of two pairs.
fn comparisons(pairs: &[(Word, Word)]) -> Vec<Predicate> {
    let mut operands = Vec::new();
    for (a, b) in pairs {
        let (Some(left), Some(right)) = (operand_of(*a), operand_of(*b)) else {
            continue;
        };
        operands.push((left, right));
        let full = |operand: Operand| Operand {
            part: Part::Full,
            ..operand
        };
        operands.push((full(left), full(right)));
    }
    let tests = operands.into_iter().flat_map(|(left, right)| {
        CmpOp::ALL.map(|op| Predicate::Test(Test::Between { left, op, right }))
    });
    tests.collect()
}

fn cheaper(
    one: Option<CostedPredicate>,
    other: Option<CostedPredicate>,
) -> Option<CostedPredicate> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.cost < one.cost { other } else { one }),
        (one, other) => one.or(other),
    }
}

impl CostedPredicate {
    fn literal(predicate: Predicate) -> CostedPredicate {
        CostedPredicate {
            predicate,
            cost: 0,
            tests: 0,
        }
    }

    /// A single test.
    pub(crate) fn test(predicate: Predicate, cost: usize) -> CostedPredicate {
        CostedPredicate {
            predicate,
            cost,
            tests: 1,
        }
    }

    fn all(parts: Vec<CostedPredicate>) -> CostedPredicate {
        CostedPredicate::joined(
            parts,
            &Predicate::True,
            |predicate| match predicate {
                Predicate::All(parts) => Ok(parts),
                other => Err(other),
            },
            Predicate::All,
        )
    }

    /// The disjunction of these.
    pub(crate) fn any(parts: Vec<CostedPredicate>) -> CostedPredicate {
        CostedPredicate::joined(
            parts,
            &Predicate::False,
            |predicate| match predicate {
                Predicate::Any(parts) => Ok(parts),
                other => Err(other),
            },
            Predicate::Any,
        )
    }

    /// Joins parts in one list, without neutral elements.
    fn joined(
        parts: Vec<CostedPredicate>,
        neutral: &Predicate,
        open: fn(Predicate) -> Result<Vec<Predicate>, Predicate>,
        join: fn(Vec<Predicate>) -> Predicate,
    ) -> CostedPredicate {
        let (mut cost, mut tests, mut list) = (0, 0, Vec::new());
        for part in parts {
            cost += part.cost;
            tests += part.tests;
            match open(part.predicate) {
                Ok(inner) => list.extend(inner),
                Err(predicate) if predicate == *neutral => {}
                Err(predicate) => list.push(predicate),
            }
        }
        let predicate = match list.len() {
            0 => neutral.clone(),
            1 => list.remove(0),
            _ => join(list),
        };
        CostedPredicate {
            predicate,
            cost,
            tests,
        }
    }

    fn not(self) -> CostedPredicate {
        let (predicate, more) = match self.predicate {
            Predicate::Not(inner) => (*inner, 0),
            Predicate::Test(Test::Compare { operand, op, value }) => {
                let op = op.negated();
                (Predicate::Test(Test::Compare { operand, op, value }), 0)
            }
            Predicate::Test(Test::Between { left, op, right }) => {
                let op = op.negated();
                (Predicate::Test(Test::Between { left, op, right }), 0)
            }
            // Masked tests have their own `!=` in all text forms.
            masked @ Predicate::Test(Test::Masked { .. }) => (Predicate::Not(Box::new(masked)), 0),
            other => (Predicate::Not(Box::new(other)), 1),
        };
        CostedPredicate {
            predicate,
            cost: self.cost + more,
            tests: self.tests,
        }
    }
}

/// The variable that a node tests; `None` for leaves.
fn top(space: &Space, node: Function) -> Option<Variable> {
    match space.view(node) {
        View::Leaf(_) => None,
        View::Branch { variable, .. } => Some(variable),
    }
}

/// The nodes after `last` to which a condition leads, without [`Function::FALSE`], those with the smallest inputs
/// first; `None` if there are too many.
fn exits(
    space: &Space,
    condition: Function,
    last: Variable,
    max_exits: usize,
) -> Option<Vec<Function>> {
    let mut seen = BTreeSet::new();
    let mut exits = Vec::new();
    let mut open = vec![condition];
    while let Some(node) = open.pop() {
        if node == Function::FALSE || !seen.insert(node) {
            continue;
        }
        match space.view(node) {
            View::Branch {
                variable,
                low,
                high,
            } if variable <= last => open.extend([high, low]),
            View::Branch { .. } | View::Leaf(_) if exits.len() == max_exits => return None,
            View::Branch { .. } | View::Leaf(_) => exits.push(node),
        }
    }
    Some(exits)
}

/// The pairs of words that a condition compares; `None` if it has other tests, or tests of the number or the
/// architecture.
fn compared_pairs(space: &Space, condition: Function) -> Option<Vec<(Word, Word)>> {
    let mut pairs = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![condition];
    while let Some(node) = open.pop() {
        let View::Branch {
            variable,
            low,
            high,
        } = space.view(node)
        else {
            continue;
        };
        if !seen.insert(node) {
            continue;
        }
        let VariableKind::Relation(Relation::Equal(a, b) | Relation::Greater(a, b)) =
            space.kind(variable)
        else {
            return None;
        };
        source_of(a)?;
        source_of(b)?;
        pairs.insert((a, b));
        open.extend([low, high]);
    }
    Some(pairs.into_iter().collect())
}

/// The condition that a function leads to one of these targets, all of them after `last`.
fn reaches(
    space: &mut Space,
    function: Function,
    last: Variable,
    targets: &[Function],
    known: &mut BTreeMap<Function, Function>,
) -> Limited<Function> {
    let (variable, low, high) = match space.view(function) {
        View::Branch {
            variable,
            low,
            high,
        } if variable <= last => (variable, low, high),
        View::Branch { .. } | View::Leaf(_) => {
            let is_target = targets.contains(&function);
            return Ok(if is_target {
                Function::TRUE
            } else {
                Function::FALSE
            });
        }
    };
    if let Some(condition) = known.get(&function) {
        return Ok(*condition);
    }
    let low = reaches(space, low, last, targets, known)?;
    let high = reaches(space, high, last, targets, known)?;
    let condition = space.branch(variable, low, high)?;
    known.insert(function, condition);
    Ok(condition)
}
