//! The result cache: the action of a stack as far as it is determined before a call's arguments are known.
//!
//! Most filters decide most calls by the architecture and the number alone. For each architecture that the filters test
//! and for every number, a [`Table`] has the [`Plan`] of the *whole stack*: its action of any kind, or the instructions
//! of its filters at which evaluation must continue, with all live values in the registers and the scratch memory
//! there. Liveness is computed, not assumed, so any mix of instructions is possible.
//!
//! Numbers below [`Table::DENSE`], also those of x32, are looked up in an array; the others by their interval. For an
//! architecture that no filter tests the whole stack runs.
//!
//! This is the idea of gVisor's cache of results and of the kernel's bitmap, for every action, number and instruction.

mod explore;
mod live;
mod numbers;

use std::collections::BTreeMap;
use std::iter;

use tamis_abi::Arch;
use tamis_abi::hash::WordHashMap;
use tamis_bpf::stack::{NO_FILTER, stricter};
use tamis_bpf::{Op, Operand, Pc, Program, Stack};

use self::explore::Filter;
use crate::threaded::State;

/// The plans of a stack.
///
/// ```
/// use tamis_abi::{Action, Arch, Endian};
/// use tamis_bpf::{Op, Program, Stack, Test};
/// use tamis_vm::cache::{Plan, Table};
/// let (allow, deny) = (Action::ALLOW.ret(), Action::errno(1).ret());
/// let ops = [
///     Op::LoadData(4),
///     Op::branch(Test::Eq, Arch::X86_64.audit(), 1, 0),
///     Op::RetImm(0),
///     Op::LoadData(0),
///     Op::branch(Test::Eq, 39, 0, 1),
///     Op::RetImm(deny),
///     Op::RetImm(allow),
/// ];
/// let program = Program::new(ops.map(Into::into).to_vec(), Endian::Little).unwrap();
/// let table = Table::new(&Stack::from(program));
/// assert_eq!(table.plan(Arch::X86_64.audit(), 39), Plan::Answer(deny));
/// assert_eq!(table.plan(Arch::X86_64.audit(), u32::MAX), Plan::Answer(allow));
/// assert!(table.residuals().len() == 1, "the whole filter, for other architectures");
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    /// The architecture that the filters test first. If they test none, it is 0 and all numbers have the whole stack as
    /// their plan.
    first: ArchTable,
    /// The [`key`] of its number 0.
    first_key: u64,
    others: Vec<ArchTable>,
    /// The whole stack.
    whole: Plan,
    parts: Vec<Vec<Part>>,
    residuals: Vec<Residual>,
}

/// The plans of numbers that follow each other.
type Row = Box<[Plan; Table::DENSE as usize]>;

/// The plans of an architecture.
#[derive(Clone, Debug)]
struct ArchTable {
    audit: u32,
    /// The plans of the first numbers.
    dense: Row,
    /// Those of the first ones with the bit of x32.
    dense_x32: Row,
    /// The last number with the same plan as the first that isn't in the array, and that plan: mostly all that have no call.
    behind: (u32, Plan),
    /// The plans of all numbers: the last number of each interval, and its plan.
    intervals: Vec<(u32, Plan)>,
}

/// The remaining evaluation of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Nothing: this is the stack's answer.
    Answer(u32),
    /// One filter goes on, and nothing else matters: the residual with this index in [`Table::residuals`].
    Residual(u32),
    /// The parts with this index in [`Table::parts`].
    Parts(u32),
}

/// The contribution of some filters of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// They give this.
    Answer(u32),
    /// One of them continues at the residual with this index in [`Table::residuals`].
    Residual(u32),
}

/// Where the evaluation of a filter goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Residual {
    /// The filter, counted from the oldest.
    pub filter: usize,
    /// The instruction.
    pub pc: Pc,
    /// The registers and the scratch memory there, 0 where they don't matter.
    pub state: State,
}

/// The effect of a filter on a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Answer(u32),
    Resume(Residual),
}

impl Table {
    /// The numbers from 0 on, and from the bit of x32 on, that are looked up in an array.
    pub const DENSE: u32 = 512;

    /// The most architectures in the table.
    const MAX_ARCHES: usize = 16;

