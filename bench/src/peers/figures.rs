//! The cost of a program in counts: exact, and the same on every machine.

use serde::Serialize;
use tamis_abi::Arch;
use tamis_bpf::Stack;
use tamis_compiler::meter::{Workload, measure};

/// The counts of one program, or of all programs of a stack together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Instructions.
    pub length_insns: usize,
    /// The mean steps of the calls that the policy allows, with equal weights of numbers.
    pub mean_steps: f64,
    /// The most steps of these calls.
    pub max_steps: u32,
    /// The mean with the weights of the case.
    pub weighted_steps: f64,
    /// The same, with 0 for calls that the kernel's bitmap answers.
    pub bitmap_steps: f64,
    /// The same without those calls; 0 if there are no others.
    pub uncached_steps: f64,
    /// The count of numbers in the x86_64 table that the bitmap answers.
    pub cached_calls: usize,
}

impl Figures {
    /// The counts for calls that the policy allows and for calls with weights.
    pub fn from_stack(stack: &Stack, allowed: &Workload, weighted: &Workload) -> Figures {
        let measure = |calls, has_bitmap| measure(stack.programs(), calls, has_bitmap);
        let (each, all) = (measure(allowed, false).all(), measure(weighted, true));
        let known = Workload::every_call(&[Arch::X86_64]);
        Figures {
            length_insns: all.length_insns,
            mean_steps: each.mean_steps(),
            max_steps: each.max_steps,
            weighted_steps: all.all().mean_steps(),
            bitmap_steps: all.mean_executed_steps(),
            uncached_steps: all.uncached.mean_steps(),
            cached_calls: measure(&known, true).cached_numbers,
        }
    }
}
