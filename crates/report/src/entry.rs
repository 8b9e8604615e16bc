//! Common members of several documents.

use std::fmt;

use serde::{Serialize, Serializer};
use tamis_abi::{Action, Arch};
use tamis_bpf::Insn;
use tamis_optimize::judge::Judged;
use tamis_prover::{ComparisonResult, Method};
use tamis_rules::Input;

/// One instruction, as in `struct sock_filter`.
#[derive(Serialize)]
pub struct InsnEntry {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

/// Instructions.
pub fn insns(insns: &[Insn]) -> Vec<InsnEntry> {
    let entry = |insn: &Insn| InsnEntry {
        code: insn.code,
        jt: insn.jt,
        jf: insn.jf,
        k: insn.k,
    };
    insns.iter().map(entry).collect()
}

/// Architectures by name.
pub fn arches<'a>(arches: impl IntoIterator<Item = &'a Arch>) -> Vec<&'static str> {
    arches.into_iter().map(|arch| arch.name()).collect()
}

/// An input.
#[derive(Clone, Serialize)]
pub struct InputEntry {
    pub name: String,
    /// `None` for a policy.
    pub length_insns: Option<usize>,
}

/// A call with different actions on the two sides.
#[derive(Clone, Serialize)]
pub struct WitnessEntry {
    pub call: String,
    pub left: String,
    pub right: String,
    pub left_ret: u32,
    pub right_ret: u32,
}

impl WitnessEntry {
    /// The entry for a call with the return values of the two sides.
    pub fn new(input: &Input, left: u32, right: u32) -> WitnessEntry {
        WitnessEntry {
            call: input.describe_briefly(),
            left: Action::from_ret(left).to_string(),
            right: Action::from_ret(right).to_string(),
            left_ret: left,
            right_ret: right,
        }
    }
}

/// `  CALL: left ACTION, right ACTION`.
impl fmt::Display for WitnessEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  {}: left {}, right {}",
            self.call, self.left, self.right
        )
    }
}

/// The judges that found a result equivalent, with the extent of their checks.
pub struct JudgedEntry(pub Judged);

impl Serialize for JudgedEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Members {
            method: &'static str,
            calls: usize,
            edges: usize,
            infeasible_edges: usize,
            unsettled_edges: usize,
            gates_agree: bool,
        }
        let agreement = self.0.agreement;
        let members = Members {
            method: match self.0.method {
                Method::Diagrams { .. } => "diagrams",
                Method::Gates => "gates",
            },
            calls: agreement.calls,
            edges: agreement.edges,
            infeasible_edges: agreement.infeasible_edges,
            unsettled_edges: agreement.unsettled_edges,
            gates_agree: self.0.do_gates_agree,
        };
        members.serialize(serializer)
    }
}

/// The verdict of a proof about two sides; `None` if it reached a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparisonResultEntry(pub Option<ComparisonResult>);

impl Serialize for ComparisonResultEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self.0 {
            None => "unknown",
            Some(ComparisonResult::Equal) => "equal",
            Some(ComparisonResult::SameActions) => "same_actions",
            Some(ComparisonResult::Stricter) => "stricter",
            Some(ComparisonResult::Looser) => "looser",
            Some(ComparisonResult::Incomparable) => "incomparable",
        })
    }
}

/// A count with its noun.
///
/// ```
/// use tamis_report::entry::counted;
///
/// assert_eq!(counted(1_usize, "filter"), "1 filter");
/// assert_eq!(counted(0_u32, "filter"), "0 filters");
/// ```
pub fn counted<N: Copy + fmt::Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let s = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{s}")
}

/// The first calls, and the number of further ones with a hint.
pub(crate) fn first_calls(calls: &[String], max_calls: usize, hint: &str) -> String {
    let shown = calls.len().min(max_calls);
    let names = calls[..shown].join(", ");
    match calls.len() - shown {
        0 => names,
        more => format!("{names} and {more} more{hint}"),
    }
}
