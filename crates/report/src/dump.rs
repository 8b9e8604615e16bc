//! The filters of a running process: `tamis dump`.

use std::fmt;

use serde::Serialize;
use tamis_bpf::Program;

use crate::entry::{InsnEntry, counted, insns};

/// The filters of a process, the oldest first.
#[derive(Serialize)]
pub struct DumpReport {
    pub pid: i32,
    pub filters: Vec<DumpedEntry>,
}

/// One filter.
#[derive(Serialize)]
pub struct DumpedEntry {
    pub length_insns: usize,
    pub insns: Vec<InsnEntry>,
}

impl DumpReport {
    /// The report of a process's filters, the oldest first.
    pub fn of(pid: i32, filters: &[Program]) -> DumpReport {
        let entry = |filter: &Program| DumpedEntry {
            length_insns: filter.len(),
            insns: insns(filter.insns()),
        };
        DumpReport {
            pid,
            filters: filters.iter().map(entry).collect(),
        }
    }
}

impl fmt::Display for DumpReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.filters.len();
        if count == 0 {
            return writeln!(f, "process {} has no filters", self.pid);
        }
        for (index, filter) in self.filters.iter().enumerate() {
            let place = match index {
                _ if count == 1 => "",
                0 => ", the oldest",
                index if index + 1 == count => ", the newest",
                _ => "",
            };
            let length = counted(filter.length_insns, "instruction");
            writeln!(f, "filter {index}: {length}{place}")?;
        }
        Ok(())
    }
}
