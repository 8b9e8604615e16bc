//! Expected costs of a program: executed instructions, mispredictions and time, over calls with given
//! frequencies.
//!
//! The reference interpreter runs the calls, so the figures are valid for any program. A branch is predicted
//! to take its more frequent side; the other side is a misprediction, as for a predictor without memory of
//! earlier calls. Real predictors learn patterns of calls and do better.

use tamis_abi::{Arch, SeccompData};
use tamis_bpf::cache::is_cacheable;
use tamis_bpf::convert::{PROLOGUE_INSNS, op_executed_insns};
use tamis_bpf::{Op, Program, interp};
use tamis_profile::{Call, Profile};

use crate::cost::{MISPREDICTION_NS, STEP_NS, UNCACHED_NS};
use crate::samples::by_values;

/// A call, and how often it happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Whose number it is; the byte order of its words.
    pub arch: Arch,
    /// The call.
    pub data: SeccompData,
    /// How often it happens, in any unit.
    pub weight: f64,
}

/// What one call costs on average. All zero if there are no calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// The part of the calls that run the program: 0 to 1.
    pub run: f64,
    /// Executed instructions of the program; none where the bitmap answers.
    pub steps: f64,
    /// Executed instructions of what the kernel makes of it.
    pub kernel_insns: f64,
    /// Mispredicted branches.
    pub mispredictions: f64,
    /// Nanoseconds beyond an answer from the bitmap, by the prices of [`cost`](crate::cost).
    pub ns: f64,
}

impl Sample {
    /// Whether the call runs the program: the bitmap does not answer it.
    pub(crate) fn runs(&self, program: &Program, has_bitmap: bool) -> bool {
        let has_bit = has_bitmap && self.arch != Arch::X32;
        !(has_bit && is_cacheable(program, self.data.arch, self.data.nr))
    }
}

impl Expected {
    /// What a program costs for these calls. `has_bitmap` says whether the kernel answers always allowed
    /// numbers without running it (5.11); x32 calls it never does. Linear in executed instructions.
    pub fn of(program: &Program, samples: &[Sample], has_bitmap: bool) -> Expected {
        let mut sum = Expected::default();
        let mut answers = vec![[0.0; 2]; program.len()];
        let mut whole = 0.0;
        for sample in samples {
            whole += sample.weight;
            if sample.runs(program, has_bitmap) {
                sum.run += sample.weight;
                sum.add(program, sample, &mut answers);
            }
        }
        if whole <= 0.0 {
            return Expected::default();
        }
        let missed: f64 = answers.iter().map(|[no, yes]| f64::min(*no, *yes)).sum();
        let kernel_insns = sum.kernel_insns / whole;
        let mispredictions = missed / whole;
        let run = sum.run / whole;
        Expected {
            run,
            steps: sum.steps / whole,
            kernel_insns,
            mispredictions,
            ns: run * UNCACHED_NS + kernel_insns * STEP_NS + mispredictions * MISPREDICTION_NS,
        }
    }

    /// Runs one call, and counts how its branches went.
    fn add(&mut self, program: &Program, sample: &Sample, answers: &mut [[f64; 2]]) {
        let mut path = Vec::new();
        let run = interp::run_traced(program, &sample.data, &mut |pc| path.push(pc));
        self.steps += sample.weight * f64::from(run.steps);
        let mut kernel_insns = PROLOGUE_INSNS;
        for (at, pc) in path.iter().enumerate() {
            let op = program.op(*pc);
            let mut is_taken = false;
            if let Op::Branch { jt, jf, .. } = op
                && let Some(next) = path.get(at + 1)
                && jt != jf
            {
                is_taken = next.0 == pc.0 + 1 + usize::from(jt);
                answers[pc.0][usize::from(is_taken)] += sample.weight;
            }
            kernel_insns += op_executed_insns(op, is_taken);
        }
        self.kernel_insns += sample.weight * kernel_insns as f64;
    }
}

