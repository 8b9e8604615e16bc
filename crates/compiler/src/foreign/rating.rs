//! Ratings: what programs cost for a list of calls, so that two ways to do the same can be compared.
//!
//! All programs of a stack run for every call unless the kernel answers from its bitmap, for which
//! every one of them has to be cacheable. Costs are whole numbers, so that a rating is the same on
//! every machine.

use std::collections::BTreeMap;

use tamis_abi::{Arch, Endian};
use tamis_bpf::cache::is_cacheable;
use tamis_bpf::convert::kernel_len_insns;
use tamis_bpf::{Op, Pc, Program, Stack, interp};

use super::calls::Sample;
use crate::cost;
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
    steps: u128,
    count: u128,
    uncached_steps: u128,
    uncached_count: u128,
    max_steps: u32,
    steps_cost: u128,
    time_cost: u128,
}

/// How much weight took each side of a program's branches: not taken, taken.
type Branches = BTreeMap<(usize, usize), [u128; 2]>;

impl Rating {
    pub(super) fn of(programs: &[Program], samples: &[Sample], endian: Endian) -> Rating {
        let mut cached: BTreeMap<(Arch, u32), bool> = BTreeMap::new();
        let mut sums = Sums::default();
        let mut branches = Branches::new();
        let further = programs.len().saturating_sub(1) as u128;
        for sample in samples {
            let data = &sample.data;
            let is_cached = *cached.entry((sample.arch, data.nr)).or_insert_with(|| {
                let all = |program| is_cacheable(program, data.arch, data.nr);
                sample.arch != Arch::X32 && programs.iter().all(all)
            });
            let weight = match is_cached {
                true => u128::from(sample.cached_weight),
                false => u128::from(sample.run_weight),
            };
            let image = data.image(endian);
            let steps = run_all(programs, &image, weight, &mut branches);
            let count = u128::from(sample.count);
            sums.steps += count * u128::from(steps);
            sums.count += count;
            if !is_cached {
                sums.uncached_steps += count * u128::from(steps);
                sums.uncached_count += count;
            }
            sums.max_steps = sums.max_steps.max(steps);
            sums.steps_cost += weight * u128::from(steps);
            let leaving = if is_cached { 0 } else { UNCACHED_PS };
            sums.time_cost +=
                weight * (u128::from(steps) * STEP_PS + leaving + further * FURTHER_FILTER_PS);
        }
        // A branch goes wrong as often as its rarer side is taken.
        let mispredicted: u128 = branches.values().map(|[no, yes]| no.min(yes)).sum();
        let mean = |steps: u128, count: u128| steps as f64 / (count as f64).max(1.0);
        Rating {
            filters: programs.len(),
            is_installable: Stack::new(programs.to_vec()).is_installable(),
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

    /// Whether it is worth having instead of the input.
    pub(super) fn improves_on(&self, input: &Rating, objective: Objective) -> bool {
        let longest = (input.length_insns * MAX_GROWTH).max(SHORT_INSNS);
        let is_bloated = input.is_installable && self.length_insns > longest;
        !is_bloated && self.key(objective) < input.key(objective)
    }
}

/// Runs all programs on one input; the steps of all together.
fn run_all(programs: &[Program], image: &[u32; 16], weight: u128, branches: &mut Branches) -> u32 {
    let mut steps = 0;
    for (index, program) in programs.iter().enumerate() {
        let mut open: Option<(usize, usize)> = None;
        let run = interp::run_traced(program, image, &mut |Pc(pc)| {
            if let Some((at, taken)) = open.take() {
                let sides = branches.entry((index, at)).or_default();
                sides[usize::from(pc == taken)] += weight;
            }
            if let Op::Branch { jt, .. } = program.op(Pc(pc)) {
                open = Some((pc, pc + 1 + usize::from(jt)));
            }
        });
        steps += run.steps;
    }
    steps
}
