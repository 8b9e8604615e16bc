//! The program of a policy: `tamis compile`.

use std::fmt;

use serde::Serialize;
use tamis_abi::{Endian, Word};
use tamis_bpf::Patch;
use tamis_bpf::ebpf_len::kernel_len_insns;
use tamis_compiler::Compiled;
use tamis_rules::{Variable, VariableWidth};

use crate::entry::{InsnEntry, counted, insns};
use crate::program::{ArchEntry, ProgramReport};

/// A compiled policy; instructions contain 0 for variables without a value.
#[derive(Serialize)]
pub struct CompileReport {
    pub policy: String,
    pub byte_order: &'static str,
    pub digest: String,
    pub length_insns: usize,
    pub kernel_length_insns: usize,
    pub arches: Vec<ArchEntry>,
    pub insns: Vec<InsnEntry>,
    pub variables: Vec<VariableEntry>,
    pub patches: Vec<PatchEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<ProgramReport>,
    /// The other architectures whose programs this machine runs, if the policy is for the native one by default;
    /// otherwise empty.
    #[serde(skip)]
    pub could_have: Vec<&'static str>,
}

/// A run-time variable without a value, or a set of them.
#[derive(Serialize)]
pub struct VariableEntry {
    pub name: String,
    pub bits: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    pub first: u64,
    pub last: u64,
}

/// An instruction with half of a variable's value as its constant.
#[derive(Serialize)]
pub struct PatchEntry {
    pub insn: usize,
    pub variable: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element: Option<u32>,
    pub half: &'static str,
}

impl CompileReport {
    /// The report of the policy `name`; `digest` is that of the compiled bytes.
    pub fn from_compiled(
        policy: String,
        digest: String,
        filter: &Compiled,
        report: Option<ProgramReport>,
        could_have: Vec<&'static str>,
    ) -> CompileReport {
        let program = filter.template().unbound();
        let patches = filter.template().patches().iter();
        CompileReport {
            policy,
            byte_order: match program.endian() {
                Endian::Little => "little",
                Endian::Big => "big",
            },
            digest,
            length_insns: program.len(),
            kernel_length_insns: kernel_len_insns(program),
            arches: filter.costs().iter().map(ArchEntry::from_cost).collect(),
            insns: insns(program.insns()),
            variables: variable_entries(filter.variables()),
            patches: patches
                .map(|patch| PatchEntry::from_patch(patch, filter.variables()))
                .collect(),
            report,
            could_have,
        }
    }
}

/// The variables; the elements of a set are one entry.
fn variable_entries(variables: &[Variable]) -> Vec<VariableEntry> {
    let mut entries: Vec<VariableEntry> = Vec::new();
    for variable in variables {
        match entries.last_mut() {
            Some(last) if last.name == *variable.name => last.count = last.count.map(|n| n + 1),
            _ => entries.push(VariableEntry {
                name: variable.name.to_string(),
                bits: match variable.width {
                    VariableWidth::U32 => 32,
                    VariableWidth::U64 => 64,
                },
                count: variable.element.map(|_| 1),
                first: variable.range.0,
                last: variable.range.1,
            }),
        }
    }
    entries
}

impl PatchEntry {
    fn from_patch(patch: &Patch, variables: &[Variable]) -> PatchEntry {
        let half = patch.word.index() - Word::COUNT;
        let variable = &variables[half / 2];
        PatchEntry {
            insn: patch.pc.0,
            variable: variable.name.to_string(),
            element: variable.element,
            half: ["low", "high"][half % 2],
        }
    }
}

/// The lengths, and the costs for each architecture.
impl fmt::Display for CompileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} ({} in the kernel), proved equivalent to the policy",
            self.policy,
            counted(self.length_insns, "instruction"),
            self.kernel_length_insns
        )?;
        for arch in &self.arches {
            writeln!(
                f,
                "  {:<12} {}, {} cacheable; {:.1} steps on average, {} at most, each call once with arguments 0",
                arch.arch,
                counted(arch.calls, "call"),
                arch.cacheable,
                arch.mean_steps,
                arch.max_steps
            )?;
        }
        match self.could_have.as_slice() {
            [] => Ok(()),
            arches => writeln!(
                f,
                "  without programs of {}; to add them: --arch {}",
                arches[1..].join(" and "),
                arches.join(" --arch ")
            ),
        }
    }
}
