//! The result of a campaign: the coverage of each program, and the places proved unreachable.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::SeccompData;
use tamis_analysis::dead_code;
use tamis_bpf::Pc;
use tamis_prover::{LimitReached, Limits, Space, Stop};

use crate::campaign::{Campaign, FilterId, Found};
use crate::feasible::{Feasible, feasible};
use crate::side::{Filter, words};

/// A place in a program that an input may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// An instruction is executed.
    Insn(Pc),
    /// The test of a branch with two targets fails, or holds.
    Outcome(Pc, bool),
}

/// A place that no input reached and that the prover could not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The place.
    pub place: Place,
    /// The limit that the prover reached; `None` if the place was not tried, because of cancellation or too many
    /// limits before.
    pub limit: Option<LimitReached>,
}

/// The coverage of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterCoverage {
    /// The side of the program: 0 is the left side.
    pub side: usize,
    /// The index of the filter on its side, the oldest first.
    pub index: usize,
    /// The number of its instructions.
    pub insns: usize,
    /// The number of executed instructions.
    pub executed_insns: usize,
    /// The number of instructions that no input executes, by proof.
    pub impossible_insns: usize,
    /// Twice the number of its branches with two targets.
    pub outcomes: usize,
    /// The number of outcomes that occurred.
    pub taken_outcomes: usize,
    /// The number of outcomes that no input has, by proof, including those of instructions that are never executed.
    pub impossible_outcomes: usize,
    /// All other places, ascending.
    pub gaps: Vec<Gap>,
}

impl Place {
    /// The instruction of the place.
    pub fn pc(self) -> Pc {
        match self {
            Place::Insn(pc) | Place::Outcome(pc, _) => pc,
        }
    }
}

impl FilterCoverage {
    /// Whether all reachable places were reached.
    pub fn is_complete(&self) -> bool {
        self.gaps.is_empty()
    }
}

/// All places of a program.
pub(crate) fn places(filter: &Filter) -> impl Iterator<Item = Place> {
    let ops = filter.program.ops().enumerate();
    ops.flat_map(|(pc, op)| {
        let outcomes: &[bool] = match op.is_fork() {
            true => &[false, true],
            false => &[],
        };
        let outcomes = outcomes
            .iter()
            .map(move |outcome| Place::Outcome(Pc(pc), *outcome));
        [Place::Insn(Pc(pc))].into_iter().chain(outcomes)
    })
}

impl Campaign<'_> {
    /// Uses the prover on all places in the programs that have not been reached, within the limits for each place,
    /// until cancelled. The inputs that it finds are run.
    ///
    /// # Errors
    /// If such an input shows a difference.
    pub fn prove_coverage(&mut self, limits: &Limits, stop: &Stop) -> Result<(), Found> {
        let mut programs = self.programs().into_iter();
        programs.try_for_each(|id| self.prove_filter(id, limits, stop))
    }

    /// Uses the prover on all places of a filter that were not reached and that it has not decided.
    fn prove_filter(&mut self, id: FilterId, limits: &Limits, stop: &Stop) -> Result<(), Found> {
        let mut open: Vec<Place> = places(self.filter(id)).collect();
        open.retain(|place| !self.is_reached(id, *place));
        if !open.is_empty() && !self.proved(id).is_swept {
            let dead = dead(self.filter(id), limits, stop);
            let proved = self.proved_mut(id);
            proved.impossible = dead;
            proved.is_swept = true;
        }
        for place in open {
            if self.proved(id).is_known(place) || self.is_reached(id, place) {
                continue;
            }
            if stop.is_asked_for() || self.proved(id).has_enough() {
                break;
            }
            let filter = self.filter(id);
            let answer = feasible(&filter.program, place, limits);
            let proved = self.proved_mut(id);
            proved.asked += 1;
            match answer {
                Feasible::Never => {
                    proved.impossible.insert(place);
                }
                Feasible::Unknown(limit) => {
                    proved.unknown.insert(place, limit);
                }
                Feasible::By(data) => self.run_found(&data)?,
            }
        }
        Ok(())
    }

    /// The coverage of every program, the left side's first.
    pub fn coverage(&self) -> Vec<FilterCoverage> {
        let programs = self.programs().into_iter();
        programs.map(|id| self.coverage_of(id)).collect()
    }

    /// Runs an input found by the prover, and the inputs that it leads to.
    fn run_found(&mut self, data: &SeccompData) -> Result<(), Found> {
        let found = self.run_one(&words(data));
        let found = found.or_else(|| self.run_waiting(&Stop::default()));
        found.map_or(Ok(()), Err)
    }

    fn coverage_of(&self, id: FilterId) -> FilterCoverage {
        let proved = self.proved(id);
        let mut coverage = FilterCoverage {
            side: id.side,
            index: id.index,
            ..FilterCoverage::default()
        };
        for place in places(self.filter(id)) {
            let (all, reached, impossible) = match place {
                Place::Insn(_) => (
                    &mut coverage.insns,
                    &mut coverage.executed_insns,
                    &mut coverage.impossible_insns,
                ),
                Place::Outcome(..) => (
                    &mut coverage.outcomes,
                    &mut coverage.taken_outcomes,
                    &mut coverage.impossible_outcomes,
                ),
            };
            *all += 1;
            if self.is_reached(id, place) {
                *reached += 1;
            } else if proved.impossible.contains(&place) {
                *impossible += 1;
            } else {
                let limit = proved.unknown.get(&place).copied();
                coverage.gaps.push(Gap { place, limit });
            }
        }
        coverage
    }
}

/// The prover's results for places that were not reached.
#[derive(Clone, Default)]
pub(crate) struct Proved {
    impossible: BTreeSet<Place>,
    unknown: BTreeMap<Place, LimitReached>,
    /// Whether diagrams have been used for all places at once.
    is_swept: bool,
    /// The number of places that were tried one by one.
    asked: usize,
}

/// The most places of a filter that the prover tries one by one.
const MAX_ASKED: usize = 500;
/// After this many results at a limit, no more places are tried.
const MAX_UNKNOWN: usize = 20;

impl Proved {
    fn has_enough(&self) -> bool {
        self.asked >= MAX_ASKED || self.unknown.len() >= MAX_UNKNOWN
    }

    fn is_known(&self, place: Place) -> bool {
        self.impossible.contains(&place) || self.unknown.contains_key(&place)
    }
}

/// The places that no input reaches, as far as one sweep of decision diagrams finds them.
pub(crate) fn dead(filter: &Filter, limits: &Limits, stop: &Stop) -> BTreeSet<Place> {
    let mut space = Space::stoppable(*limits, stop.clone());
    let Ok(dead) = dead_code(&mut space, &filter.program) else {
        return BTreeSet::new();
    };
    let mut places = BTreeSet::new();
    for pc in dead.unexecuted {
        places.insert(Place::Insn(pc));
        places.extend([false, true].map(|outcome| Place::Outcome(pc, outcome)));
    }
    let one_way = dead.one_way.into_iter();
    places.extend(one_way.map(|(pc, always)| Place::Outcome(pc, !always)));
    places
}
