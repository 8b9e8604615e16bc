//! Deciding whether two subjects are the same function: by diagrams first, by gates if these are inconclusive.

use std::cmp::Ordering;

use tamis_rules::{Input, Test};

use crate::comparison::{ComparisonResult, Pair, Scope, combined_result};
use crate::diagram::LimitReached;
use crate::gates::Circuit;
use crate::sat::Refutation;
use crate::space::{Equality, Limits, Space};
use crate::stop::Stop;
use crate::subject::Subject;

/// The answer to whether two subjects are the same function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Answer {
    /// Equal for every input.
    Equal(Method),
    /// Different for this input, confirmed by the evaluator and the interpreter.
    Different {
        /// The input.
        input: Input,
        /// The return value of the first.
        left: u32,
        /// The return value of the second.
        right: u32,
        /// The method.
        method: Method,
    },
    /// Neither a proof nor a witness was found within the limits.
    Unknown(LimitReached),
}

/// The method by which an answer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By decision diagrams.
    Diagrams {
        /// The count of nodes.
        nodes: usize,
    },
    /// By a circuit and a SAT solver, because a limit of the diagrams was reached or they were inconclusive.
    Gates,
}

/// Decides whether two subjects are the same function. A witness is confirmed by running both.
///
/// ```
/// use tamis_abi::Endian;
/// use tamis_bpf::{Op, Program};
/// use tamis_prover::{Answer, Limits, Subject, decide};
/// let program = |ret| Program::new(vec![Op::RetImm(ret).into()], Endian::Little).unwrap();
/// let programs = [program(0x7fff_0000), program(0x0005_0001)];
/// let [allow, deny] = programs.each_ref().map(Subject::Program);
/// let answer = decide(&allow, &deny, &Limits::default());
/// assert!(matches!(answer, Answer::Different { left: 0x7fff_0000, right: 0x0005_0001, .. }));
/// ```
///
/// # Panics
/// If a witness is not confirmed, which is a bug of this crate.
pub fn decide(left: &Subject<'_>, right: &Subject<'_>, limits: &Limits) -> Answer {
    decide_until(left, right, limits, &Stop::default())
}

/// The same, until the caller cancels.
///
/// # Panics
/// As [`decide`].
pub fn decide_until(
    left: &Subject<'_>,
    right: &Subject<'_>,
    limits: &Limits,
    stop: &Stop,
) -> Answer {
    let diagrams = |limits: &Limits| match by_diagrams(left, right, limits, stop) {
        Ok((Equality::Unknown, _)) | Err(_) => None,
        Ok((equality, nodes)) => Some((equality, Method::Diagrams { nodes })),
    };
    let gates = |limits: &Limits| {
        let settled = |equality: &Equality| !matches!(equality, Equality::Unknown);
        let found = equality_by_gates(left, right, limits, stop)
            .ok()
            .filter(settled);
        found.map(|equality| (equality, Method::Gates))
    };
    let joins = [left, right].into_iter().any(joins_words);
    let tries = if joins {
        &TRIES_FOR_JOINED_WORDS[..]
    } else {
        &[]
    };
    let briefly = tries.iter().find_map(|(max_nodes, max_conflicts)| {
        let limits = Limits {
            max_nodes: limits.max_nodes.min(*max_nodes),
            max_conflicts: limits.max_conflicts.min(*max_conflicts),
            ..*limits
        };
        diagrams(&limits).or_else(|| gates(&limits))
    });
    match briefly.or_else(|| diagrams(limits)) {
        Some((equality, method)) => answer(left, right, equality, method),
        None => decide_by_gates(left, right, limits, stop),
    }
}

