//! What became of a service's filters: `tamis harden`.

use std::fmt;

use serde::Serialize;

use crate::entry::counted;

/// A hardened service.
#[derive(Serialize)]
pub struct HardenReport {
    pub unit: String,
    /// The files of the unit, in the order in which they apply.
    pub files: Vec<String>,
    /// The settings that are part of the filter.
    pub carried: Vec<String>,
    /// The settings that stay, with their filters.
    pub kept: Vec<String>,
    pub notes: Vec<String>,
    /// How many filters the service has before and after.
    pub filters_before: usize,
    pub filters_after: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessEntry>,
    /// The filters of the process; absent if none runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<StackEntry>,
    pub filter: StackEntry,
    /// How many command lines are executed under the filter.
    pub commands: usize,
    pub is_written: bool,
    pub filter_path: String,
    pub drop_in_path: String,
    pub drop_in: String,
}

/// The process with which the unit was compared.
#[derive(Serialize)]
pub struct ProcessEntry {
    pub pid: i32,
    /// Whether its filters are what the unit says, for every call.
    pub is_equal: bool,
}

/// The cost of filters.
#[derive(Serialize)]
pub struct StackEntry {
    pub filters: usize,
    pub length_insns: usize,
    pub calls: Vec<CallEntry>,
}

/// The instructions that are executed for a call; 0 if the kernel runs no filter for it.
#[derive(Serialize)]
pub struct CallEntry {
    pub call: String,
    pub steps: u32,
}

impl fmt::Display for StackEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filters = counted(self.filters, "filter");
        let insns = counted(self.length_insns, "instruction");
        write!(f, "{filters}, {insns}; steps of")?;
        for (index, entry) in self.calls.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma} {} {}", entry.call, entry.steps)?;
        }
        Ok(())
    }
}

impl fmt::Display for HardenReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commands = counted(self.commands, "command");
        let before = counted(self.filters_before, "filter");
        let after = self.filters_after;
        writeln!(
            f,
            "{}: {before} -> {after}, {commands} under the new one",
            self.unit
        )?;
        match &self.process {
            Some(ProcessEntry {
                pid,
                is_equal: true,
            }) => {
                writeln!(
                    f,
                    "  proved equivalent to the unit and to the filters of process {pid}"
                )?;
            }
            Some(ProcessEntry {
                pid,
                is_equal: false,
            }) => writeln!(
                f,
                "  the filters of process {pid} are not what the unit says: the filter is as strict as both"
            )?,
            None => writeln!(
                f,
                "  proved equivalent to the unit; compared with no process"
            )?,
        }
        if let Some(before) = &self.before {
            writeln!(f, "  before  {before}")?;
        }
        writeln!(f, "  filter  {}", self.filter)?;
        writeln!(f, "  in it   {}", self.carried.join(", "))?;
        if !self.kept.is_empty() {
            writeln!(
                f,
                "  stay, with filters of their own: {}",
                self.kept.join(", ")
            )?;
        }
        for note in &self.notes {
            writeln!(f, "  note: {note}")?;
        }
        match self.is_written {
            true => {
                writeln!(f, "  written {}, {}", self.filter_path, self.drop_in_path)?;
                writeln!(
                    f,
                    "  then    systemctl daemon-reload && systemctl restart {}",
                    self.unit
                )
            }
            false => write!(f, "{}:\n{}", self.drop_in_path, self.drop_in),
        }
    }
}
