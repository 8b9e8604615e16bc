//! Known weaknesses of the filters of running processes: `tamis audit --advisories`.
//!
//! Processes are grouped by owner. Those with the same filters share one entry of findings.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use tamis_lint::advisories::Raised;
use tamis_lint::{Example, Finding};

use crate::entry::counted;
use crate::lint::ExampleEntry;

/// Processes and the advisories that concern their filters.
#[derive(Serialize)]
pub struct AdvisoriesReport {
    /// The kernel for which deny lists were examined; `None` if its version isn't known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    pub owners: Vec<OwnerEntry>,
    /// The distinct filters of tasks, each examined once.
    pub stacks: Vec<StackEntry>,
    /// Processes whose filters could not be read, with the reason.
    pub unreadable: Vec<String>,
}

/// A unit, a container, or neither, with its processes.
#[derive(Serialize)]
pub struct OwnerEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// The advisories that concern one of the processes.
    pub advisories: BTreeSet<&'static str>,
    pub processes: Vec<ProcessEntry>,
}

/// A process, or a thread with other filters than its process.
#[derive(Serialize)]
pub struct ProcessEntry {
    pub pid: i32,
    pub name: String,
    /// The index of its filters in [`AdvisoriesReport::stacks`]; `None` without filters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<usize>,
    pub advisories: Vec<&'static str>,
}

/// The filters of one or more tasks.
#[derive(Serialize)]
pub struct StackEntry {
    pub filters: usize,
    pub length_insns: usize,
    /// The number of tasks with these filters.
    pub tasks: usize,
    pub advisories: Vec<AdvisoryEntry>,
    /// What was not checked, with the reason.
    pub gaps: Vec<String>,
}

/// An advisory that concerns filters.
#[derive(Serialize)]
pub struct AdvisoryEntry {
    pub id: &'static str,
    pub title: &'static str,
    /// Whether the findings prove the weakness; else the filters only resemble weak ones.
    pub is_proved: bool,
    pub why: &'static str,
    pub sources: &'static [&'static str],
    pub findings: Vec<AdvisoryFinding>,
}

/// A finding of an advisory.
#[derive(Serialize)]
pub struct AdvisoryFinding {
    pub code: &'static str,
    pub message: String,
    pub examples: Vec<ExampleEntry>,
    pub why: String,
    pub help: String,
}

impl From<&Raised> for AdvisoryEntry {
    fn from(raised: &Raised) -> AdvisoryEntry {
        AdvisoryEntry {
            id: raised.advisory.id,
            title: raised.advisory.title,
            is_proved: raised.advisory.is_proved,
            why: raised.advisory.why,
            sources: raised.advisory.sources,
            findings: raised.findings.iter().map(AdvisoryFinding::from).collect(),
        }
    }
}

impl From<&Finding> for AdvisoryFinding {
    fn from(finding: &Finding) -> AdvisoryFinding {
        let example = |example: &Example| ExampleEntry {
            call: tamis_abi::call::describe_briefly(&example.call),
            action: example.action.to_string(),
        };
        AdvisoryFinding {
            code: finding.code.id,
            message: finding.message.clone(),
            examples: finding.examples.iter().map(example).collect(),
            why: finding.why.clone(),
            help: finding.help.clone(),
        }
    }
}

impl AdvisoriesReport {
    /// Whether an advisory concerns a process.
    pub fn is_raised(&self) -> bool {
        self.stacks.iter().any(|stack| !stack.advisories.is_empty())
    }

    /// Whether something was not checked.
    pub fn has_gaps(&self) -> bool {
        self.stacks.iter().any(|stack| !stack.gaps.is_empty())
    }
}

impl OwnerEntry {
    fn title(&self) -> String {
        let pod = self.pod.as_ref().map(|pod| format!(" of pod {pod}"));
        match (&self.container, &self.unit) {
            (Some(container), _) => {
                format!("container {container}{}", pod.unwrap_or_default())
            }
            (None, Some(unit)) => format!("unit {unit}"),
            (None, None) => "neither a unit nor a container".to_owned(),
        }
    }
}

impl fmt::Display for AdvisoriesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.owners.is_empty() && self.unreadable.is_empty() {
            return writeln!(f, "no process has filters");
        }
        writeln!(f, "    pid stack  advisories, by owner")?;
        for owner in &self.owners {
            writeln!(f, "{}", owner.title())?;
            for process in &owner.processes {
                let stack = process.stack.map(|index| (index + 1).to_string());
                let advisories = match process.advisories.as_slice() {
                    [] if process.stack.is_none() => "no filter".to_owned(),
                    [] => "none".to_owned(),
                    ids => ids.join(", "),
                };
                let stack = stack.unwrap_or_default();
                writeln!(
                    f,
                    "{:>7} {stack:>5}  {}: {advisories}",
                    process.pid, process.name
                )?;
            }
        }
        for (index, stack) in self.stacks.iter().enumerate() {
            write_stack(f, index, stack)?;
        }
        for line in &self.unreadable {
            writeln!(f, "can't be read: {line}")?;
        }
        Ok(())
    }
}

fn write_stack(f: &mut fmt::Formatter<'_>, index: usize, stack: &StackEntry) -> fmt::Result {
    let StackEntry {
        filters,
        length_insns,
        tasks,
        advisories,
        gaps,
    } = stack;
    let (filters, tasks) = (counted(*filters, "filter"), counted(*tasks, "task"));
    let length = counted(*length_insns, "instruction");
    writeln!(f, "\nstack {}: {filters}, {length}, {tasks}", index + 1)?;
    for advisory in advisories {
        let resembles = if advisory.is_proved {
            ""
        } else {
            "resembles: "
        };
        writeln!(f, "  {}: {resembles}{}", advisory.id, advisory.title)?;
        let indent = " ".repeat(6);
        for finding in &advisory.findings {
            writeln!(f, "{indent}{} [{}]", finding.message, finding.code)?;
            for ExampleEntry { call, action } in &finding.examples {
                writeln!(f, "{indent}  {call} -> {action}")?;
            }
            writeln!(f, "{indent}help: {}", finding.help)?;
        }
        writeln!(f, "{indent}why: {}", advisory.why)?;
        writeln!(f, "{indent}see {}", advisory.sources.join(", "))?;
    }
    for gap in gaps {
        writeln!(f, "  not checked: {gap}")?;
    }
    Ok(())
}
