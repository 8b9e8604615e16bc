//! Does a program do what its policy says? A fast wrong filter is no peer.

use serde::Serialize;
use tamis_abi::{Action, Arch};
use tamis_bpf::Stack;
use tamis_prover::{ComparisonResult, Limits, Pair, Report, Scope, Subject, prove};
use tamis_rules::Ruleset;

/// What a policy means.
#[derive(Clone, Debug)]
pub enum Policy {
    /// What it says.
    Ruleset(Ruleset),
    /// What filters do that are installed together, the oldest first.
    Stack(Stack),
}

/// How a program compares with its policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Meaning {
    /// It answers every call as the policy does; proved.
    Equal,
    /// The same for all calls of the policy's architectures, not for this one of another.
    EqualForItsArchitectures {
        /// The call and the answers.
        elsewhere: Witness,
    },
    /// It answers this call otherwise.
    Differs {
        /// The call and the answers.
        witness: Witness,
    },
    /// Neither was found within the prover's limits.
    Unknown {
        /// Which limit.
        reason: String,
    },
}

/// A call that policy and program answer differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Witness {
    /// The call.
    pub call: String,
    /// What the policy answers.
    pub policy: String,
    /// What the program answers.
    pub program: String,
}

impl Witness {
    fn of(pair: &Pair) -> Option<Witness> {
        let answer = |ret| Action::from_ret(ret).to_string();
        Some(Witness {
            call: pair.example?.describe_briefly(),
            policy: answer(pair.left),
            program: answer(pair.right),
        })
    }
}

impl Policy {
    /// The architectures that it has rules for.
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

    /// Compares with the filters that a tool made of it.
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

/// A difference, if there is one; the limit that was reached if nobody knows.
fn difference(report: &Report) -> Result<Option<Witness>, String> {
    match (report.result, report.pairs.iter().find_map(Witness::of)) {
        (Ok(ComparisonResult::Equal), _) => Ok(None),
        (_, Some(witness)) => Ok(Some(witness)),
        (Ok(_), None) => Err("the difference has no example".to_owned()),
        (Err(limit), None) => Err(limit.to_string()),
    }
}