/// Decides like [`decide`], but without diagrams, and until the caller cancels: for subjects for which diagrams are
/// known to reach a limit, which takes a second by default.
///
/// # Panics
/// As [`decide`].
pub fn decide_by_gates(
    left: &Subject<'_>,
    right: &Subject<'_>,
    limits: &Limits,
    stop: &Stop,
) -> Answer {
    match equality_by_gates(left, right, limits, stop) {
        Ok(equality) => answer(left, right, equality, Method::Gates),
        Err(limit) => Answer::Unknown(limit),
    }
}

/// The answer, with a confirmed witness.
fn answer(left: &Subject<'_>, right: &Subject<'_>, equality: Equality, method: Method) -> Answer {
    match equality {
        Equality::Equal => Answer::Equal(method),
        Equality::Unknown => Answer::Unknown(LimitReached::Conflicts),
        Equality::Different(input) => {
            let (left, right) = (left.answer(&input), right.answer(&input));
            assert_ne!(
                left, right,
                "a witness tells the subjects apart: {input:x?}"
            );
            Answer::Different {
                input,
                left,
                right,
                method,
            }
        }
    }
}

/// The limits of nodes for diagrams, and of conflicts for gates, that are tried in turn if words are joined bit by
/// bit, before both get the full limits.
///
/// As the words follow each other in the order of variables, `(a & b) == c` has a node for every value of the
/// first, so two words of 32 bits always reach the limit; gates decide it fast. But if such rules are only a small
/// part of a policy, gates are slow for its other rules and diagrams are not.
const TRIES_FOR_JOINED_WORDS: [(usize, u64); 2] = [(4_000, 200), (16_000, 800)];

/// Whether a rule joins words bit by bit: it tests single bits of several words, as many as a word has.
fn joins_words(subject: &Subject<'_>) -> bool {
    let Subject::Ruleset(ruleset) = subject else {
        return false;
    };
    let mut rules = ruleset.sections().iter().flat_map(|section| &section.rules);
    rules.any(|rule| {
        let (mut bits, mut operands) = (0, Vec::new());
        for test in rule.when.tests() {
            if let Test::Masked { operand, mask, .. } = test
                && mask.is_power_of_two()
            {
                bits += 1;
                if !operands.contains(operand) {
                    operands.push(*operand);
                }
            }
        }
        bits >= u32::BITS && operands.len() > 1
    })
}

/// The result of gates alone for two subjects. A witness is not confirmed: a wrong one means that a translation is
/// wrong.
///
/// # Errors
/// If there are too many gates, the solver reaches its limit, or the caller stops.
pub fn equality_by_gates(
    left: &Subject<'_>,
    right: &Subject<'_>,
    limits: &Limits,
    stop: &Stop,
) -> Result<Equality, LimitReached> {
    let mut circuit = Circuit::new(left, right, limits, stop)?;
    let differ = circuit.difference()?;
    let witness = circuit.input_for(differ)?;
    Ok(witness.map_or(Equality::Equal, Equality::Different))
}

/// The formula that two subjects differ, with a checked proof that it has no solution; else an input for which they
/// differ, as [`equality_by_gates`].
///
/// # Errors
/// As [`equality_by_gates`].
pub fn refutation(
    left: &Subject<'_>,
    right: &Subject<'_>,
    limits: &Limits,
    stop: &Stop,
) -> Result<Result<Refutation, Input>, LimitReached> {
    let mut circuit = Circuit::new(left, right, limits, stop)?;
    let differ = circuit.difference()?;
    circuit.refutation(differ)
}

/// The result of diagrams alone for two subjects. A witness is not confirmed: a wrong one means that a translation
/// is wrong.
///
/// # Errors
/// If a limit of the diagrams is reached, or the caller stops.
pub fn equality_by_diagrams(
    left: &Subject<'_>,
    right: &Subject<'_>,
    limits: &Limits,
    stop: &Stop,
) -> Result<Equality, LimitReached> {
    by_diagrams(left, right, limits, stop).map(|(equality, _)| equality)
}

