//! Equivalence of a program and its policy: a fast but wrong filter is not a peer.

use serde::Serialize;
use tamis_abi::{Action, Arch};
use tamis_bpf::Stack;
use tamis_prover::{ComparisonResult, Limits, Pair, Report, Scope, Subject, prove};
use tamis_rules::Ruleset;

/// The reference for a comparison.
#[derive(Clone, Debug)]
pub enum Policy {
    /// A ruleset.
    Ruleset(Ruleset),
    /// Filters that are installed together, the oldest first.
    Stack(Stack),
}

/// The result of comparing a program with its policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Meaning {
    /// Proved equivalent for every call.
    Equal,
    /// Equivalent for all calls of the policy's architectures, but not for this one of another.
    EqualForItsArchitectures {
        /// The call with both actions.
        elsewhere: Witness,
    },
    /// Different for this call.
    Differs {
        /// The call with both actions.
        witness: Witness,
    },
    /// Undecided within the prover's limits.
    Unknown {
        /// The limit.
        reason: String,
    },
}

/// A call with different actions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Witness {
    /// The call.
    pub call: String,
    /// The policy's action.
    pub policy: String,
    /// The program's action.
    pub program: String,
}

impl Witness {
    fn from_pair(pair: &Pair) -> Option<Witness> {
        let answer = |ret| Action::from_ret(ret).to_string();
        Some(Witness {
            call: pair.example?.describe_briefly(),
            policy: answer(pair.left),
            program: answer(pair.right),
        })
    }
}

impl Policy {
    /// The architectures with rules.
    pub fn arches(&self) -> Vec<Arch> {
        match self {
            Policy::Ruleset(ruleset) => ruleset
                .sections()
                .iter()
                .map(|section| section.arch)
                .collect(),
            Policy::Stack(_) => vec![Arch::X86_64],
        }
    }

    /// Compares the policy with the filters of a tool.
    pub fn judge(&self, made: &Stack) -> Meaning {
        let mine = match self {
            Policy::Ruleset(ruleset) => vec![Subject::Ruleset(ruleset)],
            Policy::Stack(stack) => Subject::programs(stack.programs()),
        };
        let theirs = Subject::programs(made.programs());
        let ask = |scope: &Scope| {
            prove(
                &Subject::whole(&mine),
                &Subject::whole(&theirs),
                scope,
                &Limits::default(),
            )
        };
        let everywhere = ask(&Scope::default());
        let elsewhere = match difference(&everywhere) {
            Ok(None) => return Meaning::Equal,
            Ok(Some(elsewhere)) => elsewhere,
            Err(reason) => return Meaning::Unknown { reason },
        };
        let here = ask(&Scope {
            arches: self.arches(),
            ..Scope::default()
        });
        match difference(&here) {
            Ok(None) => Meaning::EqualForItsArchitectures { elsewhere },
            Ok(Some(witness)) => Meaning::Differs { witness },
            Err(reason) => Meaning::Unknown { reason },
        }
    }
}

/// A difference, if there is one; else an error with the limit that was reached, if any.
fn difference(report: &Report) -> Result<Option<Witness>, String> {
    match (
        report.result,
        report.pairs.iter().find_map(Witness::from_pair),
    ) {
        (Ok(ComparisonResult::Equal), _) => Ok(None),
        (_, Some(witness)) => Ok(Some(witness)),
        (Ok(_), None) => Err("the difference has no example".to_owned()),
        (Err(limit), None) => Err(limit.to_string()),
    }
}
