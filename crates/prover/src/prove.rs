//! The whole question: are two subjects the same function? Diagrams first, gates where they don't do.

use std::cmp::Ordering;

use tamis_rules::{Input, Test};

use crate::comparison::{Pair, Scope, Verdict, verdict};
use crate::diagram::LimitReached;
use crate::gates::Circuit;
use crate::space::{Equality, Limits, Space};
use crate::stop::Stop;
use crate::subject::Subject;

/// The answer to whether two subjects are the same function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Answer {
    /// For every input.
    Equal(Method),
    /// Not for this one, by the evaluator and the interpreter.
    Different {
        /// The input.
        input: Input,
        /// What the first returns.
        left: u32,
        /// What the second returns.
        right: u32,
        /// How it was found.
        method: Method,
    },
    /// Neither a proof nor a witness was found within the limits.
    Unknown(LimitReached),
}

/// How an answer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By decision diagrams.
    Diagrams {
        /// How many nodes were made.
        nodes: usize,
    },
    /// By a circuit and a SAT solver, because a limit of the diagrams was reached or they left it open.
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
/// If a witness is none, which is a mistake in this crate.
pub fn decide(left: &Subject<'_>, right: &Subject<'_>, limits: &Limits) -> Answer {
    decide_until(left, right, limits, &Stop::default())
}

/// The same, where work ends also when the caller wants it to.
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

/// Decides as [`decide`] does, but without trying diagrams, and until the caller stops it: for subjects of which it is
/// known that diagrams reach a limit, which takes a second by default.
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

/// What was found, with a witness confirmed.
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

/// How far diagrams, by nodes, and then gates, by conflicts, are tried where words are joined bit by bit, before both
/// get all that they may have.
///
/// With the words one after the other in the order of variables, `(a & b) == c` has a node for every value of the
/// first, so that two words of 32 bits always reach the limit; gates settle it soon. But where the joined words are
/// only a small part of a policy, its other rules are what gates are slow with and diagrams are not.
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

/// What gates alone say about two subjects. A witness is not confirmed: where it is none, they read something
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

/// What diagrams alone say about two subjects. A witness is not confirmed: where it is none, they read something
/// wrong.
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

/// How two subjects compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The verdict, or the limit at which the search for it ended. Pairs may have been found before.
    pub verdict: Result<Verdict, LimitReached>,
    /// Pairs of different answers, each with a call that gets them by the evaluator and the
    /// interpreter. Found by diagrams these are all pairs that occur; by gates one of each strictness.
    pub pairs: Vec<Pair>,
    /// How it was found.
    pub method: Method,
}

/// Compares two subjects for the calls of a scope: which is stricter, with confirmed examples.
pub fn prove(left: &Subject<'_>, right: &Subject<'_>, scope: &Scope, limits: &Limits) -> Report {
    match verdict_by_diagrams(left, right, scope, limits) {
        Ok((verdict, examples, nodes)) => Report {
            verdict: Ok(verdict),
            pairs: examples
                .into_iter()
                .map(|input| pair(left, right, input))
                .collect(),
            method: Method::Diagrams { nodes },
        },
        Err(_) => prove_by_gates(left, right, scope, limits, &Stop::default()),
    }
}

/// Compares two subjects as [`prove`] does, but without trying diagrams, and until the caller stops it.
pub fn prove_by_gates(
    left: &Subject<'_>,
    right: &Subject<'_>,
    scope: &Scope,
    limits: &Limits,
    stop: &Stop,
) -> Report {
    let mut pairs = Vec::new();
    let outcome = search(left, right, scope, limits, stop, &mut pairs);
    let verdict = verdict(pairs.iter());
    Report {
        verdict: match outcome {
            // Nothing that may still be found changes this verdict.
            Err(limit) if verdict != Verdict::Incomparable => Err(limit),
            _ => Ok(verdict),
        },
        pairs,
        method: Method::Gates,
    }
}

/// Looks for a pair of each strictness, first for any.
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

/// What two subjects answer to a call.
fn pair(left: &Subject<'_>, right: &Subject<'_>, input: Input) -> Pair {
    Pair {
        left: left.answer(&input),
        right: right.answer(&input),
        example: Some(input),
    }
}

/// The verdict, an example of each pair of answers, and how many nodes there are.
fn verdict_by_diagrams(
    left: &Subject<'_>,
    right: &Subject<'_>,
    scope: &Scope,
    limits: &Limits,
) -> Result<(Verdict, Vec<Input>, usize), LimitReached> {
    let mut space = Space::new(*limits);
    let (left, right) = (space.subject(left)?, space.subject(right)?);
    let comparison = space.comparison(left, right, scope)?;
    let verdict = comparison.verdict().ok_or(LimitReached::Paths)?;
    let pairs = comparison.pairs().iter();
    let examples = pairs.filter_map(|pair| pair.example).collect();
    Ok((verdict, examples, space.len_nodes()))
}