fn by_diagrams(
    left: &Subject<'_>,
    right: &Subject<'_>,
    limits: &Limits,
    stop: &Stop,
) -> Result<(Equality, usize), LimitReached> {
    let mut space = Space::stoppable(*limits, stop.clone());
    let (left, right) = (space.subject(left)?, space.subject(right)?);
    Ok((space.compare(left, right), space.len_nodes()))
}

/// A comparison of two subjects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The result, or the limit that was reached. Pairs may have been found before.
    pub result: Result<ComparisonResult, LimitReached>,
    /// Pairs of different return values, each with a call confirmed by the evaluator and the interpreter. By
    /// diagrams these are all pairs that occur; by gates one of each strictness.
    pub pairs: Vec<Pair>,
    /// The method.
    pub method: Method,
}

/// Compares two subjects for the calls of a scope by strictness, with confirmed examples.
pub fn prove(left: &Subject<'_>, right: &Subject<'_>, scope: &Scope, limits: &Limits) -> Report {
    match compare_by_diagrams(left, right, scope, limits) {
        Ok((result, examples, nodes)) => Report {
            result: Ok(result),
            pairs: examples
                .into_iter()
                .map(|input| pair(left, right, input))
                .collect(),
            method: Method::Diagrams { nodes },
        },
        Err(_) => prove_by_gates(left, right, scope, limits, &Stop::default()),
    }
}

/// Compares two subjects like [`prove`], but without diagrams, and until the caller cancels.
pub fn prove_by_gates(
    left: &Subject<'_>,
    right: &Subject<'_>,
    scope: &Scope,
    limits: &Limits,
    stop: &Stop,
) -> Report {
    let mut pairs = Vec::new();
    let outcome = search(left, right, scope, limits, stop, &mut pairs);
    let result = combined_result(pairs.iter());
    Report {
        result: match outcome {
            // No further pair changes this result.
            Err(limit) if result != ComparisonResult::Incomparable => Err(limit),
            _ => Ok(result),
        },
        pairs,
        method: Method::Gates,
    }
}

/// Searches for a pair of each strictness, first for any.
fn search(
    left: &Subject<'_>,
    right: &Subject<'_>,
    scope: &Scope,
    limits: &Limits,
    stop: &Stop,
    pairs: &mut Vec<Pair>,
) -> Result<(), LimitReached> {
    let mut circuit = Circuit::new(left, right, limits, stop)?;
    let differences = circuit.differences(scope)?;
    let Some(first) = circuit.input_for(differences.any)? else {
        return Ok(());
    };
    let first = pair(left, right, first);
    pairs.push(first);
    let mut outcome = Ok(());
    for (strictness, condition) in [
        (Ordering::Less, differences.stricter),
        (Ordering::Greater, differences.looser),
        (Ordering::Equal, differences.data_only),
    ] {
        if strictness == first.strictness() {
            continue;
        }
        match circuit.input_for(condition) {
            Ok(found) => pairs.extend(found.map(|input| pair(left, right, input))),
            Err(limit) => outcome = Err(limit),
        }
    }
    outcome
}

/// The return values of two subjects for a call.
fn pair(left: &Subject<'_>, right: &Subject<'_>, input: Input) -> Pair {
    Pair {
        left: left.answer(&input),
        right: right.answer(&input),
        example: Some(input),
    }
}

/// The result, an example of each pair of values, and the count of nodes.
fn compare_by_diagrams(
    left: &Subject<'_>,
    right: &Subject<'_>,
    scope: &Scope,
    limits: &Limits,
) -> Result<(ComparisonResult, Vec<Input>, usize), LimitReached> {
    let mut space = Space::new(*limits);
    let (left, right) = (space.subject(left)?, space.subject(right)?);
    let comparison = space.comparison(left, right, scope)?;
    let result = comparison.result().ok_or(LimitReached::Paths)?;
    let pairs = comparison.pairs().iter();
    let examples = pairs.filter_map(|pair| pair.example).collect();
    Ok((result, examples, space.len_nodes()))
}
