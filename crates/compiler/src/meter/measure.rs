//! Measurement: runs all calls of a workload through a stack, and adds up the executed instructions.
//!
//! All programs of a stack run for every call, unless the kernel answers it from its bitmap. Such calls are counted
//! separately, as if the programs ran, because other kernels and other filters on the task may still cause them to
//! run.
//!
//! A branch is predicted to take its more frequent side; the other side is a misprediction, as for a predictor
//! without memory of earlier calls. Real predictors learn patterns of calls and mispredict less.

use tamis_abi::{Arch, Nr};
use tamis_bpf::ebpf_len::{PROLOGUE_INSNS, kernel_len_insns, op_executed_insns};
use tamis_bpf::interp::Decoded;
use tamis_bpf::{Op, Pc, Program};

use super::price::{FURTHER_FILTER_NS, MISPREDICTION_NS, STEP_NS, UNCACHED_NS};
use super::workload::{Sample, Workload};

/// The costs of some calls together, each weighted by its frequency.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Executed {
    /// The number of calls, in the unit of the workload.
    pub calls: f64,
    /// Executed instructions, those of all programs of a stack.
    pub steps: f64,
    /// Executed instructions of the programs after the kernel's conversion.
    pub kernel_steps: f64,
    /// The most instructions that a single call executes.
    pub max_steps: u32,
}

/// The cost of programs for a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// The number of programs.
    pub filters: usize,
    /// Their instructions.
    pub length_insns: usize,
    /// Their instructions after the kernel's conversion.
    pub kernel_insns: usize,
    /// The number of different numbers called.
    pub numbers: usize,
    /// How many of them the kernel answers from its bitmap.
    pub cached_numbers: usize,
    /// The costs of the calls that run the programs.
    pub uncached: Executed,
    /// The costs that the other calls would have.
    pub cached: Executed,
    /// Mispredicted branches of the calls that run the programs.
    pub mispredictions: f64,
}

/// The cost of the calls of one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberCost {
    /// The architecture of the number.
    pub arch: Arch,
    /// The number.
    pub nr: Nr,
    /// Whether the kernel answers it from its bitmap.
    pub is_cached: bool,
    /// The costs of its calls, if the programs run.
    pub executed: Executed,
}

impl Executed {
    /// The mean number of executed instructions per call; 0 without calls.
    pub fn mean_steps(&self) -> f64 {
        self.mean(self.steps)
    }

    /// The same after the kernel's conversion.
    pub fn mean_kernel_steps(&self) -> f64 {
        self.mean(self.kernel_steps)
    }

    fn mean(&self, sum: f64) -> f64 {
        if self.calls > 0.0 {
            sum / self.calls
        } else {
            0.0
        }
    }

    /// The sum of both.
    fn plus(self, other: Executed) -> Executed {
        Executed {
            calls: self.calls + other.calls,
            steps: self.steps + other.steps,
            kernel_steps: self.kernel_steps + other.kernel_steps,
            max_steps: self.max_steps.max(other.max_steps),
        }
    }
}

impl Cost {
    /// The costs of all calls if the programs run for each.
    pub fn all(&self) -> Executed {
        self.uncached.plus(self.cached)
    }

    /// The mean number of executed instructions per call, with 0 for calls answered from the bitmap.
    pub fn mean_executed_steps(&self) -> f64 {
        self.all().mean(self.uncached.steps)
    }

    /// The share of calls answered from the bitmap, 0 to 1.
    pub fn cached_share(&self) -> f64 {
        self.all().mean(self.cached.calls)
    }

    /// The mean time per call in nanoseconds in addition to an answer from the bitmap, by the [prices](super::price).
    pub fn mean_ns(&self) -> f64 {
        let further = self.filters.saturating_sub(1) as f64;
        let entering = self.uncached.calls * (UNCACHED_NS + further * FURTHER_FILTER_NS);
        let executing = self.uncached.kernel_steps * STEP_NS;
        let mispredicted = self.mispredictions * MISPREDICTION_NS;
        self.all().mean(entering + executing + mispredicted)
    }
}

