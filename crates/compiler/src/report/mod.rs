//! Reports: the use of a program's instructions, the cost of each call, and the distance from a lower bound.
//!
//! They only read the finished program, so they work for programs of any origin.

#[cfg(feature = "foreign")]
pub mod bound;
pub mod calls;
pub mod ownership;

use crate::passes::{PassRun, Remark};

/// All changes of one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassTotal {
    /// The name of the pass.
    pub pass: &'static str,
    /// The number of changes it applied.
    pub changes: usize,
    /// The estimated number of instructions that they saved.
    pub saved_insns: usize,
}

/// The changes of each pass, in order of their first changes.
pub fn totals(remarks: &[Remark]) -> Vec<PassTotal> {
    let mut totals: Vec<PassTotal> = Vec::new();
    for remark in remarks {
        let known = totals.iter_mut().find(|total| total.pass == remark.pass);
        match known {
            Some(total) => {
                total.changes += 1;
                total.saved_insns += remark.saved_insns;
            }
            None => totals.push(PassTotal {
                pass: remark.pass,
                changes: 1,
                saved_insns: remark.saved_insns,
            }),
        }
    }
    totals
}

/// A run of a pass that changed something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassRunTotal {
    /// The name of the pass.
    pub pass: &'static str,
    /// The run: its number, its input, and the size of that.
    pub run: PassRun,
    /// The number of changes it applied.
    pub changes: usize,
}

/// The runs of passes in some remarks, in the order of execution.
pub fn runs(remarks: &[Remark]) -> Vec<PassRunTotal> {
    let same_run = |a: &Remark, b: &Remark| a.run.number == b.run.number;
    let runs = remarks.chunk_by(same_run).map(|own| PassRunTotal {
        pass: own[0].pass,
        run: own[0].run,
        changes: own.len(),
    });
    runs.collect()
}
