//! The result of a campaign: the coverage of each program, and what is proved unreachable.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::SeccompData;
use tamis_analysis::dead_code;
use tamis_bpf::{Op, Pc};
use tamis_prover::{LimitReached, Limits, Space, Stop};

use crate::campaign::{Campaign, FilterId, Found};
use crate::feasible::{Feasible, feasible};
use crate::side::{Filter, words};

/// Something of a program that an input may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// An instruction is executed.
    Insn(Pc),
    /// The test of a branch fails, or holds.
    Outcome(Pc, bool),
}

/// A place that no input reached and of which the prover doesn't know whether one can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The place.
    pub place: Place,
    /// Why the prover gave up; `None` if it was not asked, because it was stopped or had given up too often.
    pub limit: Option<LimitReached>,
}

/// What was reached of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterCoverage {
    /// Whose it is: 0 is the left side.
    pub side: usize,
    /// Which filter of the side, the oldest first.
    pub index: usize,
    /// How many instructions it has.
    pub insns: usize,
    /// How many were executed.
    pub executed_insns: usize,
    /// How many no input executes, by proof.
    pub impossible_insns: usize,
    /// Twice the number of its branches.
    pub outcomes: usize,
    /// How many outcomes occurred.
    pub taken_outcomes: usize,
    /// How many outcomes no input has, by proof; those of instructions that are never executed among them.
    pub impossible_outcomes: usize,
    /// What is neither, ascending.
    pub gaps: Vec<Gap>,
}

impl Place {
    /// The instruction that it is about.
    pub fn pc(self) -> Pc {
        match self {
            Place::Insn(pc) | Place::Outcome(pc, _) => pc,
        }
    }
}

impl FilterCoverage {
    /// Whether all that can be reached was.
    pub fn is_complete(&self) -> bool {
        self.gaps.is_empty()
    }
}

/// All places of a program.
pub(crate) fn places(filter: &Filter) -> impl Iterator<Item = Place> {
    let ops = filter.program.ops().enumerate();
    ops.flat_map(|(pc, op)| {
        let outcomes: &[bool] = match op {
            Op::Branch { .. } => &[false, true],
            _ => &[],
        };
        let outcomes = outcomes
            .iter()
            .map(move |outcome| Place::Outcome(Pc(pc), *outcome));
        [Place::Insn(Pc(pc))].into_iter().chain(outcomes)
    })
}

impl Campaign<'_> {
    /// Asks the prover about everything in the programs that nothing has reached yet, within the limits for
    /// each place, until the caller stops it. What it finds an input for is run.
    ///
    /// # Errors
    /// If such an input shows a difference.
    pub fn prove_coverage(&mut self, limits: &Limits, stop: &Stop) -> Result<(), Found> {
        let mut programs = self.programs().into_iter();
        programs.try_for_each(|id| self.prove_filter(id, limits, stop))
    }

    /// Asks the prover about all places of a filter that nothing reached, and it doesn't know of yet.
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

    /// What was reached of every program, the left side's first.
    pub fn coverage(&self) -> Vec<FilterCoverage> {
        let programs = self.programs().into_iter();
        programs.map(|id| self.coverage_of(id)).collect()
    }

    /// Runs an input that the prover found, and what it leads to.
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

/// What the prover said about places that nothing reached.
#[derive(Clone, Default)]
pub(crate) struct Proved {
    impossible: BTreeSet<Place>,
    unknown: BTreeMap<Place, LimitReached>,
    /// Whether decision diagrams were asked for all places at once.
    is_swept: bool,
    /// How many places the prover was asked about one by one.
    asked: usize,
}

/// The most places of a filter that the prover is asked about one by one.
const MAX_ASKED: usize = 500;
/// Where it gives up on so many, it is asked about no more.
const MAX_UNKNOWN: usize = 20;

impl Proved {
    fn has_enough(&self) -> bool {
        self.asked >= MAX_ASKED || self.unknown.len() >= MAX_UNKNOWN
    }

    fn is_known(&self, place: Place) -> bool {
        self.impossible.contains(&place) || self.unknown.contains_key(&place)
    }
}

/// What no input reaches, as far as one sweep of decision diagrams tells.
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
