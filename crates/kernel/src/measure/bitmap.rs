//! Whether the kernel skips the filters of a stack for a call: asked of the kernel itself, by timing.
//!
//! Since 5.11 a kernel remembers which calls a stack is sure to allow, and doesn't run the filters for
//! them. It tells nobody, but it can be seen. Below the stack goes a *ballast*: a long filter that
//! allows every number and whose every number can be remembered. Calls that are skipped cost the same with
//! it; all others take longer by the time that the ballast runs, some hundred nanoseconds. How long that
//! is, is measured for each call with filters of which the answer is known.

use tamis_abi::{Action, SeccompData};
use tamis_bpf::{Insn, Op, Operand, Program, Stack, Test};

use super::{FEW, MeasureError, Measured, Rounds, Workload, measure_passes};

/// How many comparisons the ballast makes. More take longer to install: the kernel goes through all of
/// them for each number.
const BALLAST_INSNS: usize = 3000;
/// The number that the ballast looks for: none that any architecture has.
const NO_NUMBER: u32 = 0x7fff_ffff;
/// How many rounds are made; the fastest batch of all counts.
const ROUNDS: u32 = 2;
/// Less than this can't be told from noise.
const MIN_BALLAST_NS: f64 = 40.0;
/// The least filter that must be run: it looks at an argument.
const UNCACHEABLE: [Op; 2] = [Op::LoadData(16), Op::RetImm(Action::ALLOW.ret())];

/// Whether the kernel skips the filters: per stack, per call. `None` where that can't be told: without
/// filters, where the ballast has no room, or on a machine that is too noisy.
///
/// The filters should be [harmless](mod@tamis_bpf::harmless).
///
/// # Errors
/// See [`MeasureError`].
pub fn skips_filters(
    stacks: &[Vec<Program>],
    calls: &[SeccompData],
) -> Result<Vec<Vec<Option<bool>>>, MeasureError> {
    let known = match Known::measure(calls) {
        Ok(known) => known,
        // Filters from outside leave no room for the ballast.
        Err(MeasureError::Install { .. }) => {
            return Ok(vec![vec![None; calls.len()]; stacks.len()]);
        }
        Err(error) => return Err(error),
    };
    let answers = |(subject, stack): (usize, &Vec<Program>)| {
        let unknown = vec![None; calls.len()];
        let loaded: Vec<Program> = [ballast()].into_iter().chain(stack.clone()).collect();
        if stack.is_empty() || !Stack::new(loaded.clone()).is_installable() {
            return Ok(unknown);
        }
        let measured = match measure(&[stack.clone(), loaded], calls) {
            Ok(measured) => measured,
            // Filters from outside take room, too.
            Err(MeasureError::Install { subject: 1, .. }) => return Ok(unknown),
            Err(error) => return Err(error.of_subject(subject)),
        };
        let pairs = measured[0].calls.iter().zip(&measured[1].calls);
        let answers = pairs
            .zip(&known.0)
            .map(|((without, with), known)| known.is_skipped(with.min_ns - without.min_ns));
        Ok(answers.collect())
    };
    stacks.iter().enumerate().map(answers).collect()
}

/// Times the calls well enough for differences as large as these.
fn measure(stacks: &[Vec<Program>], calls: &[SeccompData]) -> Result<Vec<Measured>, MeasureError> {
    let workload = Workload::of_calls(calls);
    let rounds = Rounds::exactly(ROUNDS);
    let measurement = measure_passes(stacks, &workload, rounds, FEW, &mut |_| {})?;
    Ok(measurement.subjects)
}

/// What the ballast costs each call.
struct Known(Vec<Ballast>);

/// What the ballast costs one call, where filters are skipped and where they are run.
struct Ballast {
    skipped_ns: f64,
    run_ns: f64,
}

impl Known {
    fn measure(calls: &[SeccompData]) -> Result<Known, MeasureError> {
        let allow = program(&[Op::RetImm(Action::ALLOW.ret())]);
        let uncacheable = program(&UNCACHEABLE);
        let stacks = [
            vec![],
            vec![ballast(), allow],
            vec![uncacheable.clone()],
            vec![ballast(), uncacheable],
        ];
        let measured = measure(&stacks, calls)?;
        let ballast = |call: usize| {
            let min_ns = |subject: usize| measured[subject].calls[call].min_ns;
            Ballast {
                skipped_ns: min_ns(1) - min_ns(0),
                run_ns: min_ns(3) - min_ns(2),
            }
        };
        Ok(Known((0..calls.len()).map(ballast).collect()))
    }
}

impl Ballast {
    /// Whether a call is skipped that takes so much longer with the ballast.
    fn is_skipped(&self, more_ns: f64) -> Option<bool> {
        if self.run_ns < MIN_BALLAST_NS {
            return None;
        }
        // A kernel that has no bitmap runs everything.
        let has_bitmap = self.skipped_ns < self.run_ns / 2.0;
        Some(has_bitmap && more_ns < self.run_ns / 2.0)
    }
}

/// A long filter that allows everything, and whose every number can be remembered.
fn ballast() -> Program {
    let compare = Op::Branch {
        test: Test::Eq,
        operand: Operand::K(NO_NUMBER),
        jt: 0,
        jf: 0,
    };
    let mut ops = vec![Op::LoadData(0)];
    ops.resize(BALLAST_INSNS + 1, compare);
    ops.push(Op::RetImm(Action::ALLOW.ret()));
    program(&ops)
}

fn program(ops: &[Op]) -> Program {
    let insns: Vec<Insn> = ops.iter().copied().map(Insn::from).collect();
    Program::new(insns).expect("loads of data, comparisons and a return at the end are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ballast_can_be_remembered_for_every_number() {
        let ballast = ballast();
        for nr in [0, 1, 335, 469] {
            assert!(tamis_bpf::cache::is_cacheable(&ballast, 0xc000_003e, nr));
        }
        assert!(!tamis_bpf::cache::is_cacheable(
            &program(&UNCACHEABLE),
            0xc000_003e,
            1
        ));
        assert!(ballast.is_installable());
    }

    #[test]
    fn a_kernel_without_a_bitmap_skips_nothing_and_noise_says_nothing() {
        let ballast = |skipped_ns, run_ns| Ballast { skipped_ns, run_ns };
        assert_eq!(ballast(8.0, 500.0).is_skipped(3.0), Some(true));
        assert_eq!(ballast(8.0, 500.0).is_skipped(490.0), Some(false));
        assert_eq!(ballast(508.0, 500.0).is_skipped(3.0), Some(false));
        assert_eq!(ballast(8.0, 20.0).is_skipped(3.0), None);
    }
}
