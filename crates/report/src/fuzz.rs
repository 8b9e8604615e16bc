//! The result of a search for differences between two sides, and its coverage: `tamis bpf fuzz`.

use std::fmt::{self, Display};

use serde::Serialize;
use tamis_fuzz::{FilterCoverage, Gap, Place};

use crate::entry::{WitnessEntry, counted};

/// The most gaps of a filter that the text lists.
const MAX_GAPS: usize = 10;
/// The most contradictions of a side that the text lists.
const MAX_CONTRADICTIONS: usize = 10;

/// The result of a campaign.
#[derive(Serialize)]
pub struct FuzzReport {
    pub left: String,
    pub right: String,
    pub seed: u64,
    pub evaluations: u64,
    /// The duration, only if a time limit ended the search: otherwise the document is reproducible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    #[serde(flatten)]
    pub result: FuzzResult,
    /// The engine of random calls and the reason for its choice, if their coverage wasn't requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    pub coverage: Vec<CoverageEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Vec<KernelEntry>>,
    /// Whether the search ended early: by Ctrl-C, or by the time limit before all non-random calls were run.
    pub is_cut_short: bool,
}

/// The verdict of the search.
#[derive(Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum FuzzResult {
    /// No difference was found.
    NoDifferenceFound,
    /// A call with different actions was found.
    Different { witness: WitnessEntry },
}

/// The coverage of a program.
#[derive(Serialize)]
pub struct CoverageEntry {
    pub side: &'static str,
    pub filter: usize,
    pub insns: usize,
    pub executed_insns: usize,
    pub impossible_insns: usize,
    pub outcomes: usize,
    pub taken_outcomes: usize,
    pub impossible_outcomes: usize,
    pub gaps: Vec<GapEntry>,
}

/// A place that was neither reached nor proved unreachable.
#[derive(Serialize)]
pub struct GapEntry {
    pub pc: usize,
    /// The kind of the place: `executed`, `holds` or `fails`.
    pub what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}

/// The kernel's results for the programs of one side.
#[derive(Serialize)]
pub struct KernelEntry {
    pub side: &'static str,
    pub calls: usize,
    pub packets: usize,
    pub not_asked: Vec<String>,
    pub contradictions: Vec<String>,
}

impl FuzzReport {
    /// Whether the kernel and the interpreter returned different values.
    pub fn is_contradicted(&self) -> bool {
        let mut entries = self.kernel.iter().flatten();
        entries.any(|entry| !entry.contradictions.is_empty())
    }
}

impl CoverageEntry {
    /// The entry of a program.
    pub fn from_coverage(coverage: &FilterCoverage) -> CoverageEntry {
        CoverageEntry {
            side: if coverage.side == 0 { "left" } else { "right" },
            filter: coverage.index,
            insns: coverage.insns,
            executed_insns: coverage.executed_insns,
            impossible_insns: coverage.impossible_insns,
            outcomes: coverage.outcomes,
            taken_outcomes: coverage.taken_outcomes,
            impossible_outcomes: coverage.impossible_outcomes,
            gaps: coverage.gaps.iter().map(GapEntry::from_gap).collect(),
        }
    }
}

impl GapEntry {
    fn from_gap(gap: &Gap) -> GapEntry {
        GapEntry {
            pc: gap.place.pc().0,
            what: match gap.place {
                Place::Insn(_) => "executed",
                Place::Outcome(_, true) => "holds",
                Place::Outcome(_, false) => "fails",
            },
            limit: gap.limit.map(|limit| limit.to_string()),
        }
    }
}

impl Display for FuzzReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, right) = (&self.left, &self.right);
        let (evaluations, seed) = (self.evaluations, self.seed);
        match &self.result {
            FuzzResult::Different { witness } => {
                writeln!(
                    f,
                    "different: {left} and {right}, found with call {evaluations} (seed {seed})"
                )?;
                witness.fmt(f)?;
            }
            FuzzResult::NoDifferenceFound => {
                let calls = counted(evaluations, "call");
                writeln!(
                    f,
                    "no difference found: {left} and {right}, {calls} (seed {seed})"
                )?;
                self.write_effort(f)?;
            }
        }
        if let Some(engine) = &self.engine {
            writeln!(f, "  random calls, without their coverage, on {engine}")?;
        }
        for entry in self.kernel.iter().flatten() {
            entry.fmt(f)?;
        }
        Ok(())
    }
}

impl FuzzReport {
    /// Writes the duration of the search and its coverage.
    fn write_effort(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_cut_short {
            let how = match self.evaluations {
                0 => "the time limit was reached before the first calls were made",
                _ => "it was ended before it was done",
            };
            writeln!(f, "  {how}")?;
        }
        if let Some(seconds) = self.seconds {
            let rate = self.evaluations as f64 / seconds / 1e6;
            writeln!(
                f,
                "  {seconds:.1} s, {rate:.1} million calls a second on both sides"
            )?;
        }
        for coverage in &self.coverage {
            write!(f, "  {}", coverage.side)?;
            let of_side = self.coverage.iter();
            if of_side.filter(|other| other.side == coverage.side).count() > 1 {
                write!(f, " filter {}", coverage.filter)?;
            }
            coverage.fmt(f)?;
        }
        Ok(())
    }
}

/// The coverage of a filter, and its gaps; the filter is already named.
impl Display for CoverageEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |reached: usize, all: usize, impossible: usize, what: &str| match impossible {
            0 => format!("{reached} of {all} {what}"),
            _ => format!("{reached} of {all} {what} ({impossible} impossible, by proof)"),
        };
        let insns = part(
            self.executed_insns,
            self.insns,
            self.impossible_insns,
            "instructions",
        );
        let outcomes = part(
            self.taken_outcomes,
            self.outcomes,
            self.impossible_outcomes,
            "outcomes of branches",
        );
        writeln!(f, ": {insns}, {outcomes}")?;
        for gap in self.gaps.iter().take(MAX_GAPS) {
            let what = match gap.what {
                "executed" => "was never executed",
                "holds" => "has a test that never held",
                _ => "has a test that never failed",
            };
            let why = gap.limit.as_deref().unwrap_or("not tried");
            writeln!(
                f,
                "    instruction {} {what}; whether a call can change that is unknown: {why}",
                gap.pc
            )?;
        }
        match self.gaps.len().saturating_sub(MAX_GAPS) {
            0 => Ok(()),
            more => writeln!(f, "    and {more} more (--json lists all)"),
        }
    }
}

impl Display for KernelEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.contradictions.len() {
            0 => "says the same".to_owned(),
            count => format!("says otherwise {}", counted(count, "time")),
        };
        let calls = counted(self.calls, "call");
        let packets = counted(self.packets, "packet");
        write!(f, "  {}: the kernel {verdict}", self.side)?;
        writeln!(f, " on {calls} and {packets}")?;
        for line in self.contradictions.iter().take(MAX_CONTRADICTIONS) {
            writeln!(f, "    {line}")?;
        }
        for reason in &self.not_asked {
            writeln!(f, "    not all could be asked: {reason}")?;
        }
        Ok(())
    }
}
