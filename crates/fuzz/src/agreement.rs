//! Agreement of two filters on calls that take every branch each feasible way.
//!
//! This confirms the results of the prover without relying on how it reads programs. The calls are those of a
//! [`Campaign`] and, for every constant of the programs, calls near it: the constant, its neighbours, its bits, and
//! each with the other half of the argument set; for a comparison of two words, either near the other. Each call is
//! evaluated by the reference interpreter, or the evaluator of rulesets, on both sides.
//!
//! A branch outcome without a call counts as impossible only if both readings of the prover prove it. Gates are used
//! first, for all such outcomes at once, and return inputs; diagrams must agree on the rest. If an input from a
//! reading does not have the outcome, or a reading calls an actual outcome impossible, the reading is wrong, which is
//! reported. Outcomes that are not decided within the limits remain unsettled, and are counted.

use std::collections::BTreeSet;

use tamis_abi::{SeccompData, Word};
use tamis_bpf::{InvalidProgram, Op, Operand, Pc};
use tamis_prover::misreading::Reading;
use tamis_prover::{Branches, Limits, Stop, Subject};

use crate::campaign::{Campaign, FilterId, Found};
use crate::coverage::{Place, dead, places};
use crate::feasible::{Feasible, feasible_by_diagrams};
use crate::path::Path;
use crate::side::{Filter, Words, data, words};

/// The seed; the campaign draws no random inputs.
const SEED: u64 = 0;
/// The most outcomes of a program that diagrams decide one by one.
const MAX_ASKED: usize = 50;

/// The number of additional conflicts of the solver for each outcome without a call. On the corpus each takes 3 to
/// 10.
const CONFLICTS_PER_EDGE: u64 = 32;

/// The calls and outcomes on which two filters agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// The number of calls for which the reference returned equal values on both sides.
    pub calls: usize,
    /// Twice the number of branches with two targets of all programs: the outcomes of their tests.
    pub edges: usize,
    /// The number of outcomes that are impossible by both readings of the prover.
    pub infeasible_edges: usize,
    /// The number of outcomes without a call that are not impossible by both readings.
    pub unsettled_edges: usize,
}

/// The reason why there is no agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// The subjects return different values for a call.
    Answers(Found),
    /// The prover misreads a program: its result for a call is not that of the interpreter.
    Misread {
        /// The reading with the error.
        reading: Reading,
        /// The call.
        data: SeccompData,
    },
    /// A policy is so large that even its translation to an input program is too long.
    TooLarge(InvalidProgram),
    /// The caller cancelled; too few calls were run for an agreement.
    Stopped,
}

/// Tests whether two subjects agree, with limits for each query to the prover.
///
/// # Errors
/// If they don't, if the prover contradicts the interpreter about one of the programs, or if the caller cancels: an
/// agreement on fewer calls than without a deadline does not count.
pub fn agreement(
    subjects: [&Subject<'_>; 2],
    limits: &Limits,
    stop: &Stop,
) -> Result<Agreement, Disagreement> {
    let campaign = Campaign::new(subjects, SEED).map_err(Disagreement::TooLarge)?;
    let mut judge = Judge {
        campaign,
        agreement: Agreement::default(),
        tried: BTreeSet::new(),
    };
    judge.run_waiting(stop)?;
    judge.near_constants(stop)?;
    for id in judge.campaign.programs() {
        judge.settle(id, limits, stop)?;
    }
    judge.agreement.calls = judge.calls();
    // Checked again, because the cancellation may have been reported as a limit of the prover.
    not_stopped(stop)?;
    Ok(judge.agreement)
}

struct Judge<'a> {
    campaign: Campaign<'a>,
    agreement: Agreement,
    /// The calls near constants that the reference has evaluated.
    tried: BTreeSet<Words>,
}

fn not_stopped(stop: &Stop) -> Result<(), Disagreement> {
    match stop.is_asked_for() {
        true => Err(Disagreement::Stopped),
        false => Ok(()),
    }
}

