//! The judge of results made from programs: the checks before such a result is returned.
//!
//! The prover reads a foreign filter to lift it, and also compares the result with the filter. If the prover misreads
//! an instruction, the same error is on both sides, and the proof shows nothing. So a result also needs judges that
//! read programs in other ways:
//!
//! 1. the prover, by diagrams or else by gates: equal for every call;
//! 2. the reference interpreter and the evaluator of rulesets: the same actions for calls that take every branch of
//!    both sides each feasible way ([`tamis_fuzz::agreement`]);
//! 3. gates, if the proof used diagrams and gates decide within a small limit: equal too.
//!
//! Results compiled from a policy need fewer checks, because only one side has instructions: see
//! [`compiled`](tamis_compiler::judge::compiled).
//!
//! A disagreement between judges is a bug of tamis, reported as an error with the call that shows it. If it is unknown
//! whether a branch can go one way, there is a result only if both diagrams and gates prove equality. A cancelled
//! judgement gives no result, because it has fewer checks than one without a deadline.

mod narrowed;

use std::collections::BTreeSet;
use std::fmt;

use tamis_abi::{Action, Arch};
use tamis_bpf::{InvalidProgram, Program};
use tamis_fuzz::{Agreement, Disagreement, agreement};
use tamis_prover::misreading::Reading;
use tamis_prover::{
    Answer, Equality, LimitReached, Limits, Method, Subject, decide_until, equality_by_gates,
};
use tamis_rules::Ruleset;

use tamis_compiler::CompileError;
use tamis_compiler::ProofEffort;
use tamis_compiler::Unjudged;
use tamis_compiler::judge::proved;

/// The limits of an additional judge, unless the prover's own limits are lower. Gates usually decide filters of some
/// dozen instructions within them, and rarely longer ones.
const OPINION: Limits = Limits {
    max_nodes: 200_000,
    max_steps: 2_000_000,
    max_states: 20_000,
    max_gates: 400_000,
    max_conflicts: 200,
    max_paths: 1_000,
};

/// The judges that found two subjects equal, with the extent of their checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The method of the proof for every call.
    pub method: Method,
    /// The calls with the same actions by the reference interpreter.
    pub agreement: Agreement,
    /// Whether gates, as well as diagrams, proved equality; otherwise they reached a limit or were not used.
    pub do_gates_agree: bool,
}

/// Judges whether the result is equivalent to the input.
///
/// # Errors
/// If they differ, if a proof or its confirmation reaches a limit, or if the prover contradicts the reference
/// interpreter.
///
/// # Panics
/// As [`decide_until`].
pub fn judge(
    given: &Subject<'_>,
    made: &Subject<'_>,
    effort: &ProofEffort,
) -> Result<Judged, CompileError> {
    let answer = decide_until(given, made, &effort.limits, &effort.stop);
    confirm(answer, given, made, effort)
}

/// A filter of a task that is compared with a ruleset.
#[derive(Clone, Copy, Debug)]
pub enum Filter<'a> {
    /// A policy, as its ruleset.
    Policy(&'a Ruleset),
    /// A program.
    Program(&'a Program),
}

/// Judges whether a ruleset is equivalent to the filters of a task, given from the oldest to the newest; with
/// architectures, only for their calls, with [`Action::KILL_PROCESS`] for all others.
///
/// # Errors
/// As [`judge`].
///
/// # Panics
/// As [`judge`].
pub fn judge_reading(
    filters: &[Filter<'_>],
    arches: &BTreeSet<Arch>,
    ruleset: &Ruleset,
    effort: &ProofEffort,
) -> Result<Judged, CompileError> {
    let narrowed: Vec<Narrowed> = filters
        .iter()
        .filter(|_| !arches.is_empty())
        .map(|filter| Narrowed::from_filter(*filter, arches))
        .collect::<Result<_, _>>()
        .map_err(|_| CompileError::Unjudged(Unjudged::TooLarge))?;
    let given: Vec<Subject<'_>> = match arches.is_empty() {
        true => filters.iter().map(|filter| filter.subject()).collect(),
        false => narrowed.iter().map(Narrowed::subject).collect(),
    };
    judge(&Subject::whole(&given), &Subject::Ruleset(ruleset), effort)
}

impl<'a> Filter<'a> {
    fn subject(self) -> Subject<'a> {
        match self {
            Filter::Policy(ruleset) => Subject::Ruleset(ruleset),
            Filter::Program(program) => Subject::Program(program),
        }
    }
}

/// A filter for the calls of some architectures.
enum Narrowed {
    Policy(Ruleset),
    Program(Program),
}

