//! Ratings: what programs cost for a list of calls, so that two ways to do the same can be compared.
//!
//! All programs of a stack run for every call unless the kernel answers from its bitmap, for which
//! every one of them has to be cacheable. Costs are whole numbers, so that a rating is the same on
//! every machine.

use std::collections::BTreeMap;

use tamis_abi::{Arch, SeccompData};
use tamis_bpf::cache::is_cacheable;
use tamis_bpf::convert::{PROLOGUE_INSNS, kernel_len_insns, op_executed_insns};
use tamis_bpf::{Op, Pc, Program, Stack, interp};

use super::calls::Weighed;
use super::rejected::Why;
use crate::cost;
use crate::expected::Sample;
use crate::options::Objective;

const STEP_PS: u128 = picoseconds(cost::STEP_NS);
const MISPREDICTION_PS: u128 = picoseconds(cost::MISPREDICTION_NS);
const UNCACHED_PS: u128 = picoseconds(cost::UNCACHED_NS);
/// What every further filter takes that a call has to pass.
const FURTHER_FILTER_PS: u128 = 20_000;

/// How much longer than the input a result may be that executes fewer instructions: memory and the time
/// of installing count, too. A result of a hundred instructions is never too long.
const MAX_GROWTH: usize = 2;
const SHORT_INSNS: usize = 100;

const fn picoseconds(ns: f64) -> u128 {
    (ns * 1000.0) as u128
}

/// What programs cost for a list of calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Rating {
    /// How many programs there are.
    pub filters: usize,
    /// Whether the kernel takes them all.
    pub is_installable: bool,
    /// Their instructions.
    pub length_insns: usize,
    /// What the kernel makes of them.
    pub kernel_insns: usize,
    /// How many of the numbers called the kernel answers without running a program, and how many numbers
    /// are called.
    pub cached_numbers: (usize, usize),
    /// Executed instructions per call, as often as it is made, on average.
    pub mean_steps: f64,
    /// The same for calls that the kernel's bitmap does not answer; 0 if there are none.
    pub uncached_mean_steps: f64,
    /// The most instructions that a call executes.
    pub max_steps: u32,
    steps_cost: u128,
    time_cost: u128,
}

/// Sums over calls.
#[derive(Default)]
struct Sums {
    steps: f64,
    count: f64,
    uncached_steps: f64,
    uncached_count: f64,
    max_steps: u32,
    steps_cost: u128,
    time_cost: u128,
}

/// How much weight took each side of a program's branches: not taken, taken.
type Branches = BTreeMap<(usize, usize), [u128; 2]>;

impl Rating {
    /// What programs cost for these calls. `has_bitmap` says whether the kernel answers always allowed
    /// numbers without running them.
    pub(super) fn of(programs: &[Program], calls: &[Weighed], has_bitmap: bool) -> Rating {
        let mut cached: BTreeMap<(Arch, u32), bool> = BTreeMap::new();
        let mut sums = Sums::default();
        let mut branches = Branches::new();
        let further = programs.len().saturating_sub(1) as u128;
        for call in calls {
            let Sample { arch, data, weight } = &call.sample;
            let is_cached = *cached.entry((*arch, data.nr)).or_insert_with(|| {
                let all = |program| is_cacheable(program, data.arch, data.nr);
                has_bitmap && *arch != Arch::X32 && programs.iter().all(all)
            });
            let (cost, leaving) = match is_cached {
                true => (call.cached_weight, 0),
                false => (call.run_weight, UNCACHED_PS + further * FURTHER_FILTER_PS),
            };
            let cost = u128::from(cost);
            let ran = run_all(programs, data, cost, &mut branches);
            let steps = ran.steps;
            sums.steps += weight * f64::from(steps);
            sums.count += weight;
            if !is_cached {
                sums.uncached_steps += weight * f64::from(steps);
                sums.uncached_count += weight;
            }
            sums.max_steps = sums.max_steps.max(steps);
            sums.steps_cost += cost * u128::from(steps);
            sums.time_cost += cost * (ran.kernel_insns as u128 * STEP_PS + leaving);
        }
        // A branch goes wrong as often as its rarer side is taken.
        let mispredicted: u128 = branches.values().map(|[no, yes]| no.min(yes)).sum();
        let mean = |steps: f64, count: f64| if count > 0.0 { steps / count } else { 0.0 };
        Rating {
            filters: programs.len(),
            is_installable: Stack::new(programs.to_vec()).is_ok_and(|stack| stack.is_installable()),
            length_insns: programs.iter().map(Program::len).sum(),
            kernel_insns: programs.iter().map(kernel_len_insns).sum(),
            cached_numbers: (cached.values().filter(|is| **is).count(), cached.len()),
            mean_steps: mean(sums.steps, sums.count),
            uncached_mean_steps: mean(sums.uncached_steps, sums.uncached_count),
            max_steps: sums.max_steps,
            steps_cost: sums.steps_cost,
            time_cost: sums.time_cost + mispredicted * MISPREDICTION_PS,
        }
    }

    /// What is compared, the most important first; smaller is better. What the kernel takes comes before
    /// everything.
    pub(super) fn key(&self, objective: Objective) -> (bool, u128, u128, u128) {
        let length = self.length_insns as u128;
        let (first, second, third) = match objective {
            Objective::Steps => (self.steps_cost, length, self.time_cost),
            Objective::Ns => (self.time_cost, length, self.steps_cost),
            Objective::Length => (length, self.steps_cost, self.time_cost),
        };
        (!self.is_installable, first, second, third)
    }

    /// Why it is not worth having instead of the input; `None` if it is.
    pub(super) fn flaw(&self, input: &Rating, objective: Objective) -> Option<Why> {
        let longest = (input.length_insns * MAX_GROWTH).max(SHORT_INSNS);
        if input.is_installable && self.length_insns > longest {
            let length_insns = self.length_insns;
            return Some(Why::TooLong { length_insns });
        }
        let is_better = self.key(objective) < input.key(objective);
        (!is_better).then(|| Why::NotBetter(Box::new(self.clone())))
    }
}

/// What ran for one input.
#[derive(Default)]
struct Ran {
    steps: u32,
    /// What the kernel made of them.
    kernel_insns: usize,
}

/// Runs all programs on one call; what of all together ran.
fn run_all(programs: &[Program], call: &SeccompData, weight: u128, branches: &mut Branches) -> Ran {
    let mut ran = Ran::default();
    for (index, program) in programs.iter().enumerate() {
        ran.kernel_insns += PROLOGUE_INSNS;
        let mut open: Option<(usize, usize)> = None;
        let run = interp::run_traced(program, call, &mut |Pc(pc)| {
            if let Some((at, taken)) = open.take() {
                let sides = branches.entry((index, at)).or_default();
                sides[usize::from(pc == taken)] += weight;
                ran.kernel_insns += op_executed_insns(program.op(Pc(at)), pc == taken);
            }
            match program.op(Pc(pc)) {
                Op::Branch { jt, .. } => open = Some((pc, pc + 1 + usize::from(jt))),
                op => ran.kernel_insns += op_executed_insns(op, false),
            }
        });
        ran.steps += run.steps;
    }
    ran
}
