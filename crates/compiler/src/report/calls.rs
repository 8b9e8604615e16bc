//! What each call costs: how many instructions it executes, and its part of the program.
//!
//! A profile says how often each call is made and with which arguments; without one every call of the tables is
//! made once, with all arguments 0. A call's part of the program is the instructions that it may come through,
//! each divided equally among all calls of which that is so: the parts of all calls, and what no call comes
//! through, add up to the length. So the part says what the program would gain, about, if the policy did not treat the call
//! in a way of its own.
//!
//! `Counted` is the calls alone, so that one list of them measures many programs: what there is after each run of
//! a pass.

use tamis_abi::{Arch, Nr, SeccompData, syscall};
use tamis_bpf::convert::kernel_len_insns;
use tamis_bpf::{Program, interp};

use super::ownership::parts;
use crate::expected::{self, Expected, Sample};
use crate::options::Options;

/// What one call costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallCost {
    /// Whose number it is.
    pub arch: Arch,
    /// The number.
    pub nr: Nr,
    /// How often it is made, of all calls: 0 to 1.
    pub share: f64,
    /// Whether the kernel allows it without running the program.
    pub is_cached: bool,
    /// Executed instructions on average, if the program runs.
    pub mean_steps: f64,
    /// Executed instructions at most, if the program runs.
    pub max_steps: u32,
    /// Executed instructions of what the kernel makes of the program, on average, if it runs.
    pub kernel_steps: f64,
    /// Its part of the program's length.
    pub part_insns: f64,
}

/// What the calls cost together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Together {
    /// Executed instructions on average, where the program runs for every call.
    pub mean_steps: f64,
    /// The same for calls for which the kernel runs it; 0 if there are none.
    pub uncached_mean_steps: f64,
    /// Executed instructions after the kernel's conversion, on average.
    pub kernel_steps: f64,
    /// Executed instructions at most.
    pub max_steps: u32,
    /// How often the kernel need not run it, of all calls: 0 to 1.
    pub cached_share: f64,
}

/// What a program costs for all calls that count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramCost {
    /// How many instructions the kernel makes of it.
    pub kernel_insns: usize,
    /// How many of the numbers called the kernel allows without running it.
    pub cached_numbers: usize,
    /// How many numbers are called.
    pub numbers: usize,
    /// What the calls cost.
    pub calls: Together,
}

/// The calls that count.
#[derive(Debug)]
pub(crate) struct Counted {
    samples: Vec<Sample>,
    has_bitmap: bool,
}

impl Counted {
    /// Those of a profile; without one, all of the tables of these architectures.
    pub(crate) fn of(archs: &[Arch], options: &Options) -> Counted {
        let mut samples = match &options.profile {
            Some(profile) => expected::samples(profile),
            None => archs.iter().flat_map(|arch| once_each(*arch)).collect(),
        };
        samples.retain(|sample| sample.weight > 0.0 && archs.contains(&sample.arch));
        Counted {
            samples,
            has_bitmap: options.has_bitmap(),
        }
    }

    /// What a program costs for them together.
    pub(crate) fn cost(&self, program: &Program) -> ProgramCost {
        let costs = self.costs(program);
        ProgramCost {
            kernel_insns: kernel_len_insns(program),
            cached_numbers: costs.iter().filter(|cost| cost.is_cached).count(),
            numbers: costs.len(),
            calls: together(&costs),
        }
    }

    /// What each number costs, its part of the program left out.
    fn costs(&self, program: &Program) -> Vec<CallCost> {
        let whole: f64 = self.samples.iter().map(|sample| sample.weight).sum();
        let same_number = |a: &Sample, b: &Sample| (a.arch, a.data.nr) == (b.arch, b.data.nr);
        let numbers = self.samples.chunk_by(same_number);
        let costs = numbers.map(|own| cost_of(program, own, whole, self.has_bitmap));
        costs.collect()
    }
}

/// What the calls of these architectures cost, by architecture and number. Calls that the profile doesn't
/// count are left out.
pub fn calls(program: &Program, archs: &[Arch], options: &Options) -> Vec<CallCost> {
    let mut costs = Counted::of(archs, options).costs(program);
    let known = costs.iter().map(|cost| (cost.arch, cost.nr));
    let parts = parts(program, &known.collect::<Vec<_>>());
    for (cost, part_insns) in costs.iter_mut().zip(parts) {
        cost.part_insns = part_insns;
    }
    costs
}

