//! The filters of a running process: `tamis bpf dump`.

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
    pub index: usize,
    pub length_insns: usize,
    pub insns: Vec<InsnEntry>,
}

impl DumpReport {
    /// The report of a process's filters, the oldest first.
    pub fn from_filters(pid: i32, filters: &[Program]) -> DumpReport {
        let filters = filters.iter().enumerate();
        DumpReport {
            pid,
            filters: filters.map(DumpedEntry::from_indexed).collect(),
        }
    }

    /// The report of one of a process's filters, by its number from the oldest.
    pub fn of_one(pid: i32, index: usize, filter: &Program) -> DumpReport {
        DumpReport {
            pid,
            filters: vec![DumpedEntry::from_indexed((index, filter))],
        }
    }
}

impl DumpedEntry {
    fn from_indexed((index, filter): (usize, &Program)) -> DumpedEntry {
        DumpedEntry {
            index,
            length_insns: filter.len(),
            insns: insns(filter.insns()),
        }
    }
}

impl fmt::Display for DumpReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.filters.len();
        if count == 0 {
            return writeln!(f, "process {} has no filters", self.pid);
        }
        for filter in &self.filters {
            let place = match filter.index {
                _ if count == 1 => "",
                0 => ", the oldest",
                index if index + 1 == count => ", the newest",
                _ => "",
            };
            let length = counted(filter.length_insns, "instruction");
            writeln!(f, "filter {}: {length}{place}", filter.index)?;
        }
        Ok(())
    }
}
