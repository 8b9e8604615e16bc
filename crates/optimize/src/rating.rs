//! Ratings: the cost of programs for the calls of an input, so that equivalent programs can be compared.

use tamis_bpf::{Program, Stack};
use tamis_compiler::meter::price::{
    FURTHER_FILTER_NS, MISPREDICTION_NS, STEP_NS, UNCACHED_NS, USER_MISPREDICTION_NS, USER_STEP_NS,
};
use tamis_compiler::meter::{Cost, measure};

use super::calls::Calls;
use super::rejected::RejectionReason;
use tamis_compiler::{Objective, Target};

/// The factor that limits the length of a result with fewer executed instructions, relative to the input: memory and
/// installation time count too. Results of up to a hundred instructions are never too long.
const MAX_GROWTH: usize = 2;
const SHORT_INSNS: usize = 100;

/// The cost of programs for the calls of an input.
#[derive(Clone, Debug, PartialEq)]
pub struct Rating {
    /// Whether the kernel accepts them all.
    pub is_installable: bool,
    /// The cost for the calls with their frequencies.
    pub cost: Cost,
    /// The executed instructions of the calls with their weights.
    steps: u128,
    /// The time for the same calls, in picoseconds.
    time_ps: u128,
}

impl Rating {
    /// The cost of programs for these calls.
    pub(super) fn from_programs(programs: &[Program], calls: &Calls) -> Rating {
        let cost = measure(programs, &calls.made, calls.has_bitmap);
        let mut entering = 0.0;
        let counted = calls.counted.weighed(|sample| {
            if calls.has_bitmap && sample.is_cached(programs) {
                return sample.weight * calls.cached_part;
            }
            entering += sample.weight;
            sample.weight
        });
        let all = measure(programs, &counted, false);
        let further = cost.filters.saturating_sub(1) as f64;
        let time_ns = match calls.target {
            Target::Kernel => {
                entering * (UNCACHED_NS + further * FURTHER_FILTER_NS)
                    + all.uncached.kernel_steps * STEP_NS
                    + all.mispredictions * MISPREDICTION_NS
            }
            Target::User => {
                all.uncached.steps * USER_STEP_NS + all.mispredictions * USER_MISPREDICTION_NS
            }
        };
        Rating {
            is_installable: Stack::new(programs.to_vec()).is_ok_and(|stack| stack.is_installable()),
            cost,
            steps: all.uncached.steps as u128,
            time_ps: (time_ns * 1000.0) as u128,
        }
    }

    /// The compared figures, the most important first; smaller is better. Programs that the kernel accepts always
    /// come before others.
    pub(super) fn key(&self, objective: Objective) -> (bool, u128, u128, u128) {
        let length = self.cost.length_insns as u128;
        let (first, second, third) = match objective {
            Objective::Steps => (self.steps, length, self.time_ps),
            Objective::Ns => (self.time_ps, length, self.steps),
            Objective::Length => (length, self.steps, self.time_ps),
        };
        (!self.is_installable, first, second, third)
    }

    /// The reason why the programs are not worth replacing the input; `None` if they are.
    pub(super) fn flaw(&self, input: &Rating, objective: Objective) -> Option<RejectionReason> {
        let length_insns = self.cost.length_insns;
        let longest = (input.cost.length_insns * MAX_GROWTH).max(SHORT_INSNS);
        if input.is_installable && length_insns > longest {
            return Some(RejectionReason::TooLong { length_insns });
        }
        let is_better = self.key(objective) < input.key(objective);
        (!is_better).then(|| RejectionReason::NotBetter(Box::new(self.clone())))
    }
}
