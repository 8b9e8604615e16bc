//! Lifting: from programs to equivalent rulesets.
//!
//! The prover computes the function of a stack of programs; its decompiler expresses it as a ruleset. A set of values
//! can be expressed in several forms, and no form always gives the best program, so each is tried. A ruleset has
//! actions per architecture, so a filter that does not test the architecture has no ruleset. It is lifted as if all
//! calls were x86_64 calls, whose sections cover every number together with those of x32, and the test of the
//! architecture is then removed from the program.

use tamis_abi::{Action, Arch, Endian};
use tamis_analysis::{CaseLimits, Undecompilable, Wording, decompile, narrowed};
use tamis_bpf::Stack;
use tamis_prover::{Function, Space, Subject};
use tamis_rules::Ruleset;

use tamis_compiler::ProofEffort;

/// The architecture of the ruleset if the filter does not test the architecture.
pub(super) const STAND_IN: Arch = Arch::X86_64;

/// The result of lifting an input.
pub(super) struct Lift {
    /// Rulesets that are equivalent to the input; none if there is no such ruleset.
    pub(super) lifted: Vec<Lifted>,
    /// The reason why there is none.
    pub(super) unliftable: Option<Undecompilable>,
    /// Whether the diagram of the input was abandoned: at a limit, which a proof would reach again, or because the
    /// caller has cancelled, which every proof then reports.
    pub(super) is_beyond_diagrams: bool,
}

/// A ruleset for an input.
pub(super) struct Lifted {
    /// The ruleset.
    pub(super) ruleset: Ruleset,
    /// Whether the architecture matters; if not, the ruleset has sections for [`STAND_IN`] and x32.
    pub(super) asks_arch: bool,
    /// The byte order of the machines that the input is for.
    pub(super) endian: Endian,
}

impl Lift {
    /// Lifts a stack.
    pub(super) fn from_stack(stack: &Stack, effort: &ProofEffort) -> Lift {
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
