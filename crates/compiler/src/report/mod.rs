//! Reports: where the instructions of a program go, what each call costs, and how far it is from the best that could be.
//!
//! They look at a finished program and nothing else, so they serve programs of any origin.

#[cfg(feature = "foreign")]
pub mod bound;
pub mod calls;
pub mod ownership;

use crate::passes::{PassRun, Remark};

/// What a pass did, all its changes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassTotal {
    /// Its name.
    pub pass: &'static str,
    /// How many changes it applied.
    pub changes: usize,
    /// By how many instructions they made the program shorter, as far as the pass can tell.
    pub saved_insns: usize,
}

/// What each pass did, in order of their first changes.
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
    /// Which run, over what, and how large that was.
    pub run: PassRun,
    /// How many changes it applied.
    pub changes: usize,
}

/// The runs that remarks are about, in the order in which they happened.
pub fn runs(remarks: &[Remark]) -> Vec<PassRunTotal> {
    let same_run = |a: &Remark, b: &Remark| a.run.number == b.run.number;
    let runs = remarks.chunk_by(same_run).map(|own| PassRunTotal {
        pass: own[0].pass,
        run: own[0].run,
        changes: own.len(),
    });
    runs.collect()
}