    /// The plans of a stack.
    ///
    /// A list of comparisons is walked once for all numbers. For a filter and an architecture at most 4096 intervals of
    /// numbers are distinguished, in at most 2^20 steps; the plan of the remaining numbers is the whole filter.
    pub fn new(stack: &Stack) -> Table {
        let programs = stack.programs();
        let ops = |program: &Program| program.ops().collect();
        let filters: Vec<Filter> = programs
            .iter()
            .enumerate()
            .map(|(index, program)| Filter::new(index, ops(program)))
            .collect();
        let mut builder = Builder::default();
        let whole: Vec<Outcome> = (0..programs.len()).map(Residual::start).collect();
        let whole = builder.plan(&whole);
        let mut arches = tested_arches(programs)
            .into_iter()
            .map(|audit| builder.arch(audit, &filters));
        let none = || ArchTable::new(0, vec![(u32::MAX, whole)]);
        let first = arches.next().unwrap_or_else(none);
        let others = arches.collect();
        Table {
            first_key: key(first.audit, 0),
            first,
            others,
            whole,
            parts: builder.parts,
            residuals: builder.residuals,
        }
    }

    /// The plan for calls of this architecture with this number.
    #[inline]
    pub fn plan(&self, audit: u32, nr: u32) -> Plan {
        // Most calls are of the first architecture, with a number in its array. One comparison tests both: then this is
        // the number, and otherwise it is larger than any in the array.
        let index = key(audit, nr) ^ self.first_key;
        match usize::try_from(index) {
            Ok(index) if index < self.first.dense.len() => self.first.dense[index],
            _ => self.plan_of_another(audit, nr),
        }
    }

    /// The plan where the architecture isn't the first, or the number isn't in its array.
    #[cold]
    fn plan_of_another(&self, audit: u32, nr: u32) -> Plan {
        let arch = self.arches().find(|arch| arch.audit == audit);
        arch.map_or(self.whole, |arch| arch.plan(nr))
    }

    fn arches(&self) -> impl Iterator<Item = &ArchTable> {
        iter::once(&self.first).chain(&self.others)
    }

    /// The parts of a plan, those of the newest filters first.
    pub fn parts(&self, index: u32) -> &[Part] {
        &self.parts[index as usize]
    }

    /// Where filters go on, each once.
    pub fn residuals(&self) -> &[Residual] {
        &self.residuals
    }

    /// The stack's answer for a call, given the values of its residuals.
    #[inline]
    pub fn answer(&self, audit: u32, nr: u32, run: impl FnMut(u32) -> u32) -> u32 {
        self.carry_out(self.plan(audit, nr), run)
    }

    /// The stack's answer by one of its plans, given the values of its residuals.
    #[inline]
    pub fn carry_out(&self, plan: Plan, mut run: impl FnMut(u32) -> u32) -> u32 {
        match plan {
            Plan::Answer(ret) => ret,
            Plan::Residual(residual) => stricter(NO_FILTER, run(residual)),
            Plan::Parts(index) => self.combine(index, &mut run),
        }
    }

    /// The strictest of a plan's parts; of equal actions the newest filter's.
    fn combine(&self, index: u32, run: &mut impl FnMut(u32) -> u32) -> u32 {
        let mut kept = NO_FILTER;
        for part in self.parts(index) {
            let ret = match *part {
                Part::Answer(ret) => ret,
                Part::Residual(residual) => run(residual),
            };
            kept = stricter(kept, ret);
        }
        kept
    }

    /// The memory that it takes.
    pub fn size_bytes(&self) -> usize {
        let intervals = self.arches().map(|arch| size_of_val(&*arch.intervals));
        let parts = self.parts.iter().map(|parts| size_of_val(&**parts));
        let dense = self.arches().count() * 2 * size_of::<[Plan; Table::DENSE as usize]>();
        dense + intervals.sum::<usize>() + parts.sum::<usize>() + size_of_val(&*self.residuals)
    }
}

impl ArchTable {
    /// `intervals` end with the last number.
    fn new(audit: u32, intervals: Vec<(u32, Plan)>) -> ArchTable {
        let row = |first| {
            let mut row = Box::new([Plan::Answer(0); Table::DENSE as usize]);
            for (plan, nr) in row.iter_mut().zip(first..) {
                *plan = sparse(&intervals, nr);
            }
            row
        };
        ArchTable {
            audit,
            dense: row(0),
            dense_x32: row(Arch::X32_BIT),
            behind: intervals[interval_of(&intervals, Table::DENSE)],
            intervals,
        }
    }

    fn plan(&self, nr: u32) -> Plan {
        let plan = self.dense.get(nr as usize);
        plan.map_or_else(|| self.beyond(nr), |plan| *plan)
    }

