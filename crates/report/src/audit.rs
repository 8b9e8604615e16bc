//! The filters of running processes: `tamis audit`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use tamis_prover::ComparisonResult;

use crate::entry::{ComparisonResultEntry, WitnessEntry};

/// Processes and their filters.
#[derive(Serialize)]
pub struct AuditReport {
    /// The reference of the comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    pub processes: Vec<AuditedEntry>,
    /// Processes whose filters could not be read, with the reason.
    pub unreadable: Vec<String>,
}

/// A process, or a thread with separate filters.
#[derive(Serialize)]
pub struct AuditedEntry {
    pub pid: i32,
    pub name: String,
    pub filters: usize,
    pub length_insns: usize,
    /// `None` if the filters exceed the limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<SummaryEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<AgainstEntry>,
}

/// The number of calls per action, for the machine's architecture.
#[derive(Clone, Default, Serialize)]
pub struct SummaryEntry {
    /// The calls with the same action for all arguments, by action.
    #[serde(serialize_with = "as_list")]
    pub actions: BTreeMap<String, usize>,
    /// The calls with an action that depends on arguments.
    pub conditional: usize,
}

/// The comparison with the reference.
#[derive(Clone, Serialize)]
pub struct AgainstEntry {
    /// The result for the filters of the process; `None` if a limit was reached.
    pub verdict: ComparisonResultEntry,
    /// Calls with different actions: left is the process, right the reference.
    pub witnesses: Vec<WitnessEntry>,
}

/// As objects with members of fixed names.
fn as_list<S: serde::Serializer>(
    actions: &BTreeMap<String, usize>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Entry<'a> {
        action: &'a str,
        calls: usize,
    }
    serializer.collect_seq(actions.iter().map(|(action, calls)| Entry {
        action,
        calls: *calls,
    }))
}

impl fmt::Display for SummaryEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut actions: Vec<_> = self.actions.iter().collect();
        actions.sort_by_key(|(_, calls)| std::cmp::Reverse(**calls));
        let parts = actions
            .iter()
            .map(|(action, calls)| format!("{action} {calls}"));
        let conditional =
            (self.conditional > 0).then(|| format!("by arguments {}", self.conditional));
        f.write_str(&parts.chain(conditional).collect::<Vec<_>>().join(", "))
    }
}

impl AgainstEntry {
    fn in_words(&self) -> &'static str {
        let ComparisonResultEntry(result) = self.verdict;
        match result {
            None => "unknown",
            Some(ComparisonResult::Equal) => "equal",
            Some(ComparisonResult::SameActions) => "other data",
            Some(ComparisonResult::Stricter) => "stricter",
            Some(ComparisonResult::Looser) => "LOOSER",
            Some(ComparisonResult::Incomparable) => "DIFFERENT",
        }
    }
}

impl fmt::Display for AuditReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.processes.is_empty() && self.unreadable.is_empty() {
            return writeln!(f, "no process has filters");
        }
        let verdict = self.against.as_ref().map_or("", |_| "verdict     ");
        writeln!(
            f,
            "    pid filters  insns {verdict}process: calls by action"
        )?;
        for own in &self.processes {
            write!(
                f,
                "{:>7} {:>7} {:>6} ",
                own.pid, own.filters, own.length_insns
            )?;
            if let Some(against) = &own.against {
                write!(f, "{:<12}", against.in_words())?;
            }
            match &own.summary {
                _ if own.filters == 0 => writeln!(f, "{}: no filter", own.name)?,
                Some(summary) => writeln!(f, "{}: {summary}", own.name)?,
                None => writeln!(f, "{}: beyond the limits", own.name)?,
            }
            for witness in own.against.iter().flat_map(|against| &against.witnesses) {
                let WitnessEntry {
                    call, left, right, ..
                } = witness;
                writeln!(
                    f,
                    "{:24}{call}: {left} is enforced, {right} was written",
                    ""
                )?;
            }
        }
        for line in &self.unreadable {
            writeln!(f, "can't be read: {line}")?;
        }
        Ok(())
    }
}
