//! Findings: the problem, its places, examples, and the correction.

use tamis_abi::{Action, SeccompData, call};
use tamis_bpf::Pc;
use tamis_diag::{Code, Severity};
use tamis_rules::Origin;

/// A finding of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
    pub code: Code,
    /// Its severity; never an error.
    pub severity: Severity,
    /// The problem: a lower-case fragment without a full stop.
    pub message: String,
    /// The places, the main one first; may be empty.
    pub places: Vec<Place>,
    /// Example calls with their real actions.
    pub examples: Vec<Example>,
    /// The reason why it matters.
    pub why: String,
    /// The correction.
    pub help: String,
    /// The relevance for the author of the policy.
    pub relevance: Relevance,
}

/// The relevance of a finding, the greatest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relevance {
    /// A deliberate restriction has a bypass.
    Intent,
    /// The finding follows from the filter as a whole.
    General,
    /// The finding concerns calls that no rule of a deny list mentions; every such list leaves out the same calls.
    Aside,
}

/// The place of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A rule of a policy, with a label.
    Rule(Origin, String),
    /// The instruction that returns the action.
    Insn {
        /// The index of the program, counted from the oldest.
        filter: usize,
        /// The instruction.
        pc: Pc,
    },
}

/// A call and its action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// The call.
    pub call: SeccompData,
    /// The action.
    pub action: Action,
}

impl Finding {
    /// A finding without places and examples.
    pub(crate) fn new(
        (code, severity): (Code, Severity),
        message: impl Into<String>,
        why: impl Into<String>,
        help: impl Into<String>,
    ) -> Finding {
        Finding {
            code,
            severity,
            message: message.into(),
            places: Vec::new(),
            examples: Vec::new(),
            why: why.into(),
            help: help.into(),
            relevance: Relevance::General,
        }
    }

    /// The finding with this relevance.
    pub(crate) fn relevance(mut self, relevance: Relevance) -> Finding {
        self.relevance = relevance;
        self
    }

    /// Adds example calls.
    pub(crate) fn examples(mut self, examples: impl IntoIterator<Item = Example>) -> Finding {
        self.examples.extend(examples);
        self
    }

    /// Adds places.
    pub(crate) fn places(mut self, places: impl IntoIterator<Item = Place>) -> Finding {
        self.places.extend(places);
        self
    }
}

impl Example {
    /// `x86_64 socket(family=AF_VSOCK) -> allow`.
    pub fn describe(&self) -> String {
        format!("{} -> {}", call::describe_briefly(&self.call), self.action)
    }
}

impl Place {
    /// The sort key: line and column; instructions keep the order of the checks.
    pub(crate) fn order(&self) -> (u32, u32) {
        match self {
            Place::Rule(origin, _) => (origin.line, origin.column),
            Place::Insn { .. } => (0, 0),
        }
    }
}
