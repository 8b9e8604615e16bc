//! Engines for random calls without coverage.

use std::fmt;

use tamis_abi::Endian;
use tamis_bpf::{Program, Stack};
use tamis_fuzz::{Campaign, Found};
use tamis_vm::Evaluator;

/// The evaluators of both sides.
pub(super) enum Engines {
    /// The fastest evaluators of the left and of the right side.
    Fastest(Box<[Evaluator; 2]>),
    /// The evaluator that records coverage, with the reason for it.
    WithCoverage(String),
}

impl Engines {
    /// Prepares the programs of the left and of the right side.
    pub(super) fn new(sides: [Vec<Program>; 2]) -> Engines {
        let [left, right] = sides.map(evaluator);
        match (left, right) {
            (Ok(left), Ok(right)) => Engines::Fastest(Box::new([left, right])),
            (Err(reason), _) | (_, Err(reason)) => Engines::WithCoverage(reason),
        }
    }

    /// Runs about this many calls.
    pub(super) fn run(&self, campaign: &mut Campaign<'_>, evaluations: u64) -> Option<Found> {
        match self {
            Engines::Fastest(sides) => {
                let [left, right] = &**sides;
                campaign.run_plain(
                    evaluations,
                    |words| left.run_image(words),
                    |words| right.run_image(words),
                )
            }
            Engines::WithCoverage(_) => campaign.run(evaluations),
        }
    }
}

/// The evaluator of a side, or the reason why there is none.
fn evaluator(programs: Vec<Program>) -> Result<Evaluator, String> {
    let stack = Stack::new(programs).map_err(|error| error.to_string())?;
    // Calls are generated as words of a little-endian machine.
    if stack.endian() == Some(Endian::Big) {
        return Err("a side is for big-endian machines".to_owned());
    }
    Evaluator::cached(&stack).map_err(|error| error.to_string())
}

impl fmt::Display for Engines {
    /// As a fragment: `threaded with coverage, as ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Engines::Fastest(_) => f.write_str("threaded with a table"),
            Engines::WithCoverage(reason) => write!(f, "threaded with coverage, as {reason}"),
        }
    }
}