impl Judge<'_> {
    fn run_waiting(&mut self, stop: &Stop) -> Result<(), Disagreement> {
        let found = self.campaign.run_waiting(stop);
        found.map_or(Ok(()), |found| Err(Disagreement::Answers(found)))?;
        not_stopped(stop)
    }

    /// The number of different calls that the reference has evaluated.
    fn calls(&self) -> usize {
        let kept = self.campaign.kept().map(|data| words(&data));
        kept.chain(self.tried.iter().copied())
            .collect::<BTreeSet<Words>>()
            .len()
    }

    /// Evaluates a call on both sides by the reference.
    fn try_call(&mut self, call: Words) -> Result<(), Disagreement> {
        if !self.tried.insert(call) {
            return Ok(());
        }
        if let Some(found) = self.campaign.run_one(&call) {
            return Err(Disagreement::Answers(found));
        }
        let data = data(&call);
        let answers = self.campaign.answers(&data);
        match answers[0] == answers[1] {
            true => Ok(()),
            false => Err(Disagreement::Answers(self.campaign.confirm(&data, answers))),
        }
    }

    /// Evaluates calls near each constant of the programs, made from the first kept call that reaches it.
    fn near_constants(&mut self, stop: &Stop) -> Result<(), Disagreement> {
        let kept: Vec<Words> = self.campaign.kept().map(|data| words(&data)).collect();
        for id in self.campaign.filters() {
            let mut met = BTreeSet::new();
            for call in &kept {
                let filter = self.campaign.filter(id);
                let path = Path::trace(&filter.program, call);
                for (word, meets) in operands(&path, filter, &mut met) {
                    let k = match meets {
                        Meets::Constant(k) => k,
                        Meets::Word(other) => call[other.index()],
                    };
                    for near in near(call, word, k) {
                        self.try_call(near)?;
                    }
                }
                not_stopped(stop)?;
            }
        }
        self.run_waiting(stop)
    }

    /// Decides which outcomes of a program's branches are impossible, among those without a call.
    fn settle(&mut self, id: FilterId, limits: &Limits, stop: &Stop) -> Result<(), Disagreement> {
        let is_outcome = |place: &Place| matches!(place, Place::Outcome(..));
        let mut open: Vec<Place> = places(self.campaign.filter(id))
            .filter(is_outcome)
            .collect();
        self.agreement.edges += open.len();
        self.drop_reached(id, &mut open);
        if open.is_empty() {
            return Ok(());
        }
        let is_settled_by_gates = self.ask_gates(id, &mut open, limits, stop)?;
        let impossible = self.ask_diagrams(id, &open, limits, stop)?;
        self.refute(id, Reading::Diagrams, &impossible)?;
        if is_settled_by_gates {
            self.refute(id, Reading::Gates, &open)?;
        }
        self.drop_reached(id, &mut open);
        let is_infeasible = |place: &&Place| is_settled_by_gates && impossible.contains(place);
        let infeasible = open.iter().filter(is_infeasible).count();
        self.agreement.infeasible_edges += infeasible;
        self.agreement.unsettled_edges += open.len() - infeasible;
        Ok(())
    }

    /// Fails if a call reaches a place that is impossible by a reading.
    fn refute<'p>(
        &self,
        id: FilterId,
        reading: Reading,
        impossible: impl IntoIterator<Item = &'p Place>,
    ) -> Result<(), Disagreement> {
        let mut impossible = impossible.into_iter();
        let Some(place) = impossible.find(|place| self.campaign.is_reached(id, **place)) else {
            return Ok(());
        };
        let program = &self.campaign.filter(id).program;
        let gets_there = |data: &SeccompData| {
            let path = Path::trace(program, &words(data));
            match place {
                Place::Insn(pc) => path.executed.contains(pc),
                Place::Outcome(pc, outcome) => {
                    let mut forks = path.forks.iter();
                    forks.any(|fork| (fork.pc, fork.outcome) == (*pc, *outcome))
                }
            }
        };
        let data = self.campaign.kept().find(gets_there);
        let data = data.expect("what is reached is reached by a kept call");
        Err(Disagreement::Misread { reading, data })
    }

    fn drop_reached(&self, id: FilterId, open: &mut Vec<Place>) {
        open.retain(|place| !self.campaign.is_reached(id, *place));
    }

    /// Runs inputs that gates find for open outcomes, until they prove that there are no more. Returns whether they
    /// did.
    fn ask_gates(
        &mut self,
        id: FilterId,
        open: &mut Vec<Place>,
        limits: &Limits,
        stop: &Stop,
    ) -> Result<bool, Disagreement> {
        let filter = self.campaign.filter(id);
        let limits = Limits {
            max_conflicts: limits.max_conflicts + CONFLICTS_PER_EDGE * open.len() as u64,
            ..*limits
        };
        let Ok(mut branches) = Branches::from_program(&filter.program, &limits, stop) else {
            return Ok(false);
        };
        loop {
            let outcomes = open.iter().filter_map(|place| match place {
                Place::Outcome(pc, outcome) => Some((*pc, *outcome)),
                Place::Insn(_) => None,
            });
            match branches.input_for_any(outcomes) {
                Ok(None) => return Ok(true),
                Err(_) => return Ok(false),
                Ok(Some(data)) => {
                    self.run_named(&data, stop)?;
                    let before = open.len();
                    self.drop_reached(id, open);
                    if open.len() == before {
                        let reading = Reading::Gates;
                        return Err(Disagreement::Misread { reading, data });
                    }
                }
            }
        }
    }

    /// The impossible places by diagrams, including all open outcomes that they can decide. The inputs that they find
    /// for others are run.
    fn ask_diagrams(
        &mut self,
        id: FilterId,
        open: &[Place],
        limits: &Limits,
        stop: &Stop,
    ) -> Result<BTreeSet<Place>, Disagreement> {
        if open.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut impossible = dead(self.campaign.filter(id), limits, stop);
        let asked = open.iter().filter(|place| !impossible.contains(place));
        let asked: Vec<Place> = asked.take(MAX_ASKED).copied().collect();
        for place in asked {
            not_stopped(stop)?;
            if self.campaign.is_reached(id, place) {
                continue;
            }
            let filter = self.campaign.filter(id);
            match feasible_by_diagrams(&filter.program, place, limits, stop) {
                Feasible::Never => {
                    impossible.insert(place);
                }
                Feasible::Unknown(_) => {}
                Feasible::By(data) => {
                    self.run_named(&data, stop)?;
                    if !self.campaign.is_reached(id, place) {
                        let reading = Reading::Diagrams;
                        return Err(Disagreement::Misread { reading, data });
                    }
                }
            }
        }
        Ok(impossible)
    }

    /// Runs a call found by a reading, and the inputs that it leads to.
    fn run_named(&mut self, data: &SeccompData, stop: &Stop) -> Result<(), Disagreement> {
        let call = words(data);
        self.try_call(call)?;
        // Kept even if the fast evaluation finds nothing new.
        self.campaign.keep(&call, self.campaign.answers(data));
        self.run_waiting(stop)
    }
}

