//! Pass runs: one pass, once, over one thing, and how large that was before and after.
//!
//! Passes run in turn, some several times, and rule passes for each architecture on its own. Two runs of one
//! pass that change as much are still two, so runs have numbers.

use std::fmt;

use tamis_abi::Arch;
use tamis_bpf::cfg::{Cfg, End};
use tamis_meter::Cost;

use super::Remark;
use super::draft::Draft;

/// How large a thing is that a pass works on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// The rules of one architecture.
    Rules {
        /// How many.
        rules: usize,
        /// How many tests of arguments their conditions have.
        tests: usize,
    },
    /// A program.
    Program {
        /// Instructions, unconditional jumps not counted.
        length_insns: usize,
        /// What calls cost, if that was [asked for](crate::CompileOptions::measure_runs).
        cost: Option<Cost>,
    },
}

/// A run of a pass that changed something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassRun {
    /// Which one, counted from 1 in the order in which they happened.
    pub number: usize,
    /// Whose rules; none for a program.
    pub arch: Option<Arch>,
    /// How large that was before.
    pub before: Size,
    /// How large it was afterwards.
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
    pub(super) fn of_draft(draft: &Draft) -> Size {
        Size::Rules {
            rules: draft.rules.len(),
            tests: draft.rules.iter().map(|rule| rule.when.tests()).sum(),
        }
    }

    pub(super) fn of_graph(graph: &Cfg, cost: Option<Cost>) -> Size {
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

/// Puts remarks behind others; the numbers of their runs go on.
pub(crate) fn append(remarks: &mut Vec<Remark>, more: Vec<Remark>) {
    let so_far = remarks.last().map_or(0, |remark| remark.run.number);
    remarks.extend(more.into_iter().map(|mut remark| {
        remark.run.number += so_far;
        remark
    }));
}