/// The calls of a profile: those whose whole argument lists are known with these, what is left of a
/// call's count with the values of single arguments that were seen, and with all others 0.
pub fn samples(profile: &Profile) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (arch, nr, call) in profile.calls() {
        let lists = argument_lists(call).into_iter();
        samples.extend(lists.map(|(args, weight)| Sample {
            arch,
            data: SeccompData {
                nr: nr.0,
                arch: arch.audit(),
                args,
                ..SeccompData::default()
            },
            weight,
        }));
    }
    samples
}

/// What a call is made with, and how often each; together as often as the call.
pub(crate) fn argument_lists(call: &Call) -> Vec<([u64; 6], f64)> {
    let mut lists = Vec::new();
    let mut left = call.count;
    for (args, count) in &call.samples {
        left = left.saturating_sub(*count);
        lists.push((*args, *count as f64));
    }
    if left == 0 {
        return lists;
    }
    if call.values.is_empty() {
        lists.push(([0; 6], left as f64));
        return lists;
    }
    let by_values = by_values(&[], call, left);
    let each = left as f64 / by_values.len().max(1) as f64;
    lists.extend(by_values.into_iter().map(|(data, _)| (data.args, each)));
    lists
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Objective, Options};
    use tamis_abi::{KernelVersion, Nr};
    use tamis_diag::Sources;
    use tamis_rules::text;

    /// Every other number has an answer of its own; few of them are made often.
    fn compiled(objective: Objective) -> (Program, Vec<Sample>) {
        let mut rules =
            "ruleset bad-arch kill_process\nsection x86_64 default kill_process\n".to_owned();
        let mut profile = Profile::default();
        for nr in (0..48).step_by(2) {
            rules += &format!("  {nr}: errno({})\n", nr + 1);
            profile.call_mut(Arch::X86_64, Nr(nr)).count = if nr % 16 == 0 { 1000 } else { 1 };
        }
        let mut sources = Sources::new();
        let source = sources.add("a.rules", rules);
        let ruleset = text::parse(&sources, source).unwrap();
        let samples = samples(&profile);
        let options = Options {
            profile: Some(profile),
            objective,
            ..Options::default()
        };
        let compiled = crate::compile(&ruleset, &options).unwrap();
        (compiled.program().unwrap().clone(), samples)
    }

    #[test]
    fn each_objective_is_best_at_what_it_asks_for() {
        let measure = |objective| {
            let (program, samples) = compiled(objective);
            (program.len(), Expected::of(&program, &samples, true))
        };
        let [steps, ns, length] = [Objective::Steps, Objective::Ns, Objective::Length].map(measure);
        assert!(steps.1.steps <= ns.1.steps && steps.1.steps <= length.1.steps);
        assert!(
            ns.1.ns < steps.1.ns && ns.1.ns < length.1.ns,
            "{ns:?} {steps:?}"
        );
        assert!(length.0 <= steps.0 && length.0 <= ns.0);
    }

    #[test]
    fn calls_that_a_bitmap_answers_cost_nothing_where_there_is_one() {
        let text =
            "ruleset bad-arch kill_process\nsection x86_64 default errno(1)\n  0..3: allow\n";
        let mut sources = Sources::new();
        let source = sources.add("a.rules", text);
        let ruleset = text::parse(&sources, source).unwrap();
        let mut profile = Profile::default();
        profile.call_mut(Arch::X86_64, Nr(0)).count = 1;
        let options = Options {
            profile: Some(profile.clone()),
            kernel: Some(KernelVersion::new(5, 4)),
            ..Options::default()
        };
        let compiled = crate::compile(&ruleset, &options).unwrap();
        let of =
            |has_bitmap| Expected::of(compiled.program().unwrap(), &samples(&profile), has_bitmap);
        assert_eq!(of(true), Expected::default());
        assert!(of(false).run == 1.0 && of(false).mispredictions == 0.0);
        assert!(of(false).ns > UNCACHED_NS);
    }
}