/// The operand that a word of the call is combined with in an instruction.
#[derive(Clone, Copy)]
enum Meets {
    Constant(u32),
    /// Another word, in X.
    Word(Word),
}

/// The operands on a path that no earlier path has reached, each with the words that may be combined with it.
fn operands(path: &Path, filter: &Filter, met: &mut BTreeSet<Pc>) -> Vec<(Word, Meets)> {
    let mut operands = Vec::new();
    let mut forks = path.forks.iter().peekable();
    let mut loaded: Vec<Word> = Vec::new();
    for pc in &path.executed {
        let mut word = None;
        while let Some(fork) = forks.next_if(|fork| fork.pc == *pc) {
            word = fork.word();
        }
        // Approximation: a computed value is derived from the two words loaded last.
        let recent = loaded.iter().rev().take(2).copied();
        match filter.program.op(*pc) {
            Op::LoadData(offset) => {
                loaded.extend(Word::from_offset(offset, filter.program.endian()));
            }
            Op::Branch {
                operand: Operand::K(k),
                ..
            }
            | Op::Alu(_, Operand::K(k))
            | Op::LoadImm(k)
            | Op::LoadXImm(k)
                if met.insert(*pc) =>
            {
                let words = word.map_or_else(|| recent.collect(), |word| vec![word]);
                let meets = Meets::Constant(k);
                operands.extend(words.into_iter().map(|word| (word, meets)));
            }
            Op::Branch {
                operand: Operand::X,
                ..
            }
            | Op::Alu(_, Operand::X)
                if met.insert(*pc) =>
            {
                if let [.., left, right] = loaded[..] {
                    operands.extend([(left, Meets::Word(right)), (right, Meets::Word(left))]);
                }
            }
            _ => {}
        }
    }
    operands
}

