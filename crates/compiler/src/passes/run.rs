//! Runs: one pass, once, over one thing, and how large that was before and after.
//!
//! Passes run in turn, some several times, and rule passes for each architecture on its own. Two runs of one
//! pass that change as much are still two, so runs have numbers.

use std::fmt;

use tamis_abi::Arch;
use tamis_bpf::cfg::{Cfg, End};
use tamis_rules::{Predicate, Section};

use super::Remark;
use crate::report::calls::ProgramCost;

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
        /// What calls cost, if that was [asked for](crate::Options::measure_runs).
        cost: Option<ProgramCost>,
    },
}

/// A run of a pass that changed something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
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
    pub(super) fn of_section(section: &Section) -> Size {
        let mut open = Vec::new();
        let tests = section.rules.iter();
        let tests = tests.map(|rule| tests_of(&rule.when, &mut open));
        Size::Rules {
            rules: section.rules.len(),
            tests: tests.sum(),
        }
    }

    pub(super) fn of_graph(graph: &Cfg, cost: Option<ProgramCost>) -> Size {
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

/// The tests of a condition, without recursion: `open` is empty before and afterwards.
fn tests_of<'a>(condition: &'a Predicate, open: &mut Vec<&'a Predicate>) -> usize {
    let mut tests = 0;
    open.push(condition);
    while let Some(condition) = open.pop() {
        let parts = match condition {
            Predicate::True | Predicate::False => &[],
            Predicate::Test(_) => std::slice::from_ref(condition),
            Predicate::Not(inner) => std::slice::from_ref(&**inner),
            Predicate::All(parts) | Predicate::Any(parts) => &parts[..],
        };
        for part in parts {
            match part {
                Predicate::Test(_) => tests += 1,
                other => open.push(other),
            }
        }
    }
    tests
}

/// Puts remarks behind others; the numbers of their runs go on.
pub(crate) fn append(remarks: &mut Vec<Remark>, more: Vec<Remark>) {
    let so_far = remarks.last().map_or(0, |remark| remark.run.number);
    remarks.extend(more.into_iter().map(|mut remark| {
        remark.run.number += so_far;
        remark
    }));
}
