//! The result of a campaign: the coverage of each program, and what is proved unreachable.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::SeccompData;
use tamis_analysis::dead_code;
use tamis_bpf::{Op, Pc};
use tamis_prover::{LimitReached, Limits, Space, Stop};

use crate::campaign::{Campaign, Found};
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
fn places(filter: &Filter) -> impl Iterator<Item = Place> {
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
        let mut number = 0;
        for side in 0..self.sides.len() {
            for index in 0..self.sides[side].filters.len() {
                if !self.sides[side].filters[index].is_policy {
                    self.prove_filter(side, index, number, limits, stop)?;
                }
                number += 1;
            }
        }
        Ok(())
    }

    /// Asks the prover about all places of a filter that nothing reached, and it doesn't know of yet.
    fn prove_filter(
        &mut self,
        side: usize,
        index: usize,
        number: usize,
        limits: &Limits,
        stop: &Stop,
    ) -> Result<(), Found> {
        let filter = &self.sides[side].filters[index];
        let is_open = |place: &Place| !self.is_reached(number, *place);
        let open: Vec<Place> = places(filter).filter(is_open).collect();
        if !open.is_empty() && !self.proved[number].is_swept {
            self.proved[number].impossible = dead(filter, limits, stop);
            self.proved[number].is_swept = true;
        }
        for place in open {
            if self.proved[number].is_known(place) || self.is_reached(number, place) {
                continue;
            }
            if stop.is_asked_for() || self.proved[number].has_enough() {
                break;
            }
            self.proved[number].asked += 1;
            let filter = &self.sides[side].filters[index];
            let answer = feasible(&filter.program, place, limits);
            let proved = &mut self.proved[number];
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

    /// What was reached of every program, the left side's first. Policies have no instructions.
    pub fn coverage(&self) -> Vec<FilterCoverage> {
        let filters = self.sides.iter().enumerate().flat_map(|(side, of_side)| {
            let filters = of_side.filters.iter().enumerate();
            filters.map(move |(index, filter)| (side, index, filter))
        });
        filters
            .zip(0..)
            .filter(|((_, _, filter), _)| !filter.is_policy)
            .map(|((side, index, filter), number)| FilterCoverage {
                side,
                index,
                ..self.coverage_of(filter, number)
            })
            .collect()
    }

    /// Runs an input that the prover found, and what it leads to.
    fn run_found(&mut self, data: &SeccompData) -> Result<(), Found> {
        let found = self.run_one(&words(data));
        let found = found.or_else(|| self.run_waiting(&Stop::default()));
        found.map_or(Ok(()), Err)
    }

    /// Whether a kept input reached a place of a filter, counted over both sides.
    fn is_reached(&self, number: usize, place: Place) -> bool {
        let reached = &self.reached[number][place.pc().0];
        match place {
            Place::Insn(_) => reached.is_executed,
            Place::Outcome(_, outcome) => reached.outcomes[usize::from(outcome)],
        }
    }

    fn coverage_of(&self, filter: &Filter, number: usize) -> FilterCoverage {
        let proved = &self.proved[number];
        let mut coverage = FilterCoverage::default();
        for place in places(filter) {
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
            if self.is_reached(number, place) {
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
