//! Lifting: from programs to rulesets that mean the same.
//!
//! The prover knows what a stack of programs does; its decompiler says it as a ruleset. A set of values
//! can be worded in several ways, of which now one and now another makes the better program, so each is
//! tried. A filter that never looks at the architecture is no ruleset, which has answers per
//! architecture: it is lifted as if all calls were x86_64's, whose sections cover every number together
//! with x32's, and the question for the architecture is taken out of the program again.

use tamis_abi::{Action, Arch, Endian};
use tamis_analysis::{CaseLimits, Undecompilable, Wording, decompile, narrowed};
use tamis_bpf::Stack;
use tamis_prover::{Function, Space, Subject};
use tamis_rules::Ruleset;

use crate::options::ProofEffort;

/// The architecture that stands for all where the filter doesn't ask.
pub(super) const STAND_IN: Arch = Arch::X86_64;

/// What was found out about an input.
pub(super) struct Lift {
    /// Rulesets that mean what the input means; none if there is no such ruleset.
    pub(super) lifted: Vec<Lifted>,
    /// Why there is none.
    pub(super) unliftable: Option<Undecompilable>,
    /// Whether the diagram of the input was given up: at a limit, as it would be again in a proof, or because the caller
    /// has cancelled, which every proof then reports.
    pub(super) is_beyond_diagrams: bool,
}

/// A ruleset for an input.
pub(super) struct Lifted {
    /// The ruleset.
    pub(super) ruleset: Ruleset,
    /// Whether the architecture matters; if not, the ruleset is about [`STAND_IN`] and x32.
    pub(super) asks_arch: bool,
    /// The byte order of the machines that the input is for.
    pub(super) endian: Endian,
}

impl Lift {
    /// Lifts a stack.
    pub(super) fn of(stack: &Stack, effort: &ProofEffort) -> Lift {
        let mut space = Space::stoppable(effort.limits, effort.stop.clone());
        let mut lift = Lift {
            lifted: Vec::new(),
            unliftable: None,
            is_beyond_diagrams: false,
        };
        let Some(endian) = stack.endian() else {
            return lift;
        };
        let subjects = Subject::programs(stack.programs());
        let function = match space.subject(&Subject::whole(&subjects)) {
            Ok(function) => function,
            Err(limit) => {
                lift.unliftable = Some(limit.into());
                lift.is_beyond_diagrams = true;
                return lift;
            }
        };
        for wording in [Wording::Values, Wording::Shortest] {
            match worded(&mut space, function, wording, endian) {
                Ok(lifted) => {
                    if lift
                        .lifted
                        .iter()
                        .all(|other| other.ruleset != lifted.ruleset)
                    {
                        lift.lifted.push(lifted);
                    }
                }
                Err(error) => lift.unliftable = Some(error),
            }
        }
        if !lift.lifted.is_empty() {
            lift.unliftable = None;
        }
        lift
    }
}

fn worded(
    space: &mut Space,
    function: Function,
    wording: Wording,
    endian: Endian,
) -> Result<Lifted, Undecompilable> {
    let limits = CaseLimits {
        wording,
        ..CaseLimits::default()
    };
    match decompile(space, function, &limits) {
        Err(Undecompilable::ForeignArches(audits)) if audits.is_full() => {}
        outcome => {
            return outcome.map(|ruleset| Lifted {
                ruleset,
                asks_arch: true,
                endian,
            });
        }
    }
    let elsewhere = Action::KILL_PROCESS.ret();
    let narrowed = narrowed(space, function, &[STAND_IN, Arch::X32], elsewhere)?;
    let ruleset = decompile(space, narrowed, &limits)?;
    Ok(Lifted {
        ruleset,
        asks_arch: false,
        endian,
    })
}