/// Calls with a word near a constant, and with the other half of that word set.
fn near(call: &Words, word: Word, k: u32) -> Vec<Words> {
    let with = |word: usize, value, mut call: Words| {
        call[word] = value;
        call
    };
    let word = word.index();
    let bits = (0..u32::BITS).map(|bit| 1 << bit);
    let bits = bits.filter(|bit| k & bit != 0);
    let values = [
        k,
        k.wrapping_add(1),
        k.wrapping_sub(1),
        k.wrapping_neg(),
        !k,
    ]
    .into_iter();
    let mut near: Vec<Words> = values
        .chain(bits)
        .map(|value| with(word, value, *call))
        .collect();
    // Number and architecture have no other half.
    if word > Word::ARCH.index() {
        let exact = with(word, k, *call);
        near.extend([0, 1, 1 << 31, u32::MAX].map(|other| with(word ^ 1, other, exact)));
    }
    near
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tamis_abi::Endian;
    use tamis_bpf::{AluOp, Program, Test};

    use super::*;

    fn agree(left: &[Op], right: &[Op]) -> Result<Agreement, Disagreement> {
        let programs = [left, right].map(|ops| {
            let insns = ops.iter().map(|op| (*op).into()).collect();
            Program::new(insns, Endian::Little).unwrap()
        });
        let [left, right] = programs.each_ref().map(Subject::Program);
        agreement([&left, &right], &Limits::default(), &Stop::default())
    }

    const ALLOW: Op = Op::RetImm(0x7fff_0000);
    const DENY: Op = Op::RetImm(0x0005_0001);

    #[test]
    fn every_outcome_is_reached_or_ruled_out_by_both_readings() {
        // Only an input that solves the equation reaches the last return; no value is both above 9 and below 9.
        let ops = [
            Op::LoadData(16),
            Op::branch(Test::Gt, 9, 0, 2),
            Op::branch(Test::Ge, 9, 1, 0),
            DENY,
            Op::Alu(AluOp::Mul, Operand::K(0x0001_2345)),
            Op::branch(Test::Eq, 0x9abc_def1, 0, 1),
            DENY,
            ALLOW,
        ];
        let agreement = agree(&ops, &ops).unwrap();
        assert_eq!((agreement.edges, agreement.infeasible_edges), (12, 2));
        assert_eq!(agreement.unsettled_edges, 0);
        assert!(agreement.calls > 10);
    }

    #[test]
    fn agreement_that_is_stopped_is_none() {
        let ops = [Op::LoadData(0), Op::branch(Test::Eq, 7, 0, 1), DENY, ALLOW];
        let agree = |stop: &Stop| {
            let program = Program::new(ops.map(Into::into).to_vec(), Endian::Little).unwrap();
            let subject = Subject::Program(&program);
            agreement([&subject, &subject], &Limits::default(), stop)
        };
        assert!(agree(&Stop::default()).is_ok());
        // At every point of the run, even when all edges are covered.
        for times in (0..).map(|round: u32| round.pow(3)) {
            let asked = AtomicU32::new(0);
            let stop = Stop::when(move || asked.fetch_add(1, Ordering::Relaxed) >= times);
            match agree(&stop) {
                Ok(_) => return assert!(times > 10, "{times}"),
                Err(disagreement) => assert_eq!(disagreement, Disagreement::Stopped),
            }
        }
    }

    #[test]
    fn a_half_that_one_side_forgets_is_found() {
        let whole = [
            Op::LoadData(16),
            Op::branch(Test::Eq, 7, 0, 2),
            Op::LoadData(20),
            Op::branch(Test::Eq, 0, 1, 0),
            DENY,
            ALLOW,
        ];
        let low = [Op::LoadData(16), Op::branch(Test::Eq, 7, 1, 0), DENY, ALLOW];
        let refusal = agree(&whole, &low);
        let Err(Disagreement::Answers(found)) = refusal else {
            panic!("{refusal:?}");
        };
        assert_eq!(found.data.args[0] as u32, 7);
    }
}