impl Narrowed {
    fn from_filter(
        filter: Filter<'_>,
        arches: &BTreeSet<Arch>,
    ) -> Result<Narrowed, InvalidProgram> {
        let elsewhere = Action::KILL_PROCESS;
        Ok(match filter {
            Filter::Policy(ruleset) => {
                Narrowed::Policy(narrowed::ruleset(ruleset, arches, elsewhere))
            }
            Filter::Program(program) => {
                Narrowed::Program(narrowed::program(program, arches, elsewhere)?)
            }
        })
    }

    fn subject(&self) -> Subject<'_> {
        match self {
            Narrowed::Policy(ruleset) => Filter::Policy(ruleset).subject(),
            Narrowed::Program(program) => Filter::Program(program).subject(),
        }
    }
}

/// Confirms an answer of the prover about two subjects.
pub(crate) fn confirm(
    answer: Answer,
    given: &Subject<'_>,
    made: &Subject<'_>,
    effort: &ProofEffort,
) -> Result<Judged, CompileError> {
    let method = proved(answer)?;
    let limits = at_most(&effort.limits, &OPINION);
    let agreement = agreement([given, made], &limits, &effort.stop)
        .map_err(|disagreement| error(&disagreement))?;
    let do_gates_agree = match method {
        Method::Gates => false,
        Method::Diagrams { .. } => do_gates_agree(given, made, &limits, effort)?,
    };
    if agreement.unsettled_edges > 0 && !do_gates_agree {
        let unjudged = Unjudged::Edges(agreement.unsettled_edges);
        return Err(CompileError::Unjudged(unjudged));
    }
    Ok(Judged {
        method,
        agreement,
        do_gates_agree,
    })
}

/// Whether gates prove equality. They may reach a limit of work, but must not find a difference.
fn do_gates_agree(
    given: &Subject<'_>,
    made: &Subject<'_>,
    limits: &Limits,
    effort: &ProofEffort,
) -> Result<bool, CompileError> {
    match equality_by_gates(given, made, limits, &effort.stop) {
        Ok(Equality::Equal) => Ok(true),
        Err(limit @ LimitReached::Stopped) => Err(CompileError::Unproven { limit }),
        Ok(Equality::Unknown) | Err(_) => Ok(false),
        Ok(Equality::Different(input)) => {
            let witness = Box::new(input);
            let (expected_ret, actual_ret) = (given.answer(&witness), made.answer(&witness));
            Err(match expected_ret == actual_ret {
                true => CompileError::Misread {
                    reading: Reading::Gates,
                    witness,
                },
                false => CompileError::Miscompiled {
                    witness,
                    expected_ret,
                    actual_ret,
                },
            })
        }
    }
}

fn at_most(limits: &Limits, most: &Limits) -> Limits {
    Limits {
        max_nodes: limits.max_nodes.min(most.max_nodes),
        max_steps: limits.max_steps.min(most.max_steps),
        max_states: limits.max_states.min(most.max_states),
        max_gates: limits.max_gates.min(most.max_gates),
        max_conflicts: limits.max_conflicts.min(most.max_conflicts),
        max_paths: limits.max_paths.min(most.max_paths),
    }
}

/// A disagreement of the judges as the reason why there is no result.
fn error(disagreement: &Disagreement) -> CompileError {
    match disagreement {
        Disagreement::Answers(found) => CompileError::Miscompiled {
            witness: Box::new(found.data.into()),
            expected_ret: found.left,
            actual_ret: found.right,
        },
        Disagreement::Misread { reading, data } => CompileError::Misread {
            reading: *reading,
            witness: Box::new((*data).into()),
        },
        Disagreement::TooLarge(_) => CompileError::Unjudged(Unjudged::TooLarge),
        Disagreement::Stopped => CompileError::Unproven {
            limit: LimitReached::Stopped,
        },
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = match self.method {
            Method::Diagrams { .. } => "diagrams",
            Method::Gates => "gates",
        };
        let Agreement {
            calls,
            edges,
            infeasible_edges,
            unsettled_edges,
        } = self.agreement;
        let covered = edges - infeasible_edges - unsettled_edges;
        write!(f, "{method}; interpreter agrees on {calls} calls")?;
        match (infeasible_edges, unsettled_edges) {
            // Both are policies.
            _ if edges == 0 => {}
            (0, 0) => write!(f, " covering all {edges} edges")?,
            (_, 0) => write!(f, " covering all {covered} feasible edges")?,
            _ => write!(f, " covering {covered} edges, {unsettled_edges} unsettled")?,
        }
        match self.do_gates_agree {
            true => f.write_str("; gates agree"),
            false => Ok(()),
        }
    }
}