/// The cost of the programs of a stack together. With `has_bitmap` the kernel answers always allowed numbers without
/// running them (5.11). Linear in executed instructions.
///
/// ```
/// use tamis_abi::{Arch, Endian};
/// use tamis_bpf::{Op, Program};
/// use tamis_compiler::meter::{Workload, measure};
/// let ops = vec![Op::RetImm(0x7fff_0000).into()];
/// let allow = Program::new(ops, Endian::Little).unwrap();
/// let cost = measure(&[allow], &Workload::from_profile(None, &[Arch::X86_64]), true);
/// assert_eq!((cost.cached_share(), cost.all().mean_steps()), (1.0, 1.0));
/// ```
pub fn measure(stack: &[Program], workload: &Workload, has_bitmap: bool) -> Cost {
    let mut meter = Meter::new(stack, has_bitmap);
    meter.total(workload)
}

/// The cost of a program, and by place the weights of the calls that did not take and that took each of its branches,
/// for calls that run it.
pub fn measure_branches(
    program: &Program,
    workload: &Workload,
    has_bitmap: bool,
) -> (Cost, Vec<[f64; 2]>) {
    let mut meter = Meter::new(std::slice::from_ref(program), has_bitmap);
    let cost = meter.total(workload);
    (cost, meter.sides.remove(0))
}

/// The cost of each number, by architecture and number.
pub fn measure_numbers(
    stack: &[Program],
    workload: &Workload,
    has_bitmap: bool,
) -> Vec<NumberCost> {
    let mut meter = Meter::new(stack, has_bitmap);
    workload.numbers().map(|own| meter.number(own)).collect()
}

/// The cost of every known call with all arguments 0, for each of these architectures with a kernel bitmap: the same
/// calls for all programs, whatever their input.
pub fn measure_archs(stack: &[Program], archs: &[Arch]) -> Vec<(Arch, Cost)> {
    let cost = |arch| measure(stack, &Workload::every_call(&[arch]), true);
    archs.iter().map(|arch| (*arch, cost(*arch))).collect()
}

/// The state of a measurement of a stack.
struct Meter<'a> {
    stack: &'a [Program],
    decoded: Vec<Decoded>,
    has_bitmap: bool,
    /// By program and place, the weights of the calls that did not take and that took a branch.
    sides: Vec<Vec<[f64; 2]>>,
}

