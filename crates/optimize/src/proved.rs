//! The last step: the proof that the result is equivalent to the input.
//!
//! Only this file makes an [`Optimised`], after the [judge](crate::judge) has compared the programs with the input:
//! the prover for every call, and the reference interpreter, which reads both independently of the prover, for calls
//! that take every feasible branch. The input itself needs no proof.

use tamis_abi::Arch;
use tamis_bpf::{Program, Stack};
use tamis_prover::{Limits, Subject, decide_by_gates};

use super::rating::Rating;
use super::rejected::{Rejected, RejectionReason};
use crate::judge::{Judged, confirm, judge};
use tamis_compiler::CompileError;
use tamis_compiler::ProofEffort;
use tamis_compiler::Remark;

/// The method that made a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Compilation of the lifted ruleset to one program.
    LaidOutAnew,
    /// Compilation of the lifted ruleset to several programs, because one would be too long.
    Split,
    /// A new dispatch; each program keeps its questions about arguments.
    Redispatched,
    /// Bytecode passes over each program of the input.
    Passes,
    /// None: nothing better was found, and the result is the input.
    Unchanged,
}

impl Method {
    /// The rank of a method by the part of the input that it replaces; higher replaces more.
    fn reach(self) -> u8 {
        match self {
            Method::LaidOutAnew | Method::Split => 3,
            Method::Redispatched => 2,
            Method::Passes => 1,
            Method::Unchanged => 0,
        }
    }
}

/// Programs that may become the result.
pub(super) struct Candidate {
    pub(super) programs: Vec<Program>,
    pub(super) how: Method,
    pub(super) remarks: Vec<Remark>,
}

/// The input, with the facts known about it.
pub(super) struct Input<'a> {
    pub(super) stack: &'a Stack,
    pub(super) before: Rating,
    pub(super) archs: Vec<Arch>,
    pub(super) effort: &'a ProofEffort,
    /// Whether a proof can skip diagrams, because the diagram of the input reaches a limit.
    pub(super) is_beyond_diagrams: bool,
}

/// Programs that are together equivalent to the input, and no worse.
#[derive(Clone, Debug)]
pub struct Optimised {
    stack: Stack,
    how: Method,
    remarks: Vec<Remark>,
    archs: Vec<Arch>,
    before: Rating,
    after: Rating,
    judged: Option<Judged>,
    rejected: Vec<Rejected>,
}

impl Optimised {
    /// The programs as the filters of a task; empty only if the input was.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// The programs, the oldest first.
    pub fn programs(&self) -> &[Program] {
        self.stack.programs()
    }

    /// The method that made them.
    pub fn how(&self) -> Method {
        self.how
    }

    /// The changes of the passes, in order.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// The architectures whose calls the input treats specially.
    pub fn archs(&self) -> &[Arch] {
        &self.archs
    }

    /// The rating of the input.
    pub fn before(&self) -> &Rating {
        &self.before
    }

    /// The rating of the programs.
    pub fn after(&self) -> &Rating {
        &self.after
    }

    /// The judges that found them equivalent to the input; `None` if they are the input.
    pub fn judged(&self) -> Option<&Judged> {
        self.judged.as_ref()
    }

    /// The methods that replace more of the input than the chosen one, with the reasons why they were not chosen, in
    /// order of rank.
    pub fn rejected(&self) -> &[Rejected] {
        &self.rejected
    }
}

/// The candidate as a result, if it is proved equivalent to the input, otherwise the reason for its rejection.
///
/// # Errors
/// If it is not equivalent.
pub(super) fn prove(
    input: &Input<'_>,
    candidate: Candidate,
    after: Rating,
) -> Result<Result<Optimised, RejectionReason>, CompileError> {
    let stack = input.stack.programs();
    let same_kind = stack.len() == candidate.programs.len() || candidate.programs.len() == 1;
    // The input of a split is compared as the kernel runs it, as the only filter of a task.
    let given = Subject::programs(stack);
    let given = match same_kind {
        true => Subject::whole(&given),
        false => Subject::Stack(&given),
    };
    let made = Subject::programs(&candidate.programs);
    let made = Subject::whole(&made);
    let proof = if input.is_beyond_diagrams {
        let limits = limits_of_gates(stack, &input.effort.limits);
        let answer = decide_by_gates(&given, &made, &limits, &input.effort.stop);
        confirm(answer, &given, &made, input.effort)
    } else {
        judge(&given, &made, input.effort)
    };
    match proof {
        Ok(judged) => Ok(Ok(Optimised {
            stack: Stack::new(candidate.programs).expect("a candidate is for the input's machines"),
            how: candidate.how,
            remarks: candidate.remarks,
            archs: input.archs.clone(),
            before: input.before.clone(),
            after,
            judged: Some(judged),
            rejected: Vec::new(),
        })),
        Err(CompileError::Unjudged(why)) => Ok(Err(RejectionReason::Unjudged(why))),
        Err(CompileError::Unproven { limit }) => Ok(Err(RejectionReason::Unproven(limit))),
        Err(error) => Err(error),
    }
}

/// The limits of a proof by gates alone. The time for a conflict grows with the circuit, so long programs get fewer
/// conflicts, unless the caller sets a limit.
fn limits_of_gates(stack: &[Program], limits: &Limits) -> Limits {
    /// The longest input that gets all conflicts.
    const SHORT_INSNS: u64 = 256;
    if limits.max_conflicts != Limits::default().max_conflicts {
        return *limits;
    }
    let insns: u64 = stack.iter().map(|program| program.len() as u64).sum();
    let conflicts = limits.max_conflicts.saturating_mul(SHORT_INSNS);
    Limits {
        max_conflicts: conflicts / insns.max(SHORT_INSNS),
        ..*limits
    }
}

/// The input as its own result.
pub(super) fn unchanged(input: Input<'_>) -> Optimised {
    Optimised {
        stack: input.stack.clone(),
        how: Method::Unchanged,
        remarks: Vec::new(),
        archs: input.archs,
        after: input.before.clone(),
        before: input.before,
        judged: None,
        rejected: Vec::new(),
    }
}

/// The result with the rejected methods that replace more: the best attempt of each.
pub(super) fn with_rejected(mut optimised: Optimised, mut rejected: Vec<Rejected>) -> Optimised {
    rejected.retain(|rejected| rejected.how.reach() > optimised.how.reach());
    // The sort is stable: for one method the better attempt comes first.
    rejected.sort_by_key(|rejected| std::cmp::Reverse(rejected.how.reach()));
    rejected.dedup_by_key(|rejected| rejected.how.reach());
    optimised.rejected = rejected;
    optimised
}

#[cfg(test)]
mod tests {
    use tamis_abi::Endian;
    use tamis_bpf::Op;

    use super::*;

    #[test]
    fn long_programs_have_fewer_conflicts_unless_somebody_says_how_many() {
        let program = |len| Program::new(vec![Op::RetImm(0).into(); len], Endian::Little).unwrap();
        let usual = Limits::default();
        let fewer = limits_of_gates(&[program(500), program(524)], &usual);
        assert_eq!(fewer.max_conflicts, usual.max_conflicts / 4);
        assert_eq!(limits_of_gates(&[program(256)], &usual), usual);
        let said = Limits {
            max_conflicts: usual.max_conflicts + 1,
            ..usual
        };
        assert_eq!(limits_of_gates(&[program(1024)], &said), said);
    }
}