/// What all of them cost together.
pub fn together(calls: &[CallCost]) -> Together {
    let mut sum = Together::default();
    let (mut uncached_steps, mut uncached) = (0.0, 0.0);
    for call in calls {
        sum.mean_steps += call.share * call.mean_steps;
        sum.kernel_steps += call.share * call.kernel_steps;
        sum.max_steps = sum.max_steps.max(call.max_steps);
        if call.is_cached {
            sum.cached_share += call.share;
        } else {
            uncached_steps += call.share * call.mean_steps;
            uncached += call.share;
        }
    }
    if uncached > 0.0 {
        sum.uncached_mean_steps = uncached_steps / uncached;
    }
    sum
}

/// Every call of an architecture's table.
fn once_each(arch: Arch) -> impl Iterator<Item = Sample> {
    syscall::all(arch).map(move |(nr, _)| Sample {
        arch,
        data: SeccompData {
            nr: nr.0,
            arch: arch.audit(),
            ..SeccompData::default()
        },
        weight: 1.0,
    })
}

/// What one number costs, by the calls that are made of it.
fn cost_of(program: &Program, own: &[Sample], whole: f64, has_bitmap: bool) -> CallCost {
    let Sample { arch, data, .. } = own[0];
    let weight: f64 = own.iter().map(|sample| sample.weight).sum();
    let expected = Expected::of(program, own, false);
    let calls = own.iter().map(|sample| &sample.data);
    let steps = calls.map(|call| interp::run(program, call).steps);
    CallCost {
        arch,
        nr: Nr(data.nr),
        share: weight / whole,
        is_cached: !own[0].runs(program, has_bitmap),
        mean_steps: expected.steps,
        max_steps: steps.max().unwrap_or(0),
        kernel_steps: expected.kernel_insns,
        part_insns: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Action, Endian};
    use tamis_bpf::{Insn, Op, Operand, Test};
    use tamis_profile::Profile;

    use super::*;

    /// Number 16 is asked about its second argument, all others are allowed.
    fn program() -> Program {
        let equals = |k, jt, jf| Op::Branch {
            test: Test::Eq,
            operand: Operand::K(k),
            jt,
            jf,
        };
        let ops = [
            Op::LoadData(0),
            equals(16, 0, 2),
            Op::LoadData(24),
            equals(7, 0, 1),
            Op::RetImm(Action::ALLOW.ret()),
            Op::RetImm(1),
        ];
        Program::new(ops.map(Insn::from).to_vec(), Endian::Little).expect("it is valid")
    }

    #[test]
    fn a_profile_says_how_often_and_with_what() {
        let mut profile = Profile::default();
        let ioctl = profile.call_mut(Arch::X86_64, Nr(16));
        ioctl.count = 30;
        ioctl.values.entry(1).or_default().insert(7, 30);
        profile.call_mut(Arch::X86_64, Nr(0)).count = 10;
        let options = Options {
            profile: Some(profile),
            ..Options::default()
        };
        let costs = calls(&program(), &[Arch::X86_64], &options);
        for (cost, (nr, share, steps)) in costs.iter().zip([(0, 0.25, 3.0), (16, 0.75, 5.0)]) {
            assert_eq!(cost.nr, Nr(nr));
            assert!((cost.share - share).abs() < 1e-9 && (cost.mean_steps - steps).abs() < 1e-9);
        }
        // The load, its question and a return are for both.
        assert_eq!(costs[0].part_insns, 1.5);
        assert_eq!(costs[1].part_insns, 4.5);
        let together = together(&costs);
        assert!((together.mean_steps - 4.5).abs() < 1e-9, "{together:?}");
        assert_eq!((costs.len(), together.max_steps), (2, 5));
    }

    #[test]
    fn without_a_profile_every_call_is_made_once() {
        let costs = calls(&program(), &[Arch::X86_64], &Options::default());
        assert_eq!(costs.len(), syscall::all(Arch::X86_64).count());
        let parts: f64 = costs.iter().map(|cost| cost.part_insns).sum();
        assert!((parts - program().len() as f64).abs() < 1e-9, "{parts}");
        assert!(calls(&program(), &[], &Options::default()).is_empty());
    }
}
