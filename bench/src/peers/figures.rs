//! What a program costs in counts: exact, and the same on every machine.

use serde::Serialize;
use tamis_abi::{Arch, syscall};
use tamis_bpf::{Program, Stack};

use crate::goals::{Cached, Sample};

/// The counts of one program, or of all programs of a stack together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Instructions.
    pub length_insns: usize,
    /// Executed instructions of the calls that the policy allows, each number alike.
    pub mean_steps: f64,
    /// The most of them.
    pub max_steps: u32,
    /// The mean with the weights of the case.
    pub weighted_steps: f64,
    /// The same where calls that the kernel's bitmap answers count 0.
    pub bitmap_steps: f64,
    /// The same without those calls; 0 if there are no others.
    pub uncached_steps: f64,
    /// For how many numbers of the table for x86_64 the bitmap answers.
    pub cached_calls: usize,
}

impl Figures {
    /// The counts for calls that the policy allows and for calls with weights.
    pub fn of(stack: &Stack, allowed: &[Sample], weighted: &[Sample]) -> Figures {
        let audit = Arch::X86_64.audit();
        let is_cached = |nr: u32| stack.is_cacheable(audit, nr);
        let length = stack.programs().iter().map(Program::len).sum();
        Figures {
            length_insns: length,
            mean_steps: mean_steps(allowed, Cached::Runs, stack),
            max_steps: max_steps(allowed, Cached::Runs, stack),
            weighted_steps: mean_steps(weighted, Cached::Runs, stack),
            bitmap_steps: mean_steps(weighted, Cached::IsFree, stack),
            uncached_steps: mean_steps(weighted, Cached::IsLeftOut, stack),
            cached_calls: syscall::all(Arch::X86_64)
                .filter(|(nr, _)| is_cached(nr.0))
                .count(),
        }
    }
}

fn steps(stack: &Stack, sample: &Sample) -> u32 {
    stack.run(&sample.data).steps
}

/// Whether the stack runs for a call.
fn is_run(sample: &Sample, cached: Cached, stack: &Stack) -> bool {
    cached == Cached::Runs || !stack.is_cacheable(sample.data.arch, sample.data.nr)
}

/// The most steps of a call for which the stack runs; 0 without calls.
pub fn max_steps(samples: &[Sample], cached: Cached, stack: &Stack) -> u32 {
    let run = samples
        .iter()
        .filter(|sample| sample.weight > 0.0 && is_run(sample, cached, stack));
    run.map(|sample| steps(stack, sample)).max().unwrap_or(0)
}

/// The weighted mean of a stack's steps; 0 without calls.
pub fn mean_steps(samples: &[Sample], cached: Cached, stack: &Stack) -> f64 {
    let (mut total, mut weight) = (0.0, 0.0);
    for sample in samples {
        let is_run = is_run(sample, cached, stack);
        if is_run {
            total += sample.weight * f64::from(steps(stack, sample));
        }
        if is_run || cached == Cached::IsFree {
            weight += sample.weight;
        }
    }
    if weight > 0.0 { total / weight } else { 0.0 }
}