impl Meter<'_> {
    fn new(stack: &[Program], has_bitmap: bool) -> Meter<'_> {
        Meter {
            stack,
            decoded: stack.iter().map(Decoded::new).collect(),
            has_bitmap,
            sides: stack.iter().map(|it| vec![[0.0; 2]; it.len()]).collect(),
        }
    }

    fn total(&mut self, workload: &Workload) -> Cost {
        let mut cost = Cost {
            filters: self.stack.len(),
            length_insns: self.stack.iter().map(Program::len).sum(),
            kernel_insns: self.stack.iter().map(kernel_len_insns).sum(),
            ..Cost::default()
        };
        for own in workload.numbers() {
            let number = self.number(own);
            cost.numbers += 1;
            cost.cached_numbers += usize::from(number.is_cached);
            let sum = match number.is_cached {
                true => &mut cost.cached,
                false => &mut cost.uncached,
            };
            *sum = sum.plus(number.executed);
        }
        let sides = self.sides.iter().flatten();
        cost.mispredictions = sides.map(|[no, yes]| f64::min(*no, *yes)).sum();
        cost
    }

    /// Runs the calls of one number, at least one.
    fn number(&mut self, own: &[Sample]) -> NumberCost {
        let first = own[0];
        let is_cached = self.has_bitmap && first.is_cached(self.stack);
        let mut executed = Executed::default();
        for sample in own {
            executed = executed.plus(self.call(sample, !is_cached));
        }
        NumberCost {
            arch: first.arch,
            nr: Nr(first.data.nr),
            is_cached,
            executed,
        }
    }

    /// Runs one call through all programs.
    fn call(&mut self, sample: &Sample, takes_sides: bool) -> Executed {
        let counted = if takes_sides { sample.weight } else { 0.0 };
        let (mut steps, mut kernel_insns) = (0, 0);
        for (decoded, sides) in self.decoded.iter().zip(&mut self.sides) {
            kernel_insns += PROLOGUE_INSNS;
            let mut open: Option<(usize, Op, usize)> = None;
            let run = decoded.run_traced(&sample.data, &mut |Pc(pc)| {
                if let Some((at, op, taken)) = open.take() {
                    let is_taken = pc == taken;
                    sides[at][usize::from(is_taken)] += counted;
                    kernel_insns += op_executed_insns(op, is_taken);
                }
                match decoded.ops()[pc] {
                    op @ Op::Branch { jt, .. } => open = Some((pc, op, pc + 1 + usize::from(jt))),
                    op => kernel_insns += op_executed_insns(op, false),
                }
            });
            steps += run.steps;
        }
        Executed {
            calls: sample.weight,
            steps: sample.weight * f64::from(steps),
            kernel_steps: sample.weight * kernel_insns as f64,
            max_steps: steps,
        }
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::Endian;
    use tamis_bpf::{Insn, Test};

    use super::*;

    /// A program that tests the second argument of number 16 and allows all other calls.
    fn program() -> Program {
        let equals = |k, jt, jf| Op::branch(Test::Eq, k, jt, jf);
        let ops = [
            Op::LoadData(0),
            equals(16, 0, 2),
            Op::LoadData(24),
            equals(7, 0, 1),
            Op::RetImm(0x7fff_0000),
            Op::RetImm(1),
        ];
        Program::new(ops.map(Insn::from).to_vec(), Endian::Little).expect("it is valid")
    }

    fn call(nr: u32, arg1: u64, weight: f64) -> Sample {
        Sample::new(Arch::X86_64, Nr(nr), [0, arg1, 0, 0, 0, 0], weight)
    }

    /// Calls of which three in four run the program.
    fn workload() -> Workload {
        Workload::new([call(0, 0, 10.0), call(16, 7, 20.0), call(16, 8, 10.0)])
    }

    #[test]
    fn calls_that_a_bitmap_answers_are_added_up_apart() {
        let stack = [program()];
        let with = measure(&stack, &workload(), true);
        assert_eq!((with.numbers, with.cached_numbers), (2, 1));
        assert_eq!((with.cached.calls, with.cached.mean_steps()), (10.0, 3.0));
        assert_eq!(
            (with.uncached.calls, with.uncached.mean_steps()),
            (30.0, 5.0)
        );
        assert_eq!((with.all().mean_steps(), with.all().max_steps), (4.5, 5));
        assert_eq!(with.mean_executed_steps(), 3.75);
        let without = measure(&stack, &workload(), false);
        assert_eq!(without.uncached, with.all());
        assert_eq!(without.cached, Executed::default());
        assert!(with.mean_ns() < without.mean_ns());
    }

    #[test]
    fn the_rarer_side_of_a_branch_is_mispredicted() {
        let (cost, sides) = measure_branches(&program(), &workload(), false);
        assert_eq!((sides[1], sides[3]), ([10.0, 30.0], [10.0, 20.0]));
        assert_eq!(cost.mispredictions, 20.0);
        let (cost, _) = measure_branches(&program(), &workload(), true);
        assert_eq!(cost.mispredictions, 10.0);
    }

    #[test]
    fn a_stack_runs_all_its_programs_and_is_the_sum_of_its_numbers() {
        let stack = [program(), program()];
        let (one, two) = (
            measure(&stack[..1], &workload(), true),
            measure(&stack, &workload(), true),
        );
        assert_eq!(two.uncached.steps, 2.0 * one.uncached.steps);
        assert_eq!(two.kernel_insns, 2 * one.kernel_insns);
        let numbers = measure_numbers(&stack, &workload(), true);
        let sum = numbers.iter().map(|number| number.executed);
        assert_eq!(sum.fold(Executed::default(), Executed::plus), two.all());
    }

    #[test]
    fn x32_is_never_cached() {
        let ops = vec![Op::RetImm(0x7fff_0000).into()];
        let allow = [Program::new(ops, Endian::Little).expect("it is valid")];
        let cached = |arch| measure_archs(&allow, &[arch])[0].1.cached_numbers;
        assert!(cached(Arch::X86_64) > 0);
        assert_eq!(cached(Arch::X32), 0);
    }
}