    /// The plan of a number that isn't one of the first.
    fn beyond(&self, nr: u32) -> Plan {
        let (last, plan) = self.behind;
        if (Table::DENSE..=last).contains(&nr) {
            return plan;
        }
        let of_x32 = self.dense_x32.get((nr ^ Arch::X32_BIT) as usize);
        of_x32.map_or_else(|| sparse(&self.intervals, nr), |plan| *plan)
    }
}

/// Both words of a call that plans depend on, the number in the lower half, as they stand in the memory of a call's image.
#[inline]
fn key(audit: u32, nr: u32) -> u64 {
    u64::from(audit) << 32 | u64::from(nr)
}

/// The plan of any number, by the last number of each interval.
fn sparse(intervals: &[(u32, Plan)], nr: u32) -> Plan {
    intervals[interval_of(intervals, nr)].1
}

/// The index of the interval with a number.
fn interval_of(intervals: &[(u32, Plan)], nr: u32) -> usize {
    intervals.partition_point(|(last, _)| *last < nr)
}

impl Residual {
    /// The whole filter.
    fn start(filter: usize) -> Outcome {
        Outcome::Resume(Residual {
            filter,
            pc: Pc(0),
            state: State::default(),
        })
    }
}

/// The architectures with numbers that some program compares with a constant, in the order of these comparisons:
/// filters test the most frequent one first.
fn tested_arches(programs: &[Program]) -> Vec<u32> {
    let mut audits: Vec<u32> = Vec::new();
    for op in programs.iter().flat_map(Program::ops) {
        let Op::Branch {
            operand: Operand::K(k),
            ..
        } = op
        else {
            continue;
        };
        let is_audit = Arch::all().any(|arch| arch.audit() == k);
        if is_audit && !audits.contains(&k) && audits.len() < Table::MAX_ARCHES {
            audits.push(k);
        }
    }
    audits
}

/// A table in the making.
#[derive(Default)]
struct Builder {
    parts: Vec<Vec<Part>>,
    part_ids: WordHashMap<Vec<Part>, u32>,
    residuals: Vec<Residual>,
    residual_ids: WordHashMap<Residual, u32>,
}

impl Builder {
    fn arch(&mut self, audit: u32, filters: &[Filter]) -> ArchTable {
        let outcomes: Vec<BTreeMap<u32, Outcome>> = filters
            .iter()
            .map(|filter| filter.outcomes(audit))
            .collect();
        let mut lasts: Vec<u32> = outcomes
            .iter()
            .flat_map(|one| one.keys().copied())
            .collect();
        lasts.sort_unstable();
        lasts.dedup();
        let mut intervals: Vec<(u32, Plan)> = Vec::with_capacity(lasts.len());
        for last in lasts {
            let of_filters: Vec<Outcome> = outcomes
                .iter()
                .enumerate()
                .map(|(filter, one)| {
                    let found = one.range(last..).next();
                    found.map_or(Residual::start(filter), |(_, outcome)| *outcome)
                })
                .collect();
            let plan = self.plan(&of_filters);
            match intervals.last_mut() {
                Some((end, same)) if *same == plan => *end = last,
                _ => intervals.push((last, plan)),
            }
        }
        ArchTable::new(audit, intervals)
    }

    /// The plan for the outcomes of all filters, from the oldest to the newest.
    fn plan(&mut self, outcomes: &[Outcome]) -> Plan {
        let mut parts: Vec<Part> = Vec::new();
        for outcome in outcomes.iter().rev() {
            match (*outcome, parts.last_mut()) {
                (Outcome::Answer(older), Some(Part::Answer(newer))) => {
                    *newer = stricter(*newer, older);
                }
                (Outcome::Answer(ret), _) => parts.push(Part::Answer(ret)),
                (Outcome::Resume(residual), _) => {
                    let id = self.residual(residual);
                    parts.push(Part::Residual(id));
                }
            }
        }
        match *parts {
            [] => Plan::Answer(NO_FILTER),
            [Part::Answer(ret)] => Plan::Answer(stricter(NO_FILTER, ret)),
            [Part::Residual(residual)] => Plan::Residual(residual),
            _ => {
                let next = self.parts.len() as u32;
                let id = *self.part_ids.entry(parts.clone()).or_insert(next);
                if id == next {
                    self.parts.push(parts);
                }
                Plan::Parts(id)
            }
        }
    }

    fn residual(&mut self, residual: Residual) -> u32 {
        let next = self.residuals.len() as u32;
        let id = *self.residual_ids.entry(residual).or_insert(next);
        if id == next {
            self.residuals.push(residual);
        }
        id
    }
}
