//! Pass runs: one pass, once, on rules or a program, with the sizes before and after.
//!
//! Passes run in turn, some several times, and rule passes once per architecture. Two runs of one pass with equal
//! changes are still two runs, so runs are numbered.

use std::fmt;

use crate::meter::Cost;
use tamis_abi::Arch;
use tamis_bpf::cfg::{Cfg, End};

use super::draft::Draft;
use crate::passes::Remark;

/// The size of the rules or the program that a pass rewrites.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// The rules of one architecture.
    Rules {
        /// The number of rules.
        rules: usize,
        /// The number of tests of arguments in their conditions.
        tests: usize,
    },
    /// A program.
    Program {
        /// The number of instructions, without unconditional jumps.
        length_insns: usize,
        /// The cost of calls, if [requested](crate::CompileOptions::measure_runs).
        cost: Option<Cost>,
    },
}

/// A run of a pass that changed something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassRun {
    /// The number of the run, from 1.
    pub number: usize,
    /// The architecture of the rules; `None` for a program.
    pub arch: Option<Arch>,
    /// The size before the run.
    pub before: Size,
    /// The size after the run.
    pub after: Size,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Rules { rules, tests } => {
                let (s, t) = (plural(*rules), plural(*tests));
                write!(f, "{rules} rule{s} with {tests} test{t}")
            }
            Size::Program { length_insns, .. } => {
                write!(f, "{length_insns} instruction{}", plural(*length_insns))
            }
        }
    }
}

const fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

impl Size {
    pub(in crate::passes) fn of_draft(draft: &Draft) -> Size {
        Size::Rules {
            rules: draft.rules.len(),
            tests: draft.rules.iter().map(|rule| rule.when.tests()).sum(),
        }
    }

    pub(in crate::passes) fn of_graph(graph: &Cfg, cost: Option<Cost>) -> Size {
        let insns = graph.blocks().map(|(_, block)| {
            let jumps = matches!(block.end, End::Goto(_));
            block.ops.len() + usize::from(!jumps)
        });
        Size::Program {
            length_insns: insns.sum(),
            cost,
        }
    }
}

/// Appends remarks; the numbers of their runs continue.
pub fn append(remarks: &mut Vec<Remark>, more: Vec<Remark>) {
    let so_far = remarks.last().map_or(0, |remark| remark.run.number);
    remarks.extend(more.into_iter().map(|mut remark| {
        remark.run.number += so_far;
        remark
    }));
}
