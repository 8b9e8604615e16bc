//! The cost of each call, and its part of the program.
//!
//! A call's part of the program is the instructions that it may execute, each divided equally among all calls that
//! may execute it. The parts of all calls, and the instructions that no call executes, add up to the length. So the
//! part is about the length that the program would save if the policy had no special treatment for the call.

use crate::meter::{NumberCost, Workload, measure_numbers};
use tamis_bpf::Program;

use super::ownership::parts;

/// The cost of one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallCost {
    /// Its executed instructions.
    pub cost: NumberCost,
    /// Its share of all calls, 0 to 1.
    pub share: f64,
    /// Its part of the program's length.
    pub part_insns: f64,
}

/// The costs of the calls, by architecture and number.
pub fn calls(program: &Program, workload: &Workload, has_bitmap: bool) -> Vec<CallCost> {
    let costs = measure_numbers(std::slice::from_ref(program), workload, has_bitmap);
    let whole: f64 = costs.iter().map(|cost| cost.executed.calls).sum();
    let known: Vec<_> = costs.iter().map(|cost| (cost.arch, cost.nr)).collect();
    let parts = parts(program, &known);
    let costs = costs.into_iter().zip(parts);
    let call = |(cost, part_insns): (NumberCost, f64)| CallCost {
        cost,
        share: cost.executed.calls / whole,
        part_insns,
    };
    costs.map(call).collect()
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Action, Arch, Endian, Nr};
    use tamis_bpf::{Insn, Op, Test};
    use tamis_profile::Profile;

    use super::*;

    /// A program that tests the second argument of number 16 and allows all other calls.
    fn program() -> Program {
        let equals = |k, jt, jf| Op::branch(Test::Eq, k, jt, jf);
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
        let workload = Workload::from_profile(Some(&profile), &[Arch::X86_64]);
        let costs = calls(&program(), &workload, true);
        for (call, (nr, share, steps)) in costs.iter().zip([(0, 0.25, 3.0), (16, 0.75, 5.0)]) {
            assert_eq!(call.cost.nr, Nr(nr));
            let mean_steps = call.cost.executed.mean_steps();
            assert!((call.share - share).abs() < 1e-9 && (mean_steps - steps).abs() < 1e-9);
        }
        // Both share the load, its question and a return.
        assert_eq!(costs[0].part_insns, 1.5);
        assert_eq!(costs[1].part_insns, 4.5);
        assert_eq!(costs.len(), 2);
    }

    #[test]
    fn the_parts_of_all_calls_are_the_program() {
        let costs = calls(
            &program(),
            &Workload::from_profile(None, &[Arch::X86_64]),
            true,
        );
        let parts: f64 = costs.iter().map(|cost| cost.part_insns).sum();
        assert!((parts - program().len() as f64).abs() < 1e-9, "{parts}");
        assert!(calls(&program(), &Workload::default(), true).is_empty());
    }
}
